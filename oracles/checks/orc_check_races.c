/* Check races: the subject's own happens-before checker found an unordered pair.
 * Called through the table of checks; must not know streams beyond their names. */
#include "orc_probe.h"

static void unordered(struct orc_probe *probe, const struct orc_step *step)
{
    if (step->race_list_count > 0) {
        const struct orc_race *r = &step->races[0];
        orc_probe_exact(probe, step->number, false,
                        "%.40s (%s on %.20s) and %.40s (%s on %.20s) on %.30s: unordered", r->first,
                        r->first_mode, r->first_stream, r->second, r->second_mode, r->second_stream,
                        r->buffer);
    }
    const struct orc_number count = step->scalar[ORC_SCALAR_race_count];
    if (count.given) {
        orc_probe_exact(probe, step->number, count.value == 0.0, "%.0f unordered pairs",
                        count.value);
    }
}

void orc_check_run_races(const struct orc_case *c, struct orc_probe *probe)
{
    const struct orc_range range = orc_range_of(c->subject);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *step = orc_trace_step(c->subject, s);
        if (step != NULL) {
            unordered(probe, step);
        }
    }
    if (c->subject->stopped_inside) {
        unordered(probe, &c->subject->unfinished);
    }
}
