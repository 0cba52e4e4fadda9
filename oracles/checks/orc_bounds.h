/* Classes of numbers, the scale of each at each step, and the bound of each check. Internal.
 * Made by orc_calibration.c, used by the probe, stored by orc_bounds_json.c. */
#pragma once

#include "orc_arena.h"
#include "orc_check.h"

enum { ORC_BOUNDS_SCHEMA = 1 };

/* Fewer healthy runs than this say nothing about spread: with two, leaving one out leaves one. */
enum { ORC_RUNS_MIN = 3 };

/* The bound is ORC_MARGIN times the largest of the healthy runs' numbers. Chosen before any run was
 * judged. Runs differ by a factor that is roughly log-normal; with a log spread of 0.5 the largest
 * of 20 lies near exp(1.87 * 0.5), and 4 times that is 4.6 standard deviations from the centre
 * (2e-6 a run and check); with a spread of 1, 3.3 (6e-4). Arithmetic faults of interest exceed
 * healthy rounding by 100 times and more, so the margin costs little. */
#define ORC_MARGIN 4.0

/* The stated quantile of the healthy runs' numbers: their maximum. */
#define ORC_QUANTILE 1.0

/* Turns a median absolute deviation into the standard deviation of a normal distribution. */
#define ORC_MAD_TO_SIGMA 1.4826022185056018

/* Numbers that share one scale. A deviation is compared with 0, a level with its healthy centre. */
struct orc_key {
    enum orc_check_id check;
    bool level;  /* judged by |value - centre| / scale instead of value / scale */
    bool pooled; /* one scale for all steps */
    const char *group; /* "gradients" */
    const char *name;  /* "model.layers.*.mlp.up_proj.weight" */
    const char *part;  /* "norm", "projection", "" */
};

struct orc_class {
    struct orc_key key; /* strings owned by the table's arena */
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
    double quantile, margin;
    double bound[ORC_CHECK_COUNT];   /* 0 = no bound */
    double *maxima[ORC_CHECK_COUNT]; /* one number per healthy run, in the classes' arena */
    char summary[384];
};

/* Index into the arrays of a class, ORC_NO_CLASS when it has no scale at this step. */
ptrdiff_t orc_class_cell(const struct orc_class *class_, int step);
/* Offsets and the summary, once classes and bounds are in place. */
void orc_bounds_seal(struct orc_bounds *bounds);
