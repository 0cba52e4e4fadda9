/* Reports from stored results: pure functions from results to text, and the files of a folder.
 * Called by the commands; must not know how results come about. */
#pragma once

#include "har_results.h"
#include "har_study.h"
#include "har_text.h"

enum { HAR_RESULTS_SCHEMA = 1 };

/* A report: pure function from results and what they amount to. */
typedef void har_report_writer(const struct har_results *results, const struct har_study *study,
                               struct har_text *out);
har_report_writer har_report_json, har_report_csv, har_report_junit, har_report_markdown,
    har_report_stryker, har_report_sarif;
/* The sentences under the table: rate, contrast, sets of checks, false alarms, time. One per line.
 */
har_report_writer har_report_summary;
/* The table a person reads; colour marks outcomes when asked for. */
void har_report_text(const struct har_results *results, const struct har_study *study, bool colour,
                     struct har_text *out);

/* Writes all files of a results folder, report.html only where the page was built. */
HAR_CHECKED enum har_status har_report_write_all(const struct har_results *results,
                                                 const struct har_study *study, const char *dir,
                                                 struct har_error *error);
/* Loads what is stored in dir, writes all reports, prints the table (or results.json) and where the
 * reports lie. The campaign's status: HAR_EALARM, HAR_EINCOMPLETE with a sentence, or HAR_OK. */
HAR_CHECKED enum har_status har_report_finish(const char *dir, bool json, struct har_error *error);
/* Whether standard output is a terminal that takes colour. */
bool har_report_colour(void);
/* The names of those files, one sentence. */
void har_report_names(struct har_text *out);
/* One format by name into out. HAR_EUSAGE for an unknown one. */
HAR_CHECKED enum har_status har_report_format(const struct har_results *results,
                                              const struct har_study *study, const char *format,
                                              bool colour, struct har_text *out,
                                              struct har_error *error);
