/* A render at work. Used by jinja_render, jinja_eval and the tables of calls; must not know files.
 */
#pragma once

#include "jinja_ast.h"
#include "jinja_names.h"

struct jmacro {
    const struct jnode *node;
    struct jactivation *outer; /* where it was defined */
};

/* The slots of the template or of one call of a macro. */
struct jactivation {
    struct jv *slots;
    struct jactivation *outer;
};

enum jsignal { JSIGNAL_NONE, JSIGNAL_BREAK, JSIGNAL_CONTINUE };

struct jinja_render_state {
    struct jmem *m;
    const struct eng_jinja *template;
    struct jactivation *activation;
    struct jbuf *out;
    struct jv *globals;
    unsigned calls;  /* of macros in each other */
    unsigned levels; /* bodies and expressions in each other, through all calls */
    enum jsignal signal;
    int64_t clock; /* seconds since 1970 that strftime_now sees */
};

/* Python's own limit of calls is near; levels bound what a render needs of the stack. */
enum { JINJA_CALLS_MAX = 150, JINJA_LEVELS_MAX = 2000 };

/* False, with an error, when there are too many levels; else leave when done. */
static inline bool eng_jinja_enter_level(struct jinja_render_state *r)
{
    if (r->levels == JINJA_LEVELS_MAX) {
        eng_jinja_fail(r->m, "nested more than %d deep", JINJA_LEVELS_MAX);
        return false;
    }
    r->levels++;
    return true;
}
static inline void eng_jinja_leave_level(struct jinja_render_state *r)
{
    r->levels--;
}

/* jinja_render */
/* Runs a macro; what it writes goes to r->out. */
void eng_jinja_run_macro(struct jinja_render_state *r, const struct jmacro *macro,
                         const struct jinja_arguments *arguments);
void eng_jinja_run(struct jinja_render_state *r, struct jnode *const *nodes, size_t count);

/* jinja_lookup */
struct jv eng_jinja_undefined_of(struct jinja_render_state *r, struct jv name);
void eng_jinja_fail_undefined(struct jmem *m, struct jv v);
struct jv eng_jinja_slice(struct jinja_render_state *r, const struct jnode *node);

/* jinja_arithmetic */
bool eng_jinja_compares(struct jmem *m, enum jop op, struct jv a, struct jv b);
struct jv eng_jinja_signed(struct jmem *m, enum jop op, struct jv v); /* -v or +v */

/* jinja_eval */
struct jv eng_jinja_eval(struct jinja_render_state *r, const struct jnode *node);
/* Writes what the expression's str() is. */
void eng_jinja_emit(struct jinja_render_state *r, const struct jnode *node);
struct jv eng_jinja_attribute(struct jinja_render_state *r, struct jv object, struct jv name,
                              unsigned method_id);
struct jv eng_jinja_item(struct jinja_render_state *r, struct jv object, struct jv key);
struct jv eng_jinja_call(struct jinja_render_state *r, struct jv callee,
                         const struct jinja_arguments *arguments);
/* Calls as `node`, a JN_CALL, says, with one more argument by name, `caller`. */
struct jv eng_jinja_call_block(struct jinja_render_state *r, const struct jnode *node,
                               struct jv caller);
struct jv eng_jinja_filtered(struct jinja_render_state *r, const struct jnode *filters,
                             struct jv value);
struct jv eng_jinja_add(struct jmem *m, struct jv a, struct jv b);
struct jv eng_jinja_arithmetic(struct jmem *m, enum jop op, struct jv a, struct jv b);
