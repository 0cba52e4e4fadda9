/* Questions to a trace in memory. Called by checks and by the harness; must not know verdicts. */
#include "orc_trace.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A name per row of an X list. */
#define ORC_NAMES_(function, type, list, count)                                                    \
    const char *function(enum type index)                                                          \
    {                                                                                              \
        static const char *const names[] = {list(ORC_ROW_)};                                       \
        return (size_t)index < (size_t)(count) ? names[index] : "?";                               \
    }
#define ORC_ROW_(name) #name,
ORC_NAMES_(orc_group_name, orc_group, ORC_GROUPS, ORC_GROUP_COUNT)
ORC_NAMES_(orc_batch_name, orc_batch, ORC_BATCHES, ORC_BATCH_COUNT)
ORC_NAMES_(orc_hash_name, orc_hash, ORC_HASHES, ORC_HASH_COUNT)
ORC_NAMES_(orc_scalar_name, orc_scalar, ORC_SCALARS, ORC_SCALAR_COUNT)
#undef ORC_ROW_

void orc_trace_free(orc_trace *trace)
{
    if (trace == NULL) {
        return;
    }
    orc_arena_fini(&trace->arena);
    free(trace->steps);
    free(trace->by_id);
    free(trace);
}

const char *orc_trace_recipe(const orc_trace *trace)
{
    return trace->recipe;
}

int orc_trace_first_step(const orc_trace *trace)
{
    return trace->step_count > 0 ? trace->steps[0].number : trace->first_step;
}

int orc_trace_last_step(const orc_trace *trace)
{
    return trace->step_count > 0 ? trace->steps[trace->step_count - 1].number : 0;
}

bool orc_trace_ended(const orc_trace *trace)
{
    return trace->ended;
}

int orc_trace_fault_reached(const orc_trace *trace)
{
    return trace->fault_reached;
}

int orc_trace_site_reached(const orc_trace *trace, const char *site)
{
    for (size_t i = 0; i < trace->reach_count; i++) {
        if (strcmp(trace->reach[i].site, site) == 0) {
            return trace->reach[i].step;
        }
    }
    return -1;
}

size_t orc_trace_features(const orc_trace *trace, const char *const **out)
{
    *out = trace->features;
    return trace->feature_count;
}

static int step_compare(const void *key, const void *element)
{
    const int number = *(const int *)key;
    const struct orc_step *step = element;
    return (number > step->number) - (number < step->number);
}

const struct orc_step *orc_trace_step(const orc_trace *trace, int number)
{
    const long long guess = (long long)number - orc_trace_first_step(trace);
    if (guess >= 0 && (size_t)guess < trace->step_count && trace->steps[guess].number == number) {
        return &trace->steps[guess];
    }
    if (trace->step_count == 0) {
        return NULL;
    }
    return bsearch(&number, trace->steps, trace->step_count, sizeof *trace->steps, step_compare);
}

static int record_compare(const void *key, const void *element)
{
    const struct orc_record *const *record = element;
    return strcmp(key, (*record)->id);
}

const struct orc_record *orc_trace_record(const orc_trace *trace, const char *id)
{
    if (trace->record_count == 0) {
        return NULL;
    }
    const struct orc_record *const *found =
        bsearch(id, trace->by_id, trace->record_count, sizeof *trace->by_id, record_compare);
    return found != NULL ? *found : NULL;
}

static double scalar(const orc_trace *trace, int number, enum orc_scalar which)
{
    const struct orc_step *step = orc_trace_step(trace, number);
    return step != NULL && step->scalar[which].given ? step->scalar[which].value : (double)NAN;
}

double orc_trace_loss(const orc_trace *trace, int step)
{
    return scalar(trace, step, ORC_SCALAR_loss);
}

double orc_trace_eval_loss(const orc_trace *trace, int step)
{
    return scalar(trace, step, ORC_SCALAR_eval_loss);
}

bool orc_trace_follows(const orc_trace *trace)
{
    return trace != NULL && strcmp(trace->mode, "lockstep") == 0;
}

double orc_trace_roundoff(const orc_trace *trace)
{
    static const struct {
        const char *precision;
        int bits; /* of the significand, the hidden one included */
    } known[] = {{"fp32", 24}, {"fp64", 53}, {"bf16", 8}, {"fp16", 11}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (trace->precision != NULL && strcmp(trace->precision, known[i].precision) == 0) {
            return ldexp(1.0, -known[i].bits);
        }
    }
    return ldexp(1.0, -24); /* a stack that does not say: single precision */
}

bool orc_same_number(struct orc_number a, struct orc_number b)
{
    if (!a.given || !b.given) {
        return true;
    }
    if (isnan(a.value) || isnan(b.value)) {
        return isnan(a.value) && isnan(b.value);
    }
    return memcmp(&a.value, &b.value, sizeof a.value) == 0;
}

/* Name of what differs between the two steps, NULL when nothing does. Besides the four hashes the
 * reported numbers count as output: an evaluation loss is in no hash. */
static const char *step_difference(const struct orc_step *a, const struct orc_step *b)
{
    for (int h = 0; h < ORC_HASH_COUNT; h++) {
        if (a->hash_given[h] && b->hash_given[h] && a->hash[h] != b->hash[h]) {
            return orc_hash_name((enum orc_hash)h);
        }
    }
    for (int s = 0; s < ORC_SCALAR_race_count; s++) {
        if (!orc_same_number(a->scalar[s], b->scalar[s])) {
            return orc_hash_name(ORC_HASH_output);
        }
    }
    return NULL;
}

int orc_trace_first_difference(const orc_trace *a, const orc_trace *b, const char **which)
{
    const int first_a = orc_trace_first_step(a), first_b = orc_trace_first_step(b);
    const int last_a = orc_trace_last_step(a), last_b = orc_trace_last_step(b);
    const int first = first_a > first_b ? first_a : first_b;
    const int last = last_a < last_b ? last_a : last_b;
    const char *name = NULL;
    int step = first;
    for (; step <= last && name == NULL; step++) {
        const struct orc_step *x = orc_trace_step(a, step), *y = orc_trace_step(b, step);
        if (x != NULL && y != NULL) {
            name = step_difference(x, y);
        } else if (x != y) {
            name = "length";
        }
    }
    if (name == NULL && last_a != last_b) {
        name = "length";
        step++;
    }
    if (which != NULL) {
        *which = name != NULL ? name : "";
    }
    return name != NULL ? step - 1 : 0;
}
