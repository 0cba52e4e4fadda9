/* The build with faults. Called by train_main, the loop and the trace; the only file of this folder
 * that knows how faults are armed. */
#include <string.h>

#include "arm.h"
#include "registry.h"
#include "select.h"

/* The reach map is written when every site was watched and none armed. */
static bool reach_map(void)
{
    return mut_armed_number() == 0 && mut_site_count() > 0 && mut_twin_wanted("all");
}

enum eng_status eng_arm(const char *spec, struct eng_error *error)
{
    char cause[MUT_ERROR_MAX];
    return mut_select(spec, cause, sizeof cause)
               ? ENG_OK
               : eng_fail(error, ENG_EUSAGE, "--fault %s: %s", spec, cause);
}

bool eng_arm_too_early(void)
{
    return mut_armed_too_early();
}

void eng_arm_report(struct eng_text *line)
{
    const struct mut_fault *fault = mut_fault_by_number(mut_armed_number());
    if (fault != NULL) {
        const struct mut_site_info *site = mut_site_find(fault->site);
        eng_text_puts(line, ",\"fault_reached\":");
        eng_text_int(line, mut_reached_step((size_t)(site - mut_site_at(0))));
    } else if (reach_map()) {
        eng_text_puts(line, ",\"reach\":{");
        for (size_t i = 0; i < mut_site_count(); i++) {
            eng_text_puts(line, i > 0 ? "," : "");
            eng_text_string(line, mut_site_at(i)->site);
            eng_text_puts(line, ":");
            eng_text_int(line, mut_reached_step(i));
        }
        eng_text_puts(line, "}");
    }
}
