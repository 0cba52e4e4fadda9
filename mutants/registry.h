/* The catalogue as data: what can be armed, where it sits, what it imitates.
 * Linked by the trainer and the harness; holds no state and must not know any other folder. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MUT_FAMILIES(X)                                                                            \
    X(TEMPLATE, template) X(TOKENIZER, tokenizer) X(MASK, mask) X(DATA, data) X(LOSS, loss)        \
    X(NUMERICS, numerics) X(OPTIMIZER, optimizer) X(SCHEDULE, schedule) X(STREAM, stream)          \
    X(ALLOCATOR, allocator) X(HOST, host) X(CHECKPOINT, checkpoint) X(PRECISION, precision)
#define MUT_CLASSES(X)                                                                             \
    X(BYTES, bytes) X(IDS, ids) X(LABELS, labels) X(ACTIVATIONS, activations) X(LOSS, loss)        \
    X(GRADIENT, gradient) X(UPDATE, update) X(LATER, later) X(MEMORY, memory) X(ORDER, order)      \
    X(METRIC, metric)

enum mut_family {
#define MUT_ROW_(upper, lower) MUT_FAMILY_##upper,
    MUT_FAMILIES(MUT_ROW_)
#undef MUT_ROW_
    MUT_FAMILY_COUNT
};

enum mut_class {
#define MUT_ROW_(upper, lower) MUT_CLASS_##upper,
    MUT_CLASSES(MUT_ROW_)
#undef MUT_ROW_
    MUT_CLASS_COUNT
};

enum mut_expect { MUT_EXPECT_KILL, MUT_EXPECT_EQUIVALENT, MUT_EXPECT_GAP };

struct mut_dose_range {
    const char *unit; /* NULL: the fault has no dose */
    float smallest, usual, largest;
};

struct mut_fault {
    uint32_t number;
    const char *id;   /* "site.name" */
    const char *site; /* "site" */
    enum mut_family family;
    enum mut_class class_;
    enum mut_expect expect;
    const char *expect_reason; /* NULL for KILL */
    struct mut_dose_range dose;
    const char *faulty;  /* text of the faulty expression */
    const char *trigger; /* blank separated features, "" = none */
    const char *why;
    const char *source;  /* "" = none */
};

/* Where a site stands; generated from the sources at build time. */
struct mut_site_info {
    const char *site;
    const char *file; /* path from the top of the tree */
    int line;
    const char *healthy; /* text of the healthy expression */
};

size_t mut_fault_count(void);
const struct mut_fault *mut_fault_at(size_t index);             /* NULL past the end */
const struct mut_fault *mut_fault_find(const char *id);         /* NULL when unknown */
const struct mut_fault *mut_fault_by_number(uint32_t number);   /* NULL when unknown */
size_t mut_site_count(void);
const struct mut_site_info *mut_site_at(size_t index);          /* index = enum mut_site */
const struct mut_site_info *mut_site_find(const char *site);    /* NULL when unknown */
const char *mut_family_name(enum mut_family family);
const char *mut_class_name(enum mut_class class_);
const char *mut_expect_name(enum mut_expect expect);
