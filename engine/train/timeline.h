/* A run's operations in the order in which they were issued and run, one JSON line each.
 * Called by the trainer's life; must not know what the operations do. */
#pragma once

#include "dev.h"
#include "eng_status.h"

struct eng_timeline;

/* A file, or zstd when the name ends in .zst. Lines: {"kind":"issue" or "run", "op", "what",
 * "where", "stream", "step"}. */
ENG_CHECKED enum eng_status eng_timeline_open(const char *path, struct eng_timeline **out,
                                              struct eng_error *error);
/* Writes one line; for dev_conf.watch. The first failure is kept for eng_timeline_status(). */
void eng_timeline_moment(void *timeline, const struct dev_moment *moment);
ENG_CHECKED enum eng_status eng_timeline_status(const struct eng_timeline *timeline,
                                                struct eng_error *error); /* accepts NULL */
void eng_timeline_close(struct eng_timeline *timeline);                   /* accepts NULL */
