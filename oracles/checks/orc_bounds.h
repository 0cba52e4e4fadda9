/* Classes of numbers, the scale of each at each step, and the bound of each check. Internal.
 * Made by orc_calibration.c, used by the probe, stored by orc_bounds_json.c. */
#pragma once

#include "orc_arena.h"
#include "orc_check.h"

enum { ORC_BOUNDS_SCHEMA = 2 };

/* Fewer healthy runs than this say nothing about spread: with two, leaving one out leaves one. */
enum { ORC_RUNS_MIN = 3 };

/* A bound is a margin times the largest of the healthy runs' numbers. Where the tail of these is no
 * heavier than a power law with index a, a further healthy run lies above m times the largest of n
 * with probability 1 / ((n + 1) m^a) at most, whatever the scale: exact for a power law. Tails were
 * measured on 644 healthy runs of 14 recipes (Hill's index of the largest 20), no fault among them.
 *
 * ORC_MARGIN is for numbers that rounding alone makes: a is 6 to 19, so 1e-5 a run and bound at
 * most, for n = 24.
 *
 * ORC_MARGIN_DRIFT is for numbers after the first step divided by the drift, and for what AdamW
 * made of the first gradient: a is 2.6 to 15, so 1e-4 at most; the largest of all those runs is
 * 0.35 of a bound that 24 of them make. They are a mixture: AdamW turns the rounding of an element
 * with a gradient near zero into a step that goes astray, in about one run of a hundred by enough
 * to be seen everywhere. How far an element goes astray has a tail with index 1, up to two whole
 * steps, so a number that follows it undivided would need a margin of hundreds.
 *
 * ORC_MARGIN_LOSS is for losses after the first step. They stay undivided, so that losses are
 * judged by losses alone: a is 1.4, so 6e-5. */
#define ORC_MARGIN 4.0
#define ORC_MARGIN_DRIFT 10.0
#define ORC_MARGIN_LOSS 100.0

/* Where rounding alone acts (first step: same weights bit for bit), where AdamW has amplified it
 * (amplified: the typical update of the first step; later: what follows it, and single tensors of
 * updates and parameters in every step; undivided: losses after the first step), and numbers that
 * neither reaches (any). */
#define ORC_REGIMES(X) X(first) X(amplified) X(later) X(undivided) X(any)
enum orc_regime {
#define ORC_ROW_(name) ORC_REGIME_##name,
    ORC_REGIMES(ORC_ROW_)
#undef ORC_ROW_
        ORC_REGIME_COUNT
};
const char *orc_regime_name(enum orc_regime regime);
double orc_regime_margin(enum orc_regime regime);

/* The stated quantile of the healthy runs' numbers: their maximum. */
#define ORC_QUANTILE 1.0

/* Turns a median absolute deviation into the standard deviation of a normal distribution. */
#define ORC_MAD_TO_SIGMA 1.4826022185056018

/* Numbers that share one scale. A deviation is compared with 0, a level with its healthy centre. */
struct orc_key {
    enum orc_check_id check;
    enum orc_regime regime;
    bool level;        /* judged by |value - centre| / scale instead of value / scale */
    bool pooled;       /* one scale for all steps */
    const char *group; /* "gradients" */
    const char *name;  /* "model.layers.*.mlp.up_proj.weight" */
    const char *part;  /* "norm", "projection", "loss": with check and regime, one bound */
};

/* Numbers that share one bound: one kind of number of one check in one regime. */
struct orc_stratum {
    enum orc_check_id check;
    enum orc_regime regime;
    const char *part; /* owned by the classes' arena */
    double bound;     /* in scales */
    double *maxima;   /* one number per healthy run, in the classes' arena */
};

struct orc_class {
    struct orc_key key; /* strings owned by the table's arena */
    size_t stratum;     /* in the bounds */
    double floor;       /* smallest scale, relative rounding of the numbers compared */
    int first_step;     /* of the arrays; 0 when pooled */
    size_t step_count;
    double *scales;  /* 0 = not calibrated at this step */
    double *centres; /* levels only */
    size_t items;    /* numbers a healthy step had at least */
    size_t offset;   /* of the first step in arrays over all classes and steps */
};

/* Hash table of classes; index of a class never changes. Zero-initialise. */
struct orc_classes {
    struct orc_arena arena;
    struct orc_class *items;
    size_t count, capacity;
    size_t *slots; /* index + 1, 0 = empty */
    size_t slot_count;
};

enum { ORC_NO_CLASS = -1 };
ptrdiff_t orc_classes_find(const struct orc_classes *classes, const struct orc_key *key);
/* Finds or adds; ORC_NO_CLASS when memory is exhausted. */
ptrdiff_t orc_classes_add(struct orc_classes *classes, const struct orc_key *key);
void orc_classes_fini(struct orc_classes *classes);

struct orc_bounds {
    struct orc_classes classes;
    size_t cells; /* steps of all classes */
    size_t runs;
    char *recipe; /* name, in the classes' arena */
    bool recipe_hash_given;
    uint64_t recipe_hash;
    bool lockstep; /* of references that follow; good for no others */
    double quantile;
    struct orc_stratum *strata;
    size_t stratum_count;
    bool has_bound[ORC_CHECK_COUNT];
    char summary[384];
};
/* Finds or adds, with bound 0; SIZE_MAX when memory is exhausted. */
size_t orc_bounds_stratum(struct orc_bounds *bounds, const struct orc_key *key);

/* Index into the arrays of a class, ORC_NO_CLASS when it has no scale at this step. */
ptrdiff_t orc_class_cell(const struct orc_class *class_, int step);
/* Offsets and the summary, once classes and bounds are in place. */
void orc_bounds_seal(struct orc_bounds *bounds);
