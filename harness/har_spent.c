/* Sums and names of times.
 * Called by har_run.c, har_results.c and the reports; must not know what is run. */
#include "har_spent.h"

#include <math.h>
#include <string.h>
#include <time.h>

static const char *const work_names[] = {
#define HAR_ROW_(name, text) #name,
    HAR_WORKS(HAR_ROW_)
#undef HAR_ROW_
};
static const char *const stage_names[] = {
#define HAR_ROW_(name) #name,
    HAR_STAGES(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_work_name(enum har_work work)
{
    return work_names[work];
}

const char *har_stage_name(enum har_stage stage)
{
    return stage_names[stage];
}

static int find(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

bool har_work_find(const char *name, enum har_work *out)
{
    const int index = find(work_names, HAR_WORK_COUNT, name);
    *out = index >= 0 ? (enum har_work)index : *out;
    return index >= 0;
}

bool har_stage_find(const char *name, enum har_stage *out)
{
    const int index = find(stage_names, HAR_STAGE_COUNT, name);
    *out = index >= 0 ? (enum har_stage)index : *out;
    return index >= 0;
}

double har_spent_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void har_spent_stage(struct har_spent *spent, enum har_stage stage, double elapsed_s)
{
    const double *const work = spent->work_s;
    double busy_s = har_spent_clock_s() + work[HAR_WORK_trainer] + work[HAR_WORK_reference] +
                    work[HAR_WORK_inputs];
    for (int i = 0; i < HAR_STAGE_COUNT; i++) {
        elapsed_s -= spent->stage_s[i];
        busy_s -= spent->stage_busy_s[i];
    }
    spent->stage_s[stage] += elapsed_s;
    spent->stage_busy_s[stage] += busy_s;
}

void har_spent_close(struct har_spent *spent, double elapsed_s, int cores)
{
    const double own_s = har_spent_clock_s();
    double *const work = spent->work_s;
    work[HAR_WORK_harness] = own_s - work[HAR_WORK_checks] - work[HAR_WORK_store];
    work[HAR_WORK_idle] = 0.0;
    double busy_s = 0.0;
    for (int i = 0; i < HAR_WORK_COUNT; i++) {
        busy_s += work[i];
    }
    work[HAR_WORK_idle] = fmax(0.0, elapsed_s * cores - busy_s);
}

double har_spent_per_minute(const struct har_spent *spent)
{
    const double seconds = spent->stage_s[HAR_STAGE_faults];
    return spent->cases > 0.0 && seconds > 0.0 ? 60.0 * spent->cases / seconds : (double)NAN;
}

double har_spent_percent(const struct har_spent *spent, enum har_work work)
{
    double all = 0.0;
    for (int i = 0; i < HAR_WORK_COUNT; i++) {
        all += spent->work_s[i];
    }
    return all > 0.0 ? 100.0 * spent->work_s[work] / all : (double)NAN;
}
