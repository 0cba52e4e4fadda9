/* Chat templates: the part of Jinja2 that `chat_template`s use, parsed once and rendered many
 * times, in the environment that transformers gives them (sandbox, trim_blocks, lstrip_blocks, loop
 * controls, tojson without escapes, raise_exception, strftime_now, {% generation %}).
 * Called by template; must not know roles, recipes or tokens. What it does not know is an error
 * with line and column, never a guess. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "eng_status.h"
#include "jinja_value.h"

typedef struct eng_jinja eng_jinja;

/* Purpose: parses a source. `name` stands in messages. EINPUT: "name:line:column: cause". */
ENG_CHECKED enum eng_status eng_jinja_parse(const char *name, const char *source, size_t size,
                                            eng_jinja **out, struct eng_error *error);
void eng_jinja_destroy(eng_jinja *template); /* accepts NULL */
/* Whether {% generation %} stands in it. */
bool eng_jinja_has_generation(const eng_jinja *template);
/* Whether it reads a variable or function of that name which it does not set first. */
bool eng_jinja_reads(const eng_jinja *template, const char *name);
/* Whether a filter or method in it takes white space off the edges of texts. */
bool eng_jinja_trims(const eng_jinja *template);

struct eng_jinja_limits {
    size_t memory_bytes; /* of values */
    size_t output_bytes; /* of the result and of every text */
    uint64_t steps;      /* statements, items and characters looked at */
    uint64_t milliseconds;
    uint64_t (*now_ms)(void); /* NULL: no limit of time */
};
extern const struct eng_jinja_limits eng_jinja_usual_limits;

/* One thread's renders. Values made in `mem` die with the next eng_jinja_begin. */
struct eng_jinja_renderer {
    struct jmem mem;
    struct eng_jinja_limits limits;
    struct jv names[32], values[32]; /* variables, at most that many */
    size_t count;
    int64_t clock; /* seconds since 1970, UTC: what strftime_now sees */
};
ENG_CHECKED enum eng_status eng_jinja_init(struct eng_jinja_renderer *renderer,
                                           const struct eng_jinja_limits *limits,
                                           struct eng_error *error);
void eng_jinja_fini(struct eng_jinja_renderer *renderer);
/* Forgets the values and variables of the render before. */
void eng_jinja_begin(struct eng_jinja_renderer *renderer);
/* A variable of the next render. `name` is borrowed. Later ones win. */
void eng_jinja_variable(struct eng_jinja_renderer *renderer, const char *name, struct jv value);
/* Purpose: renders with the variables set since eng_jinja_begin. The result, with marks of content
 * and answers, lies in the renderer until its next render: answers in order of their ends, content
 * in order of place. EINPUT: "name:line:column: cause". */
ENG_CHECKED enum eng_status eng_jinja_render(struct eng_jinja_renderer *renderer,
                                             const eng_jinja *template, const struct jbuf **out,
                                             struct eng_error *error);
