/* Groups the stored cells of the null distribution and prints their quantiles.
 * Called by `faultline null`; must not know faults. */
#include "har_null.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_stats.h"

/* The group under way: the values of all steps of one recipe, check, class and part. */
struct group {
    struct har_text *out;
    char name[512]; /* "recipe check class part", aligned */
    double *values; /* owned */
    size_t count, capacity, cells;
    double largest;
    int largest_step;
    bool failed;
};

static void finish_group(struct group *g)
{
    if (g->count > 0) {
        const double median = har_stats_quantile(g->values, g->count, 0.5);
        const double high = har_stats_quantile(g->values, g->count, 0.9);
        const double higher = har_stats_quantile(g->values, g->count, 0.99);
        har_text_addf(g->out, "%s %6zu %10.3g %10.3g %10.3g %10.3g %5d\n", g->name, g->count,
                      median, high, higher, g->largest, g->largest_step);
    }
    g->count = g->cells = 0;
    g->largest = -HUGE_VAL;
}

static void add_value(struct group *g, double value, int step)
{
    if (g->count == g->capacity) {
        const size_t capacity = g->capacity == 0 ? 256 : 2 * g->capacity;
        double *const more = realloc(g->values, capacity * sizeof *more);
        if (more == NULL) {
            g->failed = true;
            return;
        }
        g->values = more;
        g->capacity = capacity;
    }
    g->values[g->count++] = value;
    if (value > g->largest) {
        g->largest = value;
        g->largest_step = step;
    }
}

/* Columns: recipe, check, class, part, step, values. */
static void add_cell(void *context, int columns, char **v)
{
    struct group *const g = context;
    char name[sizeof g->name];
    (void)columns;
    if (v[5] == NULL) {
        return;
    }
    /* Deviations of the first step are relative, later ones stand in units of the drift. */
    const int step = v[4] != NULL ? atoi(v[4]) : 0;
    snprintf(name, sizeof name, "%-14s %-11s %-58s %-18s %-5s", v[0], v[1], v[2], v[3],
             step == 1 ? "first" : "later");
    if (strcmp(name, g->name) != 0) {
        finish_group(g);
        memcpy(g->name, name, sizeof name);
    }
    json_t *const list = json_loads(v[5], 0, NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        add_value(g, json_number_value(json_array_get(list, i)), step);
    }
    json_decref(list);
}

enum har_status har_null_text(har_store *store, struct har_text *out, struct har_error *error)
{
    struct group g = {.out = out, .largest = -HUGE_VAL};
    bool has = false;
    enum har_status status = har_store_has_table(store, "null_cell", &has, error);
    if (status != HAR_OK || !has) {
        return status;
    }
    har_text_addf(out, "%-14s %-11s %-58s %-18s %-5s %6s %10s %10s %10s %10s %5s\n", "recipe",
                  "check", "tensor class", "part", "steps", "values", "median", "90 %", "99 %",
                  "largest", "step");
    status =
        har_store_query(store,
                        "SELECT recipe, check_name, class, part, step, deviations FROM null_cell"
                        " ORDER BY recipe, check_name, class, part, step",
                        add_cell, &g, error);
    finish_group(&g);
    free(g.values);
    return g.failed ? har_fail(error, HAR_EMEMORY, "no memory for the null distribution") : status;
}
