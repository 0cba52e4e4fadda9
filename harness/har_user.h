/* Commands that a user names: an oracle, a trainer, a second trainer.
 * Called by har_lab.c, har_case.c and har_artifact.c; must not know what they print. */
#pragma once

#include <stdint.h>

#include "har_status.h"
#include "har_text.h"

/* Start with {0}; words.count 0 = none was named. */
struct har_user {
    struct har_args words; /* owned */
};

/* Splits a command as a shell does, without expansions, and looks its program up in PATH. A word
 * that names a file beside `base` (a file; NULL = the current folder) stands for that file. `key`
 * names it in messages. HAR_EUSAGE when there is no such program. Released by har_user_fini. */
HAR_CHECKED enum har_status har_user_parse(const char *text, const char *base, const char *key,
                                           struct har_user *out, struct har_error *error);
void har_user_fini(struct har_user *user);
/* Hash of all words, where a word names a file of that file. */
HAR_CHECKED enum har_status har_user_hash(const struct har_user *user, uint64_t *hash,
                                          struct har_error *error);
void har_user_words(const struct har_user *user, struct har_args *args);
