/* What GitHub shows of a gate: annotations of a run and the summary of a step.
 * Called by cmd_gate.c; must not know limits' origin or exit codes. */
#pragma once

#include "har_gate.h"

/* GitHub shows about ten annotations a step and drops a summary above 1 MiB whole. */
enum { HAR_GITHUB_ANNOTATIONS = 10, HAR_GITHUB_SUMMARY_BYTES = 900000 };

/* Workflow commands, one a line: faults that are not detected, at their sites; newly missed ones
 * first, then misses that nobody knew of, then known ones; and one line for those left out. */
void har_github_annotations(const struct har_results *results, const struct har_limits *limits,
                            struct har_text *out);
/* Appends verdict, findings and the table to the file (made when missing). */
HAR_CHECKED enum har_status har_github_summary(const struct har_results *results,
                                               enum har_status verdict, const char *findings,
                                               const char *path, struct har_error *error);
