/* Reports from stored results: pure functions from results to text, and the files of a folder.
 * Called by the commands; must not know how results come about. */
#pragma once

#include "har_results.h"
#include "har_text.h"

enum { HAR_RESULTS_SCHEMA = 1 };

/* The table a person reads; colour marks outcomes when asked for. */
void har_report_text(const struct har_results *results, bool colour, struct har_text *out);
void har_report_json(const struct har_results *results, struct har_text *out);
void har_report_csv(const struct har_results *results, struct har_text *out);
void har_report_junit(const struct har_results *results, struct har_text *out);
void har_report_markdown(const struct har_results *results, struct har_text *out);
/* The sentences under the table: rate, contrast, false alarms, time. One per line. */
void har_report_summary(const struct har_results *results, struct har_text *out);

/* Writes results.json, junit.xml, results.csv, summary.md into dir. */
HAR_CHECKED enum har_status har_report_write_all(const struct har_results *results, const char *dir,
                                                 struct har_error *error);
/* Loads what is stored in dir, writes all reports, prints the table (or results.json) and where the
 * reports lie. The campaign's status: HAR_EALARM, HAR_EINCOMPLETE with a sentence, or HAR_OK. */
HAR_CHECKED enum har_status har_report_finish(const char *dir, bool json, struct har_error *error);
/* Whether standard output is a terminal that takes colour. */
bool har_report_colour(void);
/* One format by name into out. HAR_EUSAGE for an unknown one. */
HAR_CHECKED enum har_status har_report_format(const struct har_results *results, const char *format,
                                              bool colour, struct har_text *out,
                                              struct har_error *error);
