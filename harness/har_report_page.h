/* report.html: the page built in harness/web with the results of one campaign put into it.
 * Called by har_report.c; must not know how results come about. */
#pragma once

#include "har_report.h"

/* Whether this program was built with the page; without, har_report_page adds nothing. */
bool har_report_page_built(void);
void har_report_page(const struct har_results *results, const struct har_study *study,
                     struct har_text *out);
