/* Synthetic traces, see the header. The numbers follow no model; their noise follows what single
 * precision does: relative to the norm, larger in later steps, different by class and by run.
 * Used by the orc_check tests; must not know the comparator's insides. */
#include "orc_check_synth.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

enum { GROUPS = 6, SLOTS = 8, TENSORS = 2 + 3 * SYNTH_LAYERS, TAPS = 1 + 2 * SYNTH_LAYERS };
enum { ACTIVATIONS, GRADIENTS, UPDATES, PARAMETERS, MOMENT1, MOMENT2 };
static const char *const group_names[GROUPS] = {"activations", "gradients", "updates",
                                                "parameters",  "moment1",   "moment2"};
/* log-normal spread of the noise between runs */
static const double run_sigma = 0.3;

const char *synth_plant_name(enum synth_plant plant)
{
    static const char *const names[] = {
#define SYNTH_ROW_(name) #name,
        SYNTH_PLANTS(SYNTH_ROW_)
#undef SYNTH_ROW_
    };
    return names[plant];
}

struct synth synth_subject(uint64_t seed)
{
    return (struct synth){.seed = seed, .hashes = true};
}

struct synth synth_reference(uint64_t seed)
{
    return (struct synth){.seed = seed, .reference = true};
}

/* A function of its arguments, uniform over 64 bits. */
static uint64_t draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t z = seed * UINT64_C(0x9E3779B97F4A7C15) + a * UINT64_C(0xD1B54A32D192ED03) +
                 b * UINT64_C(0x8CB92BA72F3D8DD7) + c * UINT64_C(0xDB4F0B9175AE2165) + 1;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    z = (z ^ z >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    return z ^ z >> 29;
}

static double normal(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    const double u = ((double)(draw(seed, a, b, 2 * c) >> 11) + 1.0) * 0x1p-53;
    const double v = (double)(draw(seed, a, b, 2 * c + 1) >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

struct text {
    char *data;
    size_t size, capacity;
    bool nan; /* every number is written as not a number */
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
    if (t->capacity - t->size < 512) {
        t->capacity = t->capacity * 2 + 4096;
        t->data = realloc(t->data, t->capacity);
        cr_assert_not_null(t->data);
    }
    va_list args;
    va_start(args, format);
    t->size += (size_t)vsnprintf(t->data + t->size, t->capacity - t->size, format, args);
    va_end(args);
}

/* Noise of a class at a step, in units of the norm: its root mean square over runs. */
static double noise_rms(int group, int step)
{
    static const double units[GROUPS + 1] = {2.0, 5.0, 8.0, 1.0, 5.0, 5.0, 1.0};
    return units[group] * 0x1p-24 * pow(step, 1.5) * exp(run_sigma * run_sigma);
}

/* In lockstep every step starts from the same bits, as the first one does. */
static double noise_of(const struct synth *s, int group, int step)
{
    return noise_rms(group, s->lockstep ? 1 : step);
}

static double noise(const struct synth *s, int group, int step, int item, int slot)
{
    if (s->reference) {
        return 0.0;
    }
    const double run = exp(run_sigma * normal(s->seed, 900, 0, 0) - run_sigma * run_sigma);
    return noise_of(s, group, step) * run *
           normal(s->seed, 1000 + (uint64_t)group, (uint64_t)(step * 1000 + item), (uint64_t)slot);
}

static bool here(const struct synth *s, int step, enum synth_plant plant)
{
    const int at = s->plant_step != 0 ? s->plant_step : SYNTH_PLANT_STEP;
    return s->plant == plant && step == at;
}

/* From the planted step on. */
static bool since(const struct synth *s, int step, enum synth_plant plant)
{
    const int at = s->plant_step != 0 ? s->plant_step : SYNTH_PLANT_STEP;
    return s->plant == plant && step >= at;
}

static void item_name(char *name, size_t size, int group, int item)
{
    static const char *const parts[] = {"self_attn.o_proj", "mlp.up_proj", "input_layernorm"};
    if (group == ACTIVATIONS) {
        if (item == 0) {
            (void)snprintf(name, size, "embed");
        } else {
            (void)snprintf(name, size, "layers.%d.%s", (item - 1) / 2,
                           item % 2 != 0 ? "attn" : "out");
        }
    } else if (item < 2) {
        (void)snprintf(name, size, "%s.weight", item == 0 ? "model.embed_tokens" : "lm_head");
    } else {
        (void)snprintf(name, size, "model.layers.%d.%s.weight", (item - 2) / 3,
                       parts[(item - 2) % 3]);
    }
}

static double true_norm(const struct synth *s, int group, int step, int item)
{
    static const double units[GROUPS] = {3.0, 0.4, 0.01, 5.0, 0.1, 0.001};
    return units[group] *
           exp(0.1 * normal(s->seed, 100 + (uint64_t)group, (uint64_t)step, (uint64_t)item));
}

/* Parameters are the sum of their updates, so their projections are, too. */
static double true_projection(const struct synth *s, int group, int step, int item, int slot)
{
    if (group != PARAMETERS) {
        return true_norm(s, group, step, item) * normal(s->seed, 200 + (uint64_t)group,
                                                        (uint64_t)(step * 1000 + item),
                                                        (uint64_t)slot);
    }
    double sum = 5.0 * normal(s->seed, 300, (uint64_t)item, (uint64_t)slot);
    for (int k = 1; k <= step; k++) {
        sum += true_projection(s, UPDATES, k, item, slot);
    }
    return sum;
}

static double rate(int step)
{
    return 3e-3 * (1.0 + cos(M_PI * step / SYNTH_STEPS)) / 2.0;
}

/* Relative to the norm; almost two whole steps. */
static double planted_stray(const struct synth *s, int group, int step, int item)
{
    const bool planted = group == UPDATES && here(s, step, SYNTH_update_stray);
    return planted ? 1.9 * rate(step) / true_norm(s, group, step, item) : 0.0;
}

/* The numeric difference planted into one projection of one tensor (the first o_proj, or embed); a
 * fault of the optimizer moves projections of all updates and parameters, each by another amount
 * (0 and 2, whose standard deviation is 1), an element astray all projections alike. */
static double planted(const struct synth *s, int group, int step, int item, int slot)
{
    static const enum synth_plant plants[GROUPS] = {SYNTH_activation, SYNTH_gradient, SYNTH_update,
                                                    SYNTH_parameter,  SYNTH_moment,   SYNTH_moment};
    const int target = group == ACTIVATIONS ? 0 : 2;
    if ((group == UPDATES || group == PARAMETERS) && here(s, step, plants[group])) {
        return slot % 2 * 2 * s->scales * noise_of(s, group, step);
    }
    if (group == UPDATES && here(s, step, SYNTH_update_stray)) {
        return planted_stray(s, group, step, item);
    }
    if (group == UPDATES && item == target && slot == 3 && here(s, step, SYNTH_update_one)) {
        return 1e3; /* many elements */
    }
    if (item != target || slot != 3 || group == MOMENT2 || !here(s, step, plants[group])) {
        return 0.0;
    }
    return s->scales * noise_of(s, group, step);
}

static void number(struct text *t, const struct synth *s, double value)
{
    if (isnan(value) || t->nan) {
        put(t, "\"nan\"");
    } else if (s->reference) {
        put(t, "%.17g", value);
    } else {
        put(t, "%.9g", (double)(float)value);
    }
}

static void put_sketch(struct text *t, const struct synth *s, int group, int step, int item)
{
    const bool target = group == GRADIENTS && item == 2;
    const double norm = true_norm(s, group, step, item);
    put(t, "[");
    const double stray = /* the element's part of the norm is its share of it */
        planted_stray(s, group, step, item) * rate(step) / norm;
    number(t, s, norm * (1.0 + 0.3 * noise(s, group, step, item, SLOTS) + stray));
    for (int slot = 0; slot < SLOTS; slot++) {
        double value =
            true_projection(s, group, step, item, slot) +
            norm * (noise(s, group, step, item, slot) + planted(s, group, step, item, slot));
        if (target && slot == 3 && here(s, step, SYNTH_sketch_nan)) {
            value = (double)NAN;
        }
        put(t, ",");
        number(t, s, value);
    }
    put(t, ",%d]", target && here(s, step, SYNTH_nonfinite) ? 1 : 0);
}

static void put_sketches(struct text *t, const struct synth *s, int step)
{
    put(t, ",\"sketch\":{");
    for (int group = 0; group < GROUPS; group++) {
        const int full = group == ACTIVATIONS ? TAPS : TENSORS;
        const int count = s->plant == SYNTH_sketches_empty ? 0 : full;
        put(t, "%s\"%s\":{", group > 0 ? "," : "", group_names[group]);
        for (int item = 0; item < count; item++) {
            if (group == GRADIENTS && item == count - 1 && here(s, step, SYNTH_tensor_missing)) {
                continue;
            }
            char name[64];
            item_name(name, sizeof name, group, item);
            put(t, "%s\"%s\":", item > 0 ? "," : "", name);
            put_sketch(t, s, group, step, item);
        }
        put(t, "}");
    }
    put(t, "}");
}

static void put_records(struct text *t, const struct synth *s, int step)
{
    enum { PER_STEP = 4 };
    if (here(s, step, SYNTH_records_absent)) {
        return;
    }
    put(t, ",\"records\":[");
    const int count = here(s, step, SYNTH_record_missing) ? PER_STEP - 1 : PER_STEP;
    for (int i = 0; i < count; i++) {
        int id = (step - 1) * PER_STEP + i;
        if (here(s, step, SYNTH_order) && i < 2) {
            id = (step - 1) * PER_STEP + 1 - i;
        }
        const uint64_t change = i == 2 && here(s, step, SYNTH_text);
        const uint64_t other = i == 2 && here(s, step, SYNTH_tokens);
        put(t,
            "%s{\"id\":\"line:%d\",\"epoch\":%d,\"text\":\"%016" PRIx64
            "\",\"tokens\":\"%016" PRIx64 "\",\"count\":%d}",
            i > 0 ? "," : "", id, here(s, step, SYNTH_epoch) ? 1 : 0,
            draw(s->seed, 1, (uint64_t)id, change), draw(s->seed, 2, (uint64_t)id, other),
            i == 1 && here(s, step, SYNTH_count) ? 41 : 40);
    }
    const bool more = here(s, step, SYNTH_skipped);
    put(t, "],\"skipped\":[\"line:8000\"%s],\"skip_reasons\":[\"%s\"%s]",
        more ? ",\"line:9000\"" : "", here(s, step, SYNTH_skip_reason) ? "too_long" : "unlearned",
        more ? ",\"prefix\"" : "");
}

static void put_batches(struct text *t, const struct synth *s, int step)
{
    static const char *const names[] = {"ids", "labels", "positions", "segments"};
    static const enum synth_plant plants[] = {SYNTH_ids, SYNTH_labels, SYNTH_positions, SYNTH_none};
    for (uint64_t b = 0; b < 4 && !here(s, step, SYNTH_batches_absent); b++) {
        const uint64_t change = plants[b] != SYNTH_none && here(s, step, plants[b]);
        put(t, ",\"%s\":[\"%016" PRIx64 "\"", names[b], draw(s->seed, 3 + b, (uint64_t)step, 0));
        if (!(b == 1 && here(s, step, SYNTH_micro_missing))) {
            put(t, ",\"%016" PRIx64 "\"", draw(s->seed, 3 + b, (uint64_t)step, 7 + change));
        }
        put(t, "]");
    }
    const int supervised = here(s, step, SYNTH_no_labels)    ? 0
                           : here(s, step, SYNTH_supervised) ? 91
                                                             : 90;
    put(t, ",\"supervised\":%d", supervised);
    if (s->hashes) {
        put(t, ",\"stats\":{\"supervised_trained\":%d}",
            here(s, step, SYNTH_untrained) ? supervised / 2 : supervised);
    }
}

static void put_scalars(struct text *t, const struct synth *s, int step)
{
    enum { SCALAR = GROUPS, WIDER = 10 }; /* the margin of losses after the first step */
    const double rms = noise_of(s, SCALAR, step);
    const double scales = step > 1 ? WIDER * s->scales : s->scales;
    double loss = 7.6246 - 0.1 * step + 0.05 * normal(s->seed, 400, (uint64_t)step, 0);
    loss *= 1.0 + noise(s, SCALAR, step, 0, 0) + (here(s, step, SYNTH_loss) ? scales * rms : 0.0) +
            (here(s, step, SYNTH_band) ? 0.003 : 0.0);
    loss += here(s, step, SYNTH_curve) || (s->plant == SYNTH_first_loss && step == 1) ? 3.0 : 0.0;
    put(t, ",\"loss\":");
    number(t, s, here(s, step, SYNTH_loss_nan) ? (double)NAN : loss);
    double sum = 0.0;
    for (int item = 0; item < TENSORS; item++) {
        sum += pow(true_norm(s, GRADIENTS, step, item), 2.0);
    }
    const double norm = sqrt(sum) * (1.0 + noise(s, SCALAR, step, 1, 0) +
                                     (here(s, step, SYNTH_grad_norm) ? s->scales * rms : 0.0));
    put(t, ",\"grad_norm\":");
    number(t, s, norm);
    double clip = 1.0 / (norm + 1e-6);
    clip = clip > 1.0 ? 1.0 : clip;
    clip *= here(s, step, SYNTH_clip) ? 1.0 - s->scales * rms : 1.0;
    put(t, ",\"clip\":");
    number(t, s, here(s, step, SYNTH_clip_above_one) ? 1.5 : clip);
    /* Both stacks compute the rate in double precision. */
    const double lr = rate(step);
    put(t, ",\"lr\":");
    if (t->nan) {
        number(t, s, lr);
    } else {
        put(t, "%.17g", lr * (here(s, step, SYNTH_lr) ? 1.001 : 1.0));
    }
    if (step % SYNTH_EVAL_EVERY == 0 && s->plant != SYNTH_eval_missing) {
        double eval = 7.6 - 0.05 * step + 0.05 * normal(s->seed, 401, (uint64_t)step, 0);
        eval *=
            1.0 + noise(s, SCALAR, step, 2, 0) + (s->plant == SYNTH_eval_loss ? scales * rms : 0.0);
        put(t, ",\"eval_loss\":");
        number(t, s, eval);
        put(t, ",\"eval_supervised\":%d", s->plant == SYNTH_eval_supervised ? 301 : 300);
    }
}

static void put_engine(struct text *t, const struct synth *s, int step)
{
    static const char *const names[] = {"input", "state", "output", "ledger"};
    static const enum synth_plant plants[] = {SYNTH_hash_input, SYNTH_hash_state, SYNTH_hash_output,
                                              SYNTH_hash_ledger};
    put(t, ",\"hash\":{");
    for (uint64_t h = 0; h < 4; h++) {
        put(t, "%s\"%s\":\"%016" PRIx64 "\"", h > 0 ? "," : "", names[h],
            draw(s->seed, 20 + h, (uint64_t)step, since(s, step, plants[h])));
    }
    const int after = since(s, step, SYNTH_leak) || since(s, step, SYNTH_backlog)
                          ? step - SYNTH_PLANT_STEP + 1
                          : 0;
    const int live = 4000 + (s->plant == SYNTH_leak ? 64 * after : 0) +
                     (step >= SYNTH_EVAL_EVERY ? 256 : 0); /* evaluation keeps its buffer */
    /* The backlog of a healthy run goes up and down. */
    const int deferred = (int)(draw(s->seed, 30, (uint64_t)step, 0) % 3) * 128 +
                         (s->plant == SYNTH_backlog && after > 0 ? 256 + 384 * after : 0);
    const int cached = 1000;
    const int budget = 20000;
    const int free_ =
        budget - live - deferred - cached - (here(s, step, SYNTH_conservation) ? 1 : 0);
    const bool oom = (s->oom && step >= 3) || since(s, step, SYNTH_oom_counted) ||
                     since(s, step, SYNTH_spurious);
    put(t,
        "},\"ledger\":{\"budget\":%d,\"live\":%d,\"cached\":%d,\"pending\":0,\"deferred\":%d,"
        "\"free\":%d,\"peak\":9000,\"host\":1,\"mallocs\":%d,\"frees\":%d,\"ooms\":%d,"
        "\"spurious_ooms\":%d,\"reclaims\":0}",
        budget, live, cached, deferred, free_, step * 10, step * 9, oom ? 1 : 0,
        since(s, step, SYNTH_spurious) ? 1 : 0);
    /* A byte a step takes eight of the allocator's. */
    const int leaked = since(s, step, SYNTH_host_leak) ? 300 + 8 * (step - SYNTH_PLANT_STEP) : 0;
    put(t, ",\"host\":{\"text\":700,\"data\":%d}",
        2000 + (leaked > 0 ? leaked : (int)(draw(s->seed, 31, (uint64_t)step, 0) % 3) * 128));
    put(t, ",\"races\":[%s],\"race_count\":%d",
        here(s, step, SYNTH_race)
            ? "{\"first\":\"upload\",\"second\":\"embed\",\"buffer\":\"input\",\"first_stream\":"
              "\"copy\",\"second_stream\":\"compute\",\"first_mode\":\"write\",\"second_mode\":"
              "\"read\",\"first_step\":5,\"second_step\":5}"
            : "",
        since(s, step, SYNTH_race) ? 1 : 0);
}

static void put_events(struct text *t, const struct synth *s, int step)
{
    const char *comma = "";
    put(t, ",\"events\":[");
    const bool skips = here(s, step, SYNTH_skip_after_oom);
    if (here(s, step, SYNTH_oom_unanswered) || skips || (s->oom && step == 3)) {
        put(t, "{\"kind\":\"oom\",\"name\":\"scores\",\"bytes\":64,\"spurious\":false}");
        put(t, "%s", s->oom && step == 3 ? ",{\"kind\":\"retry\"}" : "");
        put(t, "%s", skips ? ",{\"kind\":\"skip\",\"reason\":\"no memory\"}" : "");
        comma = ",";
    }
    if (step % SYNTH_EVAL_EVERY == 0) {
        put(t, "%s{\"kind\":\"checkpoint\",\"hash\":\"%016" PRIx64 "\",\"path\":\"c\"}", comma,
            draw(s->seed, 40, (uint64_t)step, s->plant == SYNTH_checkpoint));
    }
    put(t, "]");
}

static void put_step(struct text *t, const struct synth *s, int step)
{
    t->nan = here(s, step, SYNTH_all_nan);
    put(t, "{\"type\":\"step\",\"step\":%d", step);
    put_records(t, s, step);
    put_batches(t, s, step);
    put_scalars(t, s, step);
    if (!s->bare && s->plant != SYNTH_sketches_absent) {
        put_sketches(t, s, step);
    }
    if (s->hashes) {
        put_engine(t, s, step);
    }
    put_events(t, s, step);
    put(t, "}\n");
}

char *synth_text(const struct synth *s)
{
    struct text t = {NULL, 0, 0, false};
    const int first = s->first_step != 0 ? s->first_step : 1;
    const int last = s->steps < 0 ? 0 : s->steps > 0 ? s->steps : SYNTH_STEPS;
    put(&t,
        "{\"type\":\"header\",\"trace_version\":1,\"stack\":\"%s\",\"recipe\":\"synthetic\","
        "\"seed\":%" PRIu64 ",\"recipe_hash\":\"%016" PRIx64 "\",\"backend\":\"%s\","
        "\"precision\":\"%s\",\"build\":\"test\",\"fault\":\"none\",\"schedule\":null,"
        "\"mode\":\"%s\",\"level\":\"%s\",\"first_step\":%d,\"steps\":%d,\"tensors\":[],\"taps\":[]"
        "}\n",
        s->reference ? "reference" : "subject", s->seed, s->recipe_hash != 0 ? s->recipe_hash : 77,
        s->reference ? "reference" : "host", s->reference ? "fp64" : "fp32",
        s->lockstep && s->reference ? "lockstep" : "free", s->bare ? "hashes" : "full", first,
        SYNTH_STEPS);
    for (int step = first; step <= last; step++) {
        if (here(s, step, SYNTH_step_missing)) {
            continue;
        }
        put_step(&t, s, step);
        if (here(s, step, SYNTH_step_repeated)) {
            put_step(&t, s, step);
        }
    }
    if (!s->dies) {
        put(&t,
            "{\"type\":\"end\",\"steps\":%d,\"status\":\"ok\",\"features\":[\"packed\",\"eval\"],"
            "\"seconds\":0.1,\"peak_host_bytes\":1,\"fault_reached\":2,\"reach\":{\"a_site\":4,"
            "\"b_site\":-1}}\n",
            last);
    }
    return t.data;
}

static void write_all(int fd, const void *bytes, size_t size)
{
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
}

enum orc_status synth_read(const char *text, size_t size, const char *suffix, orc_trace **out,
                           struct orc_error *error)
{
    char path[128];
    (void)snprintf(path, sizeof path, "/tmp/orc_check_XXXXXX%s", suffix);
    const int fd = mkstemps(path, (int)strlen(suffix));
    cr_assert_geq(fd, 0);
    if (strstr(suffix, ".zst") != NULL) {
        const size_t room = ZSTD_compressBound(size);
        char *packed = malloc(room);
        cr_assert_not_null(packed);
        const size_t bytes = ZSTD_compress(packed, room, text, size, 3);
        cr_assert_not(ZSTD_isError(bytes));
        write_all(fd, packed, bytes);
        free(packed);
    } else {
        write_all(fd, text, size);
    }
    close(fd);
    const enum orc_status status = orc_trace_read(path, out, error);
    unlink(path);
    return status;
}

orc_trace *synth_trace(const struct synth *s)
{
    char *text = synth_text(s);
    orc_trace *trace = NULL;
    struct orc_error error = {""};
    const enum orc_status status = synth_read(text, strlen(text), ".jsonl", &trace, &error);
    cr_assert_eq(status, ORC_OK, "%s", error.text);
    free(text);
    return trace;
}

static orc_bounds *make_bounds(uint64_t first_seed, int count, bool lockstep)
{
    orc_calibration *calibration = NULL;
    orc_bounds *bounds = NULL;
    struct orc_error error = {""};
    cr_assert_eq(orc_calibration_create(&calibration), ORC_OK);
    for (int i = 0; i < count; i++) {
        struct synth mine = synth_subject(first_seed + (uint64_t)i);
        struct synth theirs = synth_reference(first_seed + (uint64_t)i);
        mine.lockstep = theirs.lockstep = lockstep;
        orc_trace *subject = synth_trace(&mine), *reference = synth_trace(&theirs);
        const struct orc_case c = {.subject = subject, .reference = reference};
        cr_assert_eq(orc_calibration_add(calibration, &c, &error), ORC_OK, "%s", error.text);
        orc_trace_free(subject);
        orc_trace_free(reference);
    }
    cr_assert_eq(orc_calibration_finish(calibration, &bounds, &error), ORC_OK, "%s", error.text);
    orc_calibration_free(calibration);
    return bounds;
}

orc_bounds *synth_bounds(uint64_t first_seed, int count)
{
    return make_bounds(first_seed, count, false);
}

orc_bounds *synth_lockstep_bounds(uint64_t first_seed, int count)
{
    return make_bounds(first_seed, count, true);
}
