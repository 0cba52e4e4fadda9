/* Check external: a verdict from outside takes its place among the others.
 * Called through the table of checks; must not know who gave it. */
#include "orc_probe.h"

void orc_check_run_external(const struct orc_case *c, struct orc_probe *probe)
{
    const struct orc_verdict *const said = c->external;
    if (said == NULL || said->compared == 0) {
        return;
    }
    orc_probe_exact(probe, said->step, !said->fired, "%s", said->detail);
    probe->verdict->compared = said->compared;
}
