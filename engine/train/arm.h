/* What the trainer knows of faults: arming one and reporting it. arm_mutable.c is linked into
 * faultline-train, arm_production.c into faultline-train-production, which has no faults.
 * Called by train_main, the loop and the trace. */
#pragma once

#include <stdbool.h>

#include "eng_status.h"
#include "textbuf.h"

/* Arms `spec`, the text of --fault; EUSAGE when it cannot be. */
ENG_CHECKED enum eng_status eng_arm(const char *spec, struct eng_error *error);
/* True when a fault was to be armed from a step on, but its site has run during set-up. */
bool eng_arm_too_early(void);
/* Appends the members of the trace's end record that only a mutable build has. */
void eng_arm_report(struct eng_text *line);
