/* A workplace for tests of faultline-train: a scratch folder, a small recipe, runs, traces read
 * back. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct bench {
    char dir[64];
    char recipe[96];   /* the recipe's path */
    char weights[96];  /* its initial weights */
    char errors[4096]; /* what the last run wrote to stderr */
};

/* What differs from the small recipe; zero = as it is. */
struct bench_recipe {
    int oom_at;
    int steps;              /* default 6 */
    const char *train;      /* data file instead of the corpus's */
    const char *replace[2]; /* one text replaced by another */
};

/* Makes folder, recipe and weights. */
void bench_open(struct bench *b, const struct bench_recipe *r);
void bench_close(struct bench *b); /* removes the folder */
/* Runs `program` with arguments made from format, in the bench's folder; returns its exit status,
 * or 128 + signal. */
int bench_run(struct bench *b, const char *program, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Trains with the usual arguments before `format`. */
int bench_train(struct bench *b, const char *program, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The lines of a trace in the bench's folder, an array of objects; the caller decrefs. */
json_t *bench_trace(struct bench *b, const char *name);
/* The line of a step, or NULL. */
const json_t *bench_step(const json_t *trace, int step);
const json_t *bench_end(const json_t *trace); /* NULL when it has none */
/* Compares the four hashes of all common steps. Returns the first step that differs, 0 = none, and
 * adds the number of hashes compared. */
int bench_difference(const json_t *a, const json_t *b, size_t *compared);
size_t bench_races(const json_t *trace);
/* Whether two files of the folder have the same bytes, and any. */
bool bench_same_file(struct bench *b, const char *one, const char *other);
