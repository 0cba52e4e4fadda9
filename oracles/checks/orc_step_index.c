/* Steps of a trace in order of their numbers, records in order of their ids. Called by
 * orc_trace_read.c; must not know the trace's format. */
#include <stdlib.h>
#include <string.h>

#include "orc_step_read.h"

static int by_number(const void *a, const void *b)
{
    const struct orc_step *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_id(const void *a, const void *b)
{
    const struct orc_record *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

bool orc_steps_index(struct orc_trace *t)
{
    bool sorted = true;
    for (size_t i = 1; i < t->step_count; i++) {
        sorted = sorted && t->steps[i - 1].number < t->steps[i].number;
    }
    if (!sorted) {
        qsort(t->steps, t->step_count, sizeof *t->steps, by_number);
    }
    size_t kept = 0, records = 0;
    for (size_t i = 0; i < t->step_count; i++) {
        if (kept > 0 && t->steps[kept - 1].number == t->steps[i].number) {
            t->steps[kept - 1].repeats++;
            continue;
        }
        if (kept != i) {
            t->steps[kept] = t->steps[i];
        }
        records += t->steps[kept].record_count;
        kept++;
    }
    t->step_count = kept;
    t->by_id = malloc((records > 0 ? records : 1) * sizeof *t->by_id);
    if (t->by_id == NULL) {
        return false;
    }
    for (size_t i = 0; i < kept; i++) {
        for (size_t r = 0; r < t->steps[i].record_count; r++) {
            t->by_id[t->record_count++] = &t->steps[i].records[r];
        }
    }
    qsort(t->by_id, t->record_count, sizeof *t->by_id, by_id);
    return true;
}
