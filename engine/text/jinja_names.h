/* Filters, tests, methods and functions by name and by number.
 * Used by the parser (names to numbers) and jinja_eval (numbers to calls). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "jinja_value.h"

struct jinja_render_state;

enum { JINJA_PARAMETERS_MAX = 6 };

/* What a call gets: values by position, then by name. */
struct jinja_arguments {
    const struct jv *items;
    size_t count;
    const struct jv *names, *values;
    size_t name_count;
};

/* Numbers from 1; 0 = there is none of that name. */
unsigned eng_jinja_filter_find(struct jv name);
unsigned eng_jinja_test_find(struct jv name);
unsigned eng_jinja_method_find(struct jv name);
unsigned eng_jinja_function_find(struct jv name);
/* A name that Jinja2 gives a meaning this engine does not have. */
bool eng_jinja_is_unsupported_name(struct jv name);

struct jv eng_jinja_filter_call(struct jinja_render_state *r, unsigned id, struct jv value,
                                const struct jinja_arguments *arguments);
bool eng_jinja_test_call(struct jinja_render_state *r, unsigned id, struct jv value,
                         const struct jinja_arguments *arguments);
/* The method `id` of an object that has one of that name (see eng_jinja_has_method). */
struct jv eng_jinja_method_call(struct jinja_render_state *r, unsigned id, struct jv object,
                                const struct jinja_arguments *arguments);
struct jv eng_jinja_function_call(struct jinja_render_state *r, unsigned id,
                                  const struct jinja_arguments *arguments);

enum jinja_has {
    JINJA_HAS_NOT, /* Python's type has no attribute of that name */
    JINJA_HAS,
    JINJA_FORBIDDEN,  /* the sandbox forbids it: undefined */
    JINJA_UNSUPPORTED /* Python has it, this engine has not: an error */
};
enum jinja_has eng_jinja_has_method(struct jv object, struct jv name, unsigned id);

/* Spreads arguments over the parameters `names` (NULL-terminated); those not given are J_MISSING.
 * Fails the render for too many or unknown ones, and when one of the first `needed` is missing. */
bool eng_jinja_bind(struct jmem *m, const char *what, const struct jinja_arguments *arguments,
                    const char *const *names, size_t needed, struct jv out[JINJA_PARAMETERS_MAX]);
