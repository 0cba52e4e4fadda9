/* The table of filters and what they share with methods.
 * Used by jinja_filters, jinja_lists and jinja_methods; must not know syntax. */
#pragma once

#include "jinja_names.h"

struct jinja_filter {
    const char *name;
    struct jv (*call)(struct jinja_render_state *r, struct jv value, const struct jv *bound);
    size_t needed;
    const char *parameters[JINJA_PARAMETERS_MAX]; /* NULL-terminated */
    /* Instead of call: takes its arguments as they are. */
    struct jv (*raw)(struct jinja_render_state *r, struct jv value,
                     const struct jinja_arguments *arguments);
};

/* Filters of lists, NULL behind the last. */
const struct jinja_filter *eng_jinja_list_filter(unsigned index);

/* str.replace(); a negative count means all. */
struct jv eng_jinja_replaced(struct jmem *m, struct jv s, struct jv from, struct jv to,
                             int64_t count);
/* str.format() with {}, {0} and {name}; other fields fail the render. */
struct jv eng_jinja_formatted(struct jmem *m, struct jv s, const struct jinja_arguments *arguments);
/* str.splitlines() */
struct jv eng_jinja_lines(struct jmem *m, struct jv s, bool keep_ends);
