/* Makes bounds of healthy runs: scales by class and step, then one bound a kind of number.
 * Called by the harness and tests; must not know what a check compares. */
#include "orc_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one run had in one class at one step. A level has one value a step, in sum. */
struct sample {
    int run, step;
    double sum; /* of squared deviations; or the level */
    double max; /* largest deviation */
    size_t count;
};

struct samples {
    struct sample *items;
    size_t count, capacity;
};

struct orc_calibration {
    struct orc_classes classes;
    struct samples *samples; /* one per class */
    size_t samples_capacity;
    uint64_t *seen; /* fingerprints of the runs counted */
    size_t runs, seen_capacity;
    char recipe[128];
    bool recipe_hash_given;
    uint64_t recipe_hash;
    bool lockstep;  /* its references follow */
    bool exhausted; /* memory */
    bool alarmed;
    char alarm[320];
};

enum orc_status orc_calibration_create(orc_calibration **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? ORC_OK : ORC_EMEMORY;
}

void orc_calibration_free(orc_calibration *calibration)
{
    if (calibration == NULL) {
        return;
    }
    for (size_t i = 0; i < calibration->samples_capacity; i++) {
        free(calibration->samples[i].items);
    }
    free(calibration->samples);
    free(calibration->seen);
    orc_classes_fini(&calibration->classes);
    free(calibration);
}

size_t orc_calibration_runs(const orc_calibration *calibration)
{
    return calibration->runs;
}

void orc_calibration_alarm(struct orc_calibration *calibration, enum orc_check_id check, int step,
                           const char *detail)
{
    if (!calibration->alarmed) {
        calibration->alarmed = true;
        (void)snprintf(calibration->alarm, sizeof calibration->alarm, "%s at step %d: %s",
                       orc_check_name(check), step, detail);
    }
}

static bool samples_fit(struct orc_calibration *calibration, size_t class_count)
{
    if (class_count <= calibration->samples_capacity) {
        return true;
    }
    const size_t capacity = class_count * 2;
    struct samples *samples = realloc(calibration->samples, capacity * sizeof *samples);
    if (samples == NULL) {
        return false;
    }
    memset(samples + calibration->samples_capacity, 0,
           (capacity - calibration->samples_capacity) * sizeof *samples);
    calibration->samples = samples;
    calibration->samples_capacity = capacity;
    return true;
}

/* The sample of this run and step: the last one, as a run reports step after step; else a new one.
 */
static struct sample *sample_of(struct samples *list, int run, int step)
{
    if (list->count > 0 && list->items[list->count - 1].run == run &&
        list->items[list->count - 1].step == step) {
        return &list->items[list->count - 1];
    }
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        struct sample *items = realloc(list->items, capacity * sizeof *items);
        if (items == NULL) {
            return NULL;
        }
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count] = (struct sample){.run = run, .step = step};
    return &list->items[list->count++];
}

void orc_calibration_take(struct orc_calibration *calibration, const struct orc_key *key,
                          const struct orc_item *item)
{
    if (!isfinite(item->value)) {
        char detail[160];
        (void)snprintf(detail, sizeof detail, "%s %.80s is not finite", item->group, item->name);
        orc_calibration_alarm(calibration, key->check, item->step, detail);
        return;
    }
    const ptrdiff_t index = orc_classes_add(&calibration->classes, key);
    if (index == ORC_NO_CLASS || !samples_fit(calibration, calibration->classes.count)) {
        calibration->exhausted = true;
        return;
    }
    struct orc_class *class_ = &calibration->classes.items[index];
    class_->floor = item->floor > class_->floor ? item->floor : class_->floor;
    struct sample *sample = sample_of(&calibration->samples[index], (int)calibration->runs,
                                      key->pooled ? 0 : item->step);
    if (sample == NULL) {
        calibration->exhausted = true;
        return;
    }
    sample->sum += key->level ? item->value : item->value * item->value;
    sample->max = item->value > sample->max ? item->value : sample->max;
    sample->count++;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ b[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

/* Runs with the same batches and losses are the same run, whatever they are called. */
static uint64_t fingerprint(const orc_trace *trace)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < trace->step_count; i++) {
        const struct orc_step *step = &trace->steps[i];
        const struct orc_hash_list *ids = &step->batch[ORC_BATCH_ids];
        hash = mix(hash, &step->scalar[ORC_SCALAR_loss].value, sizeof(double));
        hash = mix(hash, &step->scalar[ORC_SCALAR_grad_norm].value, sizeof(double));
        if (ids->count > 0) {
            hash = mix(hash, ids->items, ids->count * sizeof *ids->items);
        }
    }
    return hash;
}

static bool is_counted(const struct orc_calibration *calibration, uint64_t print)
{
    for (size_t i = 0; i < calibration->runs; i++) {
        if (calibration->seen[i] == print) {
            return true;
        }
    }
    return false;
}

static bool count_run(struct orc_calibration *calibration, const orc_trace *subject, bool follows,
                      uint64_t print)
{
    if (calibration->runs == calibration->seen_capacity) {
        const size_t capacity = calibration->runs == 0 ? 32 : calibration->runs * 2;
        uint64_t *seen = realloc(calibration->seen, capacity * sizeof *seen);
        if (seen == NULL) {
            return false;
        }
        calibration->seen = seen;
        calibration->seen_capacity = capacity;
    }
    if (calibration->runs == 0) {
        (void)snprintf(calibration->recipe, sizeof calibration->recipe, "%s", subject->recipe);
        calibration->recipe_hash_given = subject->recipe_hash_given;
        calibration->recipe_hash = subject->recipe_hash;
        calibration->lockstep = follows;
    }
    calibration->seen[calibration->runs++] = print;
    return true;
}

/* Forgets what the run under way has reported. */
static void roll_back(struct orc_calibration *calibration)
{
    for (size_t i = 0; i < calibration->classes.count && i < calibration->samples_capacity; i++) {
        struct samples *list = &calibration->samples[i];
        while (list->count > 0 && list->items[list->count - 1].run == (int)calibration->runs) {
            list->count--;
        }
    }
}

static void collect(struct orc_calibration *calibration, const struct orc_case *c)
{
    calibration->alarmed = false;
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        struct orc_verdict verdict = {.fired = false};
        struct orc_probe probe = {.check = (enum orc_check_id)i,
                                  .verdict = &verdict,
                                  .calibration = calibration,
                                  .confounded_from = ORC_STEP_NEVER};
        /* Of the exact checks, those of the input matter here: numbers after a difference of
         * input say nothing about rounding. */
        if (orc_check_is_bound((enum orc_check_id)i) || i < ORC_CHECK_activations) {
            orc_check_run((enum orc_check_id)i)(c, &probe);
        }
    }
}

enum orc_status orc_calibration_add(orc_calibration *calibration, const struct orc_case *c,
                                    struct orc_error *error)
{
    const enum orc_status status = orc_case_check(c, NULL, error);
    if (status != ORC_OK) {
        return status;
    }
    if (calibration->runs > 0 && calibration->recipe_hash_given && c->subject->recipe_hash_given &&
        c->subject->recipe_hash != calibration->recipe_hash) {
        return orc_fail(ORC_EMISMATCH, error, "%s: not of recipe %s", c->subject->path,
                        calibration->recipe);
    }
    if (calibration->runs > 0 && calibration->lockstep != orc_trace_follows(c->reference)) {
        return orc_fail(ORC_EMISMATCH, error,
                        "%s: one calibration takes references that follow "
                        "their runs or others, not both",
                        c->subject->path);
    }
    const uint64_t print = fingerprint(c->subject);
    if (is_counted(calibration, print)) {
        return ORC_OK;
    }
    collect(calibration, c);
    if (calibration->alarmed) {
        roll_back(calibration);
        return orc_fail(ORC_EMISMATCH, error, "%s is not healthy: %s", c->subject->path,
                        calibration->alarm);
    }
    if (calibration->exhausted ||
        !count_run(calibration, c->subject, orc_trace_follows(c->reference), print)) {
        return orc_fail(ORC_EMEMORY, error, "host memory exhausted");
    }
    return ORC_OK;
}

static int by_step_and_run(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->step != y->step) {
        return (x->step > y->step) - (x->step < y->step);
    }
    return (x->run > y->run) - (x->run < y->run);
}

/* Root mean square of the deviations of all samples but one; without = count leaves none out. */
static double rms(const struct sample *samples, size_t count, size_t without, double floor_)
{
    double sum = 0.0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != without) {
            sum += samples[i].sum;
            n += samples[i].count;
        }
    }
    const double scale = n > 0 ? sqrt(sum / (double)n) : 0.0;
    return scale > floor_ ? scale : floor_;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 != 0 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* Centre and robust spread of the levels of all samples but one. work holds count numbers. */
static double spread(const struct sample *samples, size_t count, size_t without, double floor_,
                     double *work, double *centre)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != without) {
            work[n++] = samples[i].sum / (double)samples[i].count;
        }
    }
    *centre = median(work, n);
    for (size_t i = 0; i < n; i++) {
        work[i] = fabs(work[i] - *centre);
    }
    const double scale = ORC_MAD_TO_SIGMA * median(work, n);
    const double least = floor_ * fabs(*centre);
    if (scale > least) {
        return scale;
    }
    return least > 0.0 ? least : floor_;
}

/* Judges each run of one cell by the others; keeps the largest ratio of each run. */
static void leave_one_out(const struct orc_class *class_, const struct sample *samples,
                          size_t count, double *work, double *maxima)
{
    for (size_t i = 0; i < count; i++) {
        double centre = 0.0, ratio = 0.0;
        if (class_->key.level) {
            const double scale = spread(samples, count, i, class_->floor, work, &centre);
            ratio = fabs(samples[i].sum / (double)samples[i].count - centre) / scale;
        } else {
            ratio = samples[i].max / rms(samples, count, i, class_->floor);
        }
        if (ratio > maxima[samples[i].run]) {
            maxima[samples[i].run] = ratio;
        }
    }
}

/* The arrays of one class from its samples, sorted by step. Cells with too few runs stay empty. */
static bool finish_class(struct orc_bounds *bounds, struct orc_class *to,
                         const struct orc_class *from, struct samples *list, double *work)
{
    qsort(list->items, list->count, sizeof *list->items, by_step_and_run);
    to->floor = from->floor;
    to->first_step = list->items[0].step;
    to->step_count = (size_t)(list->items[list->count - 1].step - to->first_step) + 1;
    to->scales = orc_arena_take(&bounds->classes.arena, to->step_count, sizeof *to->scales);
    to->centres = orc_arena_take(&bounds->classes.arena, to->step_count, sizeof *to->centres);
    if (to->scales == NULL || to->centres == NULL) {
        return false;
    }
    to->items = SIZE_MAX;
    size_t begin = 0;
    while (begin < list->count) {
        const struct sample *samples = list->items + begin;
        size_t count = 0;
        while (begin + count < list->count && samples[count].step == samples[0].step) {
            to->items = samples[count].count < to->items ? samples[count].count : to->items;
            count++;
        }
        begin += count;
        /* A step that some healthy run lacks is no step every run must have. */
        if (count < ORC_RUNS_MIN || (!from->key.pooled && count < bounds->runs)) {
            continue;
        }
        const size_t at = (size_t)(samples[0].step - to->first_step);
        to->scales[at] = from->key.level
                             ? spread(samples, count, count, to->floor, work, &to->centres[at])
                             : rms(samples, count, count, to->floor);
        leave_one_out(from, samples, count, work, bounds->strata[to->stratum].maxima);
    }
    return true;
}

static bool join_stratum(struct orc_bounds *bounds, struct orc_class *class_)
{
    class_->stratum = orc_bounds_stratum(bounds, &class_->key);
    if (class_->stratum == SIZE_MAX) {
        return false;
    }
    struct orc_stratum *stratum = &bounds->strata[class_->stratum];
    if (stratum->maxima == NULL) {
        stratum->maxima = orc_arena_take(&bounds->classes.arena, bounds->runs, sizeof(double));
    }
    return stratum->maxima != NULL;
}

static bool finish_classes(struct orc_calibration *calibration, struct orc_bounds *bounds)
{
    bool ok = false;
    double *work = calloc(calibration->runs, sizeof *work);
    if (work == NULL) {
        goto done;
    }
    for (size_t i = 0; i < calibration->classes.count; i++) {
        const struct orc_class *from = &calibration->classes.items[i];
        if (calibration->samples[i].count == 0) {
            continue;
        }
        const ptrdiff_t index = orc_classes_add(&bounds->classes, &from->key);
        if (index == ORC_NO_CLASS || !join_stratum(bounds, &bounds->classes.items[index]) ||
            !finish_class(bounds, &bounds->classes.items[index], from, &calibration->samples[i],
                          work)) {
            goto done;
        }
    }
    ok = true;
done:
    free(work);
    return ok;
}

enum orc_status orc_calibration_finish(orc_calibration *calibration, orc_bounds **out,
                                       struct orc_error *error)
{
    if (calibration->runs < ORC_RUNS_MIN) {
        return orc_fail(ORC_EARG, error, "bounds need %d different healthy runs, there are %zu",
                        ORC_RUNS_MIN, calibration->runs);
    }
    struct orc_bounds *bounds = calloc(1, sizeof *bounds);
    if (bounds == NULL) {
        return orc_fail(ORC_EMEMORY, error, "host memory exhausted");
    }
    bounds->runs = calibration->runs;
    bounds->recipe = orc_arena_text(&bounds->classes.arena, calibration->recipe);
    bounds->recipe_hash_given = calibration->recipe_hash_given;
    bounds->recipe_hash = calibration->recipe_hash;
    bounds->lockstep = calibration->lockstep;
    bounds->quantile = ORC_QUANTILE;
    if (bounds->recipe == NULL || !finish_classes(calibration, bounds)) {
        orc_bounds_free(bounds);
        return orc_fail(ORC_EMEMORY, error, "host memory exhausted");
    }
    for (size_t i = 0; i < bounds->stratum_count; i++) {
        struct orc_stratum *stratum = &bounds->strata[i];
        double largest = 1.0; /* one scale: where healthy runs agree exactly, rounding is allowed */
        for (size_t r = 0; r < bounds->runs; r++) {
            largest = stratum->maxima[r] > largest ? stratum->maxima[r] : largest;
        }
        stratum->bound = orc_regime_margin(stratum->regime) * largest;
    }
    orc_bounds_seal(bounds);
    *out = bounds;
    return ORC_OK;
}

/* The cells of one class, whose samples are sorted by step. values holds a number a run. */
static void visit_class(const struct orc_class *class_, const struct samples *list, double *values,
                        orc_null_visit *visit, void *context)
{
    for (size_t begin = 0; begin < list->count;) {
        struct orc_null cell = {.check = class_->key.check,
                                .group = class_->key.group,
                                .class_name = class_->key.name,
                                .part = class_->key.part,
                                .step = list->items[begin].step,
                                .level = class_->key.level,
                                .values = values};
        for (; begin < list->count && list->items[begin].step == cell.step; begin++) {
            const struct sample *sample = &list->items[begin];
            values[cell.count++] = cell.level ? sample->sum / (double)sample->count : sample->max;
        }
        visit(context, &cell);
    }
}

enum orc_status orc_calibration_visit(const orc_calibration *calibration, orc_null_visit *visit,
                                      void *context, struct orc_error *error)
{
    double *values = calloc(calibration->runs + 1, sizeof *values);
    if (values == NULL) {
        return orc_fail(ORC_EMEMORY, error, "host memory exhausted");
    }
    for (size_t i = 0; i < calibration->classes.count; i++) {
        visit_class(&calibration->classes.items[i], &calibration->samples[i], values, visit,
                    context);
    }
    free(values);
    return ORC_OK;
}
