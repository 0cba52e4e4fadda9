/* Growing text, argument vectors, and the escaping rules of the report formats.
 * Used by every harness module; must not know what the text means. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "har_status.h"

/* Growing text; start with {0}. A failed allocation sets `failed` and later additions do nothing,
 * so that a writer checks once at its end. */
struct har_text {
    char *data; /* NUL-terminated once something was added; owned */
    size_t size;
    size_t capacity;
    bool failed;
};

void har_text_fini(struct har_text *text);
void har_text_add(struct har_text *text, const char *string);
void har_text_add_bytes(struct har_text *text, const char *bytes, size_t count);
void har_text_addf(struct har_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a string so that it is valid inside XML text and attributes: the five entities, characters
 * that XML 1.0 forbids and bytes that are not UTF-8 become U+FFFD. */
void har_text_add_xml(struct har_text *text, const char *string);
/* Adds one CSV field (RFC 4180), quoted where needed. */
void har_text_add_csv(struct har_text *text, const char *string);
/* Adds a cell of a Markdown table: no line ends, no column borders. */
void har_text_add_markdown(struct har_text *text, const char *string);
/* Adds a word that /bin/sh reads back unchanged. */
void har_text_add_shell(struct har_text *text, const char *string);
/* The text, "" when nothing was added; owned by text. */
const char *har_text_get(const struct har_text *text);

/* Writes the text over `path` by way of a temporary file and a rename: readers see the old file or
 * the new one. HAR_EIO names the path. */
HAR_CHECKED enum har_status har_text_write(const struct har_text *text, const char *path,
                                           struct har_error *error);

/* Replaces everything that is not printable UTF-8 by '?', in place; line ends become blanks. */
void har_text_clean(char *string);

/* Argument vector; start with {0}. items ends with NULL once something was added. */
struct har_args {
    char **items; /* owned */
    size_t count;
    size_t capacity;
    bool failed;
};
void har_args_fini(struct har_args *args);
void har_args_add(struct har_args *args, const char *string);
void har_args_addf(struct har_args *args, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the words of a line as /bin/sh splits them, quotes and backslashes understood, nothing
 * expanded; false when a quote stays open, no word is there or memory runs out. */
bool har_args_split(const char *line, struct har_args *out);

/* Whether `string` matches one of the blank, comma or pipe free glob patterns. */
bool har_text_matches(const char *pattern, const char *string);
