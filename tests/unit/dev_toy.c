/* The toy pipeline and the kernel table of the device tests. */
#include "dev_toy.h"

#include <stdio.h>
#include <string.h>

enum { N = 64, LOG_EVERY = 3 };

static void forward_rows(const void *args, int begin, int end)
{
    const struct toy_args *a = args;
    for (int i = begin; i < end; i++) {
        a->act[i] = a->w[i] * a->x[i] + 0.5f * a->x[i];
    }
}

static void backward_rows(const void *args, int begin, int end)
{
    const struct toy_args *a = args;
    for (int i = begin; i < end; i++) {
        a->grad[i] = a->act[i] * a->x[i] - 0.125f * a->w[i];
    }
}

static void statistics_rows(const void *args, int begin, int end)
{
    const struct toy_args *a = args;
    (void)begin;
    (void)end;
    a->stat[0] *= 0.75f;
    for (int i = 0; i < N; i++) {
        a->stat[0] += a->act[i] * a->grad[i];
    }
}

static void update_rows(const void *args, int begin, int end)
{
    const struct toy_args *a = args;
    (void)begin;
    (void)end;
    a->loss[0] = 0.0f;
    for (int i = 0; i < N; i++) {
        a->w[i] -= 0.0625f * a->grad[i];
        a->loss[0] += a->act[i];
    }
}

static void count_rows(const void *args, int begin, int end)
{
    const struct toy_count_args *a = args;
    for (int i = begin; i < end; i++) {
        a->out[i] += i + 1;
    }
}

static const struct k_kernel table[] = {
    {"forward", "toy", sizeof(struct toy_args), forward_rows, NULL},
    {"backward", "toy", sizeof(struct toy_args), backward_rows, NULL},
    {"statistics", "toy", sizeof(struct toy_args), statistics_rows, NULL},
    {"update", "toy", sizeof(struct toy_args), update_rows, NULL},
    {"count", "toy", sizeof(struct toy_count_args), count_rows, NULL},
    {"none", "toy", 0, NULL, NULL},
};

const struct k_kernel *k_kernel_at(enum k_id id)
{
    return &table[id <= TOY_COUNT_ROWS ? (int)id : (int)TOY_COUNT_ROWS + 1];
}

k_rows_fn *k_kernel_rows(enum k_id id)
{
    return k_kernel_at(id)->rows;
}

uint64_t toy_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

struct dev_conf toy_conf(enum dev_sched sched, uint64_t seed)
{
    return (struct dev_conf){.heap_bytes = 1 << 16,
                             .pinned_bytes = 1 << 12,
                             .sched = sched,
                             .seed = seed,
                             .threads = 1,
                             .check_races = true};
}

struct toy {
    dev *d;
    struct toy_result *out;
    dev_stream copy, compute, side, back;
    dev_event copied[2], consumed[2], read[2], grad_ready, updated, stat_done;
    float *stage[2], *loss_host[2], *x[2];
    struct toy_args a;
};

static void keep(struct toy *t, enum dev_status status)
{
    if (status != DEV_OK && t->out->status == DEV_OK) {
        t->out->status = status;
        snprintf(t->out->error, sizeof t->out->error, "%s", dev_error(t->d));
    }
}

static void add_hash(struct toy *t, const float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        t->out->numbers = (t->out->numbers ^ bits) * 1099511628211u;
    }
}

static void make_float(struct toy *t, dev_stream stream, size_t count, const char *what,
                       float **out)
{
    keep(t, dev_malloc(t->d, stream, count * sizeof **out, what, (void **)out));
    if (t->out->status == DEV_OK) {
        keep(t, dev_fill(t->d, stream, *out, 0, count * sizeof **out, what));
    }
}

static void open_toy(struct toy *t)
{
    keep(t, dev_stream_create(t->d, "copy", &t->copy));
    keep(t, dev_stream_create(t->d, "compute", &t->compute));
    keep(t, dev_stream_create(t->d, "side", &t->side));
    keep(t, dev_stream_create(t->d, "back", &t->back));
    keep(t, dev_event_create(t->d, "gradient ready", &t->grad_ready));
    keep(t, dev_event_create(t->d, "updated", &t->updated));
    keep(t, dev_event_create(t->d, "statistic done", &t->stat_done));
    for (int b = 0; b < 2; b++) {
        keep(t, dev_event_create(t->d, "copied", &t->copied[b]));
        keep(t, dev_event_create(t->d, "consumed", &t->consumed[b]));
        keep(t, dev_event_create(t->d, "read", &t->read[b]));
        keep(t, dev_pinned(t->d, N * sizeof(float), "stage", (void **)&t->stage[b]));
        keep(t, dev_pinned(t->d, sizeof(float), "loss on host", (void **)&t->loss_host[b]));
        make_float(t, t->copy, N, "input", &t->x[b]);
    }
    make_float(t, t->compute, N, "weights", &t->a.w);
    make_float(t, t->compute, N, "gradient", &t->a.grad);
    make_float(t, t->compute, 1, "loss", &t->a.loss);
    make_float(t, t->side, 1, "statistic", &t->a.stat);
    keep(t, dev_sync_all(t->d));
}

static void feed(struct toy *t, enum toy_omission omission, int step, int b)
{
    if (omission != TOY_NO_STAGE_WAIT) {
        keep(t, dev_sync_event(t->d, t->copied[b]));
    }
    keep(t, dev_host(t->d, t->stage[b], N * sizeof(float), DEV_WRITE, "fill stage"));
    for (int i = 0; i < N; i++) {
        t->stage[b][i] = (float)((step * 37 + i * 11) % 23) / 32.0f;
    }
    if (omission != TOY_NO_CONSUMED_WAIT) {
        keep(t, dev_wait(t->d, t->copy, t->consumed[b]));
    }
    keep(t, dev_copy(t->d, t->copy, t->x[b], t->stage[b], N * sizeof(float), "copy in"));
    keep(t, dev_record(t->d, t->copied[b], t->copy));
}

static void launch(struct toy *t, dev_stream stream, enum k_id kernel, int rows,
                   const struct dev_span *spans, size_t count, const char *what)
{
    keep(t, dev_launch(t->d, stream, kernel, rows, &t->a, spans, count, what));
}

static void gather(struct toy *t, enum toy_omission omission)
{
    const size_t bytes = N * sizeof(float);
    if (omission != TOY_NO_GRAD_WAIT) {
        keep(t, dev_wait(t->d, t->side, t->grad_ready));
    }
    const struct dev_span spans[] = {{t->a.act, bytes, DEV_READ},
                                     {t->a.grad, bytes, DEV_READ},
                                     {t->a.stat, sizeof(float), DEV_READ_WRITE}};
    launch(t, t->side, TOY_STATISTICS, 1, spans, 3, "statistics");
    if (omission != TOY_NO_USED_ON) {
        keep(t, dev_used_on(t->d, t->a.act, t->side));
    }
    keep(t, dev_record(t->d, t->stat_done, t->side));
}

static void compute(struct toy *t, enum toy_omission omission, int b)
{
    const size_t bytes = N * sizeof(float);
    if (omission != TOY_NO_COPIED_WAIT) {
        keep(t, dev_wait(t->d, t->compute, t->copied[b]));
    }
    t->a.x = t->x[b];
    keep(t, dev_malloc(t->d, t->compute, bytes, "activation", (void **)&t->a.act));
    const struct dev_span forward[] = {
        {t->a.w, bytes, DEV_READ}, {t->a.x, bytes, DEV_READ}, {t->a.act, bytes, DEV_WRITE}};
    launch(t, t->compute, TOY_FORWARD, N, forward, 3, "forward");
    keep(t, dev_wait(t->d, t->compute, t->stat_done));
    const struct dev_span backward[] = {{t->a.w, bytes, DEV_READ},
                                        {t->a.x, bytes, DEV_READ},
                                        {t->a.act, bytes, DEV_READ},
                                        {t->a.grad, bytes, DEV_WRITE}};
    launch(t, t->compute, TOY_BACKWARD, N, backward, 4, "backward");
    keep(t, dev_record(t->d, t->consumed[b], t->compute));
    keep(t, dev_record(t->d, t->grad_ready, t->compute));
    gather(t, omission);
    keep(t, dev_wait(t->d, t->compute, t->read[b ^ 1]));
    const struct dev_span update[] = {{t->a.w, bytes, DEV_READ_WRITE},
                                      {t->a.grad, bytes, DEV_READ},
                                      {t->a.act, bytes, DEV_READ},
                                      {t->a.loss, sizeof(float), DEV_WRITE}};
    launch(t, t->compute, TOY_UPDATE, 1, update, 4, "update");
    keep(t, dev_free(t->d, t->a.act));
    keep(t, dev_record(t->d, t->updated, t->compute));
}

static void read_back(struct toy *t, enum toy_omission omission, int step, int b)
{
    keep(t, dev_wait(t->d, t->back, t->updated));
    keep(t, dev_copy(t->d, t->back, t->loss_host[b], t->a.loss, sizeof(float), "loss to host"));
    keep(t, dev_record(t->d, t->read[b], t->back));
    if (step % LOG_EVERY == LOG_EVERY - 1) {
        if (omission != TOY_NO_READ_WAIT) {
            keep(t, dev_sync_event(t->d, t->read[b]));
        }
        keep(t, dev_host(t->d, t->loss_host[b], sizeof(float), DEV_READ, "log loss"));
        add_hash(t, t->loss_host[b], 1);
    }
}

/* Weights and statistic, through the stage buffers. */
static void finish(struct toy *t)
{
    float *from[] = {t->a.w, t->a.stat};
    const size_t counts[] = {N, 1};
    dev_ledger(t->d, &t->out->ledger);
    keep(t, dev_sync_all(t->d));
    for (int i = 0; i < 2; i++) {
        const size_t bytes = counts[i] * sizeof(float);
        keep(t, dev_copy(t->d, t->back, t->stage[i], from[i], bytes, "result to host"));
        keep(t, dev_sync_stream(t->d, t->back));
        keep(t, dev_host(t->d, t->stage[i], bytes, DEV_READ, "read result"));
        add_hash(t, t->stage[i], counts[i]);
    }
    const struct dev_race *races = dev_races(t->d, &t->out->pairs);
    t->out->races = dev_race_count(t->d);
    t->out->schedule = dev_schedule_hash(t->d);
    if (t->out->pairs > 0) {
        t->out->first = races[0];
    }
    const struct dev_aim *aims = dev_race_aims(t->d, &t->out->aim_count);
    t->out->aim_count = t->out->aim_count < TOY_AIMS_MAX ? t->out->aim_count : TOY_AIMS_MAX;
    for (size_t i = 0; i < t->out->aim_count; i++) {
        t->out->aims[i] = aims[i];
    }
}

void toy_run(const struct dev_conf *conf, enum toy_omission omission, int steps,
             struct toy_result *out)
{
    struct toy t = {.out = out};
    *out = (struct toy_result){.numbers = 14695981039346656037u};
    out->status = dev_open(conf, &t.d);
    if (out->status != DEV_OK) {
        return;
    }
    open_toy(&t);
    for (int step = 0; step < steps && out->status == DEV_OK; step++) {
        dev_step(t.d, step + 1);
        feed(&t, omission, step, step & 1);
        compute(&t, omission, step & 1);
        read_back(&t, omission, step, step & 1);
        keep(&t, dev_sweep(t.d));
    }
    if (out->status == DEV_OK) {
        finish(&t);
    }
    dev_close(t.d);
}
