/* Checks repeat and resume: what should be the same run again, bit for bit.
 * Called through the table of checks; must not know how a run is repeated. */
#include "orc_probe.h"

#include <inttypes.h>
#include <string.h>

/* Hash of the step's checkpoint, NULL when none was written or it was not hashed. */
static const struct orc_event *checkpoint_of(const struct orc_step *step)
{
    for (size_t i = 0; i < step->event_count; i++) {
        if (step->events[i].kind == ORC_EVENT_checkpoint && step->events[i].hash_given) {
            return &step->events[i];
        }
    }
    return NULL;
}

static void compare_numbers(struct orc_probe *probe, const struct orc_step *a,
                            const struct orc_step *b)
{
    for (int n = 0; n < ORC_SCALAR_race_count; n++) {
        if (a->scalar[n].given && b->scalar[n].given) {
            orc_probe_exact(probe, a->number, orc_same_number(a->scalar[n], b->scalar[n]),
                            "%s is %.17g, was %.17g", orc_scalar_name((enum orc_scalar)n),
                            b->scalar[n].value, a->scalar[n].value);
        }
    }
}

/* hash_end: hashes before it are compared. */
static void compare_steps(struct orc_probe *probe, const struct orc_step *a,
                          const struct orc_step *b, int hash_end)
{
    for (int h = 0; h < hash_end; h++) {
        if (a->hash_given[h] && b->hash_given[h]) {
            orc_probe_exact(probe, a->number, a->hash[h] == b->hash[h],
                            "%s hash is %016" PRIx64 ", was %016" PRIx64,
                            orc_hash_name((enum orc_hash)h), b->hash[h], a->hash[h]);
        }
    }
    for (int k = 0; k < ORC_BATCH_COUNT; k++) {
        const struct orc_hash_list *x = &a->batch[k], *y = &b->batch[k];
        if (x->given && y->given) {
            orc_probe_exact(
                probe, a->number,
                x->count == y->count &&
                    (x->count == 0 || memcmp(x->items, y->items, x->count * sizeof *x->items) == 0),
                "%s differ", orc_batch_name((enum orc_batch)k));
        }
    }
    compare_numbers(probe, a, b);
    const struct orc_event *x = checkpoint_of(a), *y = checkpoint_of(b);
    if (x != NULL && y != NULL) {
        orc_probe_exact(probe, a->number, x->hash == y->hash, "checkpoint differs");
    }
}

static void compare_runs(const orc_trace *first, const orc_trace *again, struct orc_probe *probe,
                         int hash_end)
{
    const struct orc_range range = orc_range_common(first, again);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *a = orc_trace_step(first, s), *b = orc_trace_step(again, s);
        if (a != NULL && b != NULL) {
            compare_steps(probe, a, b, hash_end);
        } else {
            orc_probe_exact(probe, s, a == b, "step missing in one of the runs");
        }
    }
    if (range.first <= range.last && first->ended && again->ended) {
        const int last_a = orc_trace_last_step(first), last_b = orc_trace_last_step(again);
        orc_probe_exact(probe, (last_a < last_b ? last_a : last_b) + (last_a != last_b),
                        last_a == last_b, "ended after step %d, was %d", last_b, last_a);
    }
}

/* Another back end rounds differently; its bits are not promised. */
void orc_check_run_repeat(const struct orc_case *c, struct orc_probe *probe)
{
    if (c->subject == NULL || c->repeat == NULL ||
        strcmp(c->subject->backend, c->repeat->backend) != 0) {
        return;
    }
    compare_runs(c->subject, c->repeat, probe, ORC_HASH_COUNT);
}

/* The ledger is left out: a resumed process has another history of memory. */
void orc_check_run_resume(const struct orc_case *c, struct orc_probe *probe)
{
    compare_runs(c->subject, c->resumed, probe, ORC_HASH_ledger);
}
