/* Values of a template, the memory they live in, and text with its origin.
 * Used by jinja_*; must not know syntax trees. All values of a render lie in its arena and die with
 * it, so values are copied freely and nothing is freed one by one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "messages.h"

enum jinja_type {
    J_MISSING, /* no value at all: an argument not given, a name not set */
    J_UNDEFINED,
    J_NONE,
    J_BOOL,
    J_INT,
    J_FLOAT,
    J_STR,
    J_LIST,
    J_TUPLE,
    J_VIEW, /* of a dict: dict_items, dict_keys, dict_values */
    J_ITER, /* what Python's generators and iterators are: read once */
    J_RANGE,
    J_DICT,
    J_NAMESPACE,
    J_MACRO,
    J_LOOP,
    J_FUNCTION, /* range, namespace, ... */
    J_METHOD    /* a method and its object */
};

/* Flags of a J_STR. */
enum {
    JS_CONTENT = 1, /* all of it was written by the data, not by the template */
    JS_MIXED = 2,   /* marks say what of it; they lie before its bytes */
    JS_MARKUP = 4,  /* markupsafe's Markup */
    JS_ASCII = 8    /* known to hold only ASCII */
};

struct jv {
    uint8_t type, flags;
    uint16_t id;   /* of a J_FUNCTION */
    uint32_t size; /* bytes of a string */
    union {
        bool b;
        int64_t i;
        double f;
        const char *s; /* bytes of a string, name of an undefined */
        struct jlist *list;
        struct jdict *dict;
        struct jmacro *macro;
        struct jloop *loop;
        struct jmethod *method;
        struct jrange *range;
    } as;
};

struct jlist {
    struct jv *items;
    size_t count, capacity;
    size_t read;      /* J_ITER: items already taken */
    const char *kind; /* J_VIEW and J_ITER: Python's name for it */
};

struct jdict {
    struct jv *keys, *values;
    size_t count, capacity;
};

struct jrange {
    int64_t start, step;
    int64_t stop;
};

struct jloop {
    const struct jlist *items;
    size_t index0;
    struct jv changed; /* arguments of the last loop.changed() */
};

struct jmethod {
    struct jv object;
    int id;
};

/* A piece of a string or of the output, in bytes. */
enum jmark_kind { JMARK_CONTENT, JMARK_ANSWER };
struct jmark {
    size_t start, end;
    enum jmark_kind kind;
};
struct jmarks {
    size_t count;
    struct jmark items[];
};

/* Text that grows: the output, or what a block captures. Zero-initialise; kept between renders. */
struct jbuf {
    char *bytes;
    size_t size, capacity;
    struct jmark *marks;
    size_t mark_count, mark_capacity;
};

enum { JINJA_BUFFERS_MAX = 256, JINJA_RESERVE = 64 << 10 };

/* Memory and limits of a render. */
struct jmem {
    struct jchunk *chunks; /* the one in use first */
    char *at, *end;        /* of it */
    size_t used, used_max; /* bytes handed out, and how many may be */
    size_t output_max;     /* bytes of one buffer */
    uint64_t steps, steps_max;
    uint64_t (*now_ms)(void); /* NULL: no limit of time */
    uint64_t deadline_ms;
    struct jbuf buffers[JINJA_BUFFERS_MAX];
    size_t open;   /* buffers in use; the last is written to */
    bool failed;   /* the first failure stands in `cause` and ends the render */
    char *reserve; /* JINJA_RESERVE bytes for what a failed render still makes */
    size_t reserve_used;
    char cause[256];
    uint32_t at_line, at_column; /* of the construct at work */
    uint32_t line, column;       /* of the failure */
};

/* ---- memory */
/* One small object. Never NULL: when memory is used up the render fails, and the few objects asked
 * for until it ends come from a reserve. */
void *eng_jinja_alloc(struct jmem *m, size_t bytes);
/* `count` items of `item_bytes`; NULL when refused (the render has failed) or count is 0. */
void *eng_jinja_array(struct jmem *m, size_t count, size_t item_bytes);
bool eng_jinja_mem_init(struct jmem *m); /* false: no memory */
void eng_jinja_mem_reset(struct jmem *m);
void eng_jinja_mem_fini(struct jmem *m);
/* Notes the first failure of a render. */
void eng_jinja_fail(struct jmem *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One step of work; fails the render when there were too many or time is up. True: go on. */
bool eng_jinja_step(struct jmem *m);

/* ---- growing text */
struct jbuf *eng_jinja_open(struct jmem *m);
/* Closes the newest buffer; what it holds becomes a string. */
struct jv eng_jinja_close(struct jmem *m);
void eng_jinja_drop(struct jmem *m); /* closes it and forgets */
void eng_jinja_put(struct jmem *m, struct jbuf *b, const char *bytes, size_t size);
void eng_jinja_put_str(struct jmem *m, struct jbuf *b, struct jv string);
void eng_jinja_mark(struct jmem *m, struct jbuf *b, size_t start, enum jmark_kind kind);

/* ---- values */
static inline struct jv jv_none(void)
{
    return (struct jv){.type = J_NONE};
}
static inline struct jv jv_missing(void)
{
    return (struct jv){.type = J_MISSING};
}
static inline struct jv jv_bool(bool b)
{
    return (struct jv){.type = J_BOOL, .as.b = b};
}
static inline struct jv jv_int(int64_t i)
{
    return (struct jv){.type = J_INT, .as.i = i};
}
static inline struct jv jv_float(double f)
{
    return (struct jv){.type = J_FLOAT, .as.f = f};
}
/* Borrowed bytes. */
static inline struct jv jv_str(const char *bytes, size_t size, uint8_t flags)
{
    return (struct jv){.type = J_STR, .flags = flags, .size = (uint32_t)size, .as.s = bytes};
}
static inline struct jv jv_undefined(const char *name)
{
    return (struct jv){.type = J_UNDEFINED, .as.s = name};
}
static inline bool jv_is(struct jv v, const char *text, size_t size)
{
    return v.size == size && __builtin_memcmp(v.as.s, text, size) == 0;
}
static inline struct eng_text jv_text(struct jv v)
{
    return (struct eng_text){v.as.s, v.size};
}

struct jv eng_jinja_literal(const char *text); /* borrowed, ASCII */
struct jv eng_jinja_copy(struct jmem *m, const char *bytes, size_t size, uint8_t flags);
struct jv eng_jinja_list(struct jmem *m, enum jinja_type type, size_t capacity);
void eng_jinja_append(struct jmem *m, struct jv list, struct jv item);
struct jv eng_jinja_dict(struct jmem *m, size_t capacity);
/* Replaces the value of an equal key. */
void eng_jinja_set(struct jmem *m, struct jv dict, struct jv key, struct jv value);
/* NULL when absent. */
const struct jv *eng_jinja_get(const struct jdict *dict, struct jv key);
const struct jv *eng_jinja_get_text(const struct jdict *dict, const char *key, size_t size);

const char *eng_jinja_type_name(struct jv v); /* as Python calls it */
bool eng_jinja_truth(struct jmem *m, struct jv v);
bool eng_jinja_equal(struct jmem *m, struct jv a, struct jv b);
/* Python's ordering; fails the render for types that have none. */
int eng_jinja_compare(struct jmem *m, struct jv a, struct jv b);
bool eng_jinja_contains(struct jmem *m, struct jv item, struct jv container);
bool eng_jinja_is_number(struct jv v);            /* bool, int or float */
bool eng_jinja_int_of(struct jv v, int64_t *out); /* bool or int */
double eng_jinja_float_of(struct jv v);
/* What iterating over a value gives, as a list; fails for what cannot be iterated. */
const struct jlist *eng_jinja_items_of(struct jmem *m, struct jv v);
bool eng_jinja_is_iterable(struct jv v);
/* Python's len(); fails the render without one. */
size_t eng_jinja_length(struct jmem *m, struct jv v);
bool eng_jinja_has_length(struct jv v);

/* ---- text as Python sees it, by code points */
size_t eng_jinja_points(struct jv s);
/* Bytes from .. to - 1 of a string, with their origin. */
struct jv eng_jinja_part(struct jmem *m, struct jv s, size_t from, size_t to);
/* Byte offset of code point `index`, at most the size. */
size_t eng_jinja_offset(struct jv s, size_t index);
struct jv eng_jinja_joined(struct jmem *m, const struct jv *strings, size_t count);
/* Byte place of `what` in s at or after `from`; SIZE_MAX when there is none. */
size_t eng_jinja_find(struct jv s, struct jv what, size_t from);
size_t eng_jinja_find_last(struct jv s, struct jv what, size_t end);
struct jv eng_jinja_strip(struct jmem *m, struct jv s, struct jv chars, bool left, bool right);
enum jinja_case { JCASE_UPPER, JCASE_LOWER, JCASE_TITLE, JCASE_CAPITAL, JCASE_SWAP, JCASE_FOLD };
struct jv eng_jinja_cased(struct jmem *m, struct jv s, enum jinja_case which);
/* Calls that need one property of every character: str.isdigit() and so on. */
enum jinja_class {
    JCLASS_ALPHA,
    JCLASS_DIGIT,
    JCLASS_DECIMAL,
    JCLASS_NUMERIC,
    JCLASS_ALNUM,
    JCLASS_SPACE,
    JCLASS_LOWER,
    JCLASS_UPPER,
    JCLASS_ASCII
};
bool eng_jinja_all_of(struct jv s, enum jinja_class which);
unsigned eng_jinja_point(const char *bytes, size_t *length);
struct jv eng_jinja_escaped(struct jmem *m, struct jv s);

/* ---- text of values */
struct jv eng_jinja_str(struct jmem *m, struct jv v);                  /* Python's str() */
void eng_jinja_put_value(struct jmem *m, struct jbuf *b, struct jv v); /* its str() */
void eng_jinja_put_repr(struct jmem *m, struct jbuf *b, struct jv v, unsigned depth);
struct jinja_json {
    bool ensure_ascii, sort_keys;
    struct jv indent;                        /* none, a number or a text */
    struct jv item_separator, key_separator; /* texts */
};
struct jv eng_jinja_json(struct jmem *m, struct jv v, const struct jinja_json *how);
enum { JINJA_FLOAT_BYTES = 64 };
size_t eng_jinja_float_repr(double f, char out[JINJA_FLOAT_BYTES]);
