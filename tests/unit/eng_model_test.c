/* Tests of the model on the device: loss and gradients against a double-precision forward pass that is
 * written out by definition here, and central differences of it. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loss.h"
#include "model.h"

enum { ROWS = 2, CONTEXT = 12, TOKENS = ROWS * CONTEXT };

struct world {
    struct eng_model_config config;
    dev *d;
    dev_stream stream;
    eng_model *model;
    const struct eng_params *params;
    double *weights; /* the same values as on the device */
    int32_t ids[TOKENS], labels[TOKENS], positions[TOKENS], first[TOKENS];
    int supervised;
    unsigned char *pinned;
    struct eng_input input;
    float *loss_sum;
};

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static float uniform(uint64_t *state)
{
    return (float)(next_random(state) >> 40) / (float)(1 << 23) - 1.0f;
}

static void must(enum dev_status status, const struct world *w)
{
    cr_assert_eq(status, DEV_OK, "%s: %s", dev_status_text(status), dev_error(w->d));
}

/* Two documents in row 0 (border at 5), one and padding in row 1. */
static void fill_batch(struct world *w)
{
    uint64_t state = 7;
    const int border[ROWS] = {5, 9};
    for (int t = 0; t < TOKENS; t++) {
        const int row = t / CONTEXT;
        const int i = t % CONTEXT;
        w->ids[t] = (int32_t)(next_random(&state) % (uint64_t)w->config.vocab);
        w->first[t] = i < border[row] ? 0 : border[row];
        w->positions[t] = i - w->first[t];
        const bool last = i == border[row] - 1 || i == CONTEXT - 1;
        const bool padding = row == 1 && i >= border[1];
        w->labels[t] = last || padding || i % 3 == 0
                           ? K_LABEL_IGNORED
                           : (int32_t)(next_random(&state) % (uint64_t)w->config.vocab);
        w->supervised += w->labels[t] != K_LABEL_IGNORED;
    }
}

static float *upload(struct world *w, const void *src, size_t bytes)
{
    void *ptr = NULL;
    must(dev_malloc(w->d, w->stream, bytes, "test input", &ptr), w);
    for (size_t done = 0; done < bytes; done += 4096) {
        const size_t part = bytes - done < 4096 ? bytes - done : 4096;
        must(dev_host(w->d, w->pinned, part, DEV_WRITE, "test"), w);
        memcpy(w->pinned, (const char *)src + done, part);
        must(dev_copy(w->d, w->stream, (char *)ptr + done, w->pinned, part, "test"), w);
        must(dev_sync_stream(w->d, w->stream), w);
    }
    return ptr;
}

static void download(struct world *w, void *dst, const void *src, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += 4096) {
        const size_t part = bytes - done < 4096 ? bytes - done : 4096;
        must(dev_copy(w->d, w->stream, w->pinned, (const char *)src + done, part, "test"), w);
        must(dev_sync_stream(w->d, w->stream), w);
        must(dev_host(w->d, w->pinned, part, DEV_READ, "test"), w);
        memcpy((char *)dst + done, w->pinned, part);
    }
}

static void set_weights(struct world *w)
{
    uint64_t state = 3;
    float *values = malloc((size_t)w->params->elements * sizeof *values);
    w->weights = malloc((size_t)w->params->elements * sizeof *w->weights);
    for (int t = 0; t < w->params->tensor_count; t++) {
        const struct eng_tensor *tensor = &w->params->tensors[t];
        for (int64_t i = 0; i < tensor->elements; i++) {
            const float x = uniform(&state) * 0.4f + (tensor->cols == 0 ? 1.0f : 0.0f);
            values[tensor->offset + i] = x;
            w->weights[tensor->offset + i] = (double)x;
        }
    }
    for (int64_t done = 0; done < w->params->elements; done += 1024) {
        const int64_t left = w->params->elements - done;
        const size_t part = (size_t)(left < 1024 ? left : 1024) * sizeof(float);
        must(dev_host(w->d, w->pinned, part, DEV_WRITE, "test"), w);
        memcpy(w->pinned, values + done, part);
        must(dev_copy(w->d, w->stream, w->params->param + done, w->pinned, part, "test"), w);
        must(dev_sync_stream(w->d, w->stream), w);
    }
    free(values);
}

static void world_open(struct world *w, bool tied)
{
    memset(w, 0, sizeof *w);
    w->config = (struct eng_model_config){.layers = 2,
                                          .width = 16,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .ffn = 24,
                                          .context = CONTEXT,
                                          .vocab = 31,
                                          .tied = tied,
                                          .norm_eps = 1e-5f,
                                          .rope_theta = 100.0,
                                          .rows = ROWS};
    const struct dev_conf conf = {.heap_bytes = 16 << 20,
                                  .pinned_bytes = 4 << 20,
                                  .sched = DEV_SCHED_FIFO,
                                  .threads = 1,
                                  .check_races = true,
                                  .poison = true};
    struct eng_error error = {""};
    cr_assert_eq(dev_open(&conf, &w->d), DEV_OK);
    must(dev_stream_create(w->d, "compute", &w->stream), w);
    must(dev_pinned(w->d, 4096, "test staging", (void **)&w->pinned), w);
    cr_assert_eq(eng_model_create(w->d, w->stream, &w->config, &w->model, &error), ENG_OK, "%s",
                 error.text);
    w->params = eng_model_params(w->model);
    fill_batch(w);
    set_weights(w);
    w->input = (struct eng_input){(int32_t *)upload(w, w->ids, sizeof w->ids),
                                  (int32_t *)upload(w, w->labels, sizeof w->labels),
                                  (int32_t *)upload(w, w->positions, sizeof w->positions),
                                  (int32_t *)upload(w, w->first, sizeof w->first)};
    must(dev_malloc(w->d, w->stream, sizeof(float), "loss", (void **)&w->loss_sum), w);
}

static void world_close(struct world *w)
{
    size_t races = 0;
    dev_races(w->d, &races);
    cr_expect_eq(races, 0);
    eng_model_destroy(w->model);
    dev_close(w->d);
    free(w->weights);
}

static const double *tensor(const struct world *w, const char *format, int layer)
{
    char name[96];
    snprintf(name, sizeof name, format, layer);
    for (int t = 0; t < w->params->tensor_count; t++) {
        if (strcmp(w->params->tensors[t].name, name) == 0) {
            return w->weights + w->params->tensors[t].offset;
        }
    }
    cr_assert_fail("no tensor %s", name);
    abort();
}

static void linear(double *y, const double *x, const double *weight, int out, int in)
{
    for (int o = 0; o < out; o++) {
        y[o] = 0.0;
        for (int i = 0; i < in; i++) {
            y[o] += weight[o * in + i] * x[i];
        }
    }
}

static void norm(double *y, const double *x, const double *weight, int width, double eps)
{
    double sum = 0.0;
    for (int i = 0; i < width; i++) {
        sum += x[i] * x[i];
    }
    const double rstd = 1.0 / sqrt(sum / width + eps);
    for (int i = 0; i < width; i++) {
        y[i] = x[i] * rstd * weight[i];
    }
}

static void rotate(double *head, int head_dim, int position, double theta)
{
    for (int i = 0; i < head_dim / 2; i++) {
        const double angle = position * pow(theta, -2.0 * i / head_dim);
        const double a = head[i];
        const double b = head[i + head_dim / 2];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + head_dim / 2] = b * cos(angle) + a * sin(angle);
    }
}

static void attend(const struct world *w, const double *q, const double *k, const double *v, int t,
                   int head, double *out)
{
    const int head_dim = w->config.width / w->config.heads;
    const int kv = head / (w->config.heads / w->config.kv_heads);
    const int kv_width = w->config.kv_heads * head_dim;
    const int row = t / CONTEXT * CONTEXT;
    double weight[CONTEXT], sum = 0.0;
    for (int j = row + w->first[t]; j <= t; j++) {
        double score = 0.0;
        for (int i = 0; i < head_dim; i++) {
            score += q[t * w->config.width + head * head_dim + i] *
                     k[j * kv_width + kv * head_dim + i];
        }
        weight[j - row] = exp(score / sqrt(head_dim));
        sum += weight[j - row];
    }
    for (int i = 0; i < head_dim; i++) {
        out[i] = 0.0;
        for (int j = row + w->first[t]; j <= t; j++) {
            out[i] += weight[j - row] / sum * v[j * kv_width + kv * head_dim + i];
        }
    }
}

/* One layer, by definition, in place on x (TOKENS, width). */
static void layer_by_definition(const struct world *w, int layer, double *x)
{
    enum { WIDTH = 16, FFN = 24, KV = 8 };
    const int head_dim = WIDTH / w->config.heads;
    static double q[TOKENS * WIDTH], k[TOKENS * KV], v[TOKENS * KV];
    const double eps = (double)w->config.norm_eps;
    for (int t = 0; t < TOKENS; t++) {
        double h[WIDTH];
        norm(h, x + t * WIDTH, tensor(w, "model.layers.%d.input_layernorm.weight", layer), WIDTH,
             eps);
        linear(q + t * WIDTH, h, tensor(w, "model.layers.%d.self_attn.q_proj.weight", layer), WIDTH,
               WIDTH);
        linear(k + t * KV, h, tensor(w, "model.layers.%d.self_attn.k_proj.weight", layer), KV, WIDTH);
        linear(v + t * KV, h, tensor(w, "model.layers.%d.self_attn.v_proj.weight", layer), KV, WIDTH);
        for (int i = 0; i < w->config.heads; i++) {
            rotate(q + t * WIDTH + i * head_dim, head_dim, w->positions[t], w->config.rope_theta);
        }
        for (int i = 0; i < w->config.kv_heads; i++) {
            rotate(k + t * KV + i * head_dim, head_dim, w->positions[t], w->config.rope_theta);
        }
    }
    for (int t = 0; t < TOKENS; t++) {
        double mixed[WIDTH], h[WIDTH], y[WIDTH], gate[FFN], up[FFN];
        for (int i = 0; i < w->config.heads; i++) {
            attend(w, q, k, v, t, i, mixed + i * head_dim);
        }
        linear(y, mixed, tensor(w, "model.layers.%d.self_attn.o_proj.weight", layer), WIDTH, WIDTH);
        for (int i = 0; i < WIDTH; i++) {
            x[t * WIDTH + i] += y[i];
        }
        norm(h, x + t * WIDTH, tensor(w, "model.layers.%d.post_attention_layernorm.weight", layer),
             WIDTH, eps);
        linear(gate, h, tensor(w, "model.layers.%d.mlp.gate_proj.weight", layer), FFN, WIDTH);
        linear(up, h, tensor(w, "model.layers.%d.mlp.up_proj.weight", layer), FFN, WIDTH);
        for (int i = 0; i < FFN; i++) {
            gate[i] = gate[i] / (1.0 + exp(-gate[i])) * up[i];
        }
        linear(y, gate, tensor(w, "model.layers.%d.mlp.down_proj.weight", layer), WIDTH, FFN);
        for (int i = 0; i < WIDTH; i++) {
            x[t * WIDTH + i] += y[i];
        }
    }
}

/* Sum of nll over supervised positions. */
static double loss_by_definition(const struct world *w)
{
    enum { WIDTH = 16, VOCAB = 31 };
    static double x[TOKENS * WIDTH];
    const double *embedding = tensor(w, "model.embed_tokens.weight", 0);
    const double *head = w->config.tied ? embedding : tensor(w, "lm_head.weight", 0);
    for (int t = 0; t < TOKENS; t++) {
        memcpy(x + t * WIDTH, embedding + w->ids[t] * WIDTH, WIDTH * sizeof *x);
    }
    for (int l = 0; l < w->config.layers; l++) {
        layer_by_definition(w, l, x);
    }
    double nll = 0.0;
    for (int t = 0; t < TOKENS; t++) {
        double h[WIDTH], logit[VOCAB], sum = 0.0;
        norm(h, x + t * WIDTH, tensor(w, "model.norm.weight", 0), WIDTH, (double)w->config.norm_eps);
        linear(logit, h, head, VOCAB, WIDTH);
        for (int i = 0; i < VOCAB; i++) {
            sum += exp(logit[i]);
        }
        nll += w->labels[t] == K_LABEL_IGNORED ? 0.0 : log(sum) - logit[w->labels[t]];
    }
    return nll;
}

static double run_forward(struct world *w, float inv_count)
{
    struct eng_error error = {""};
    float loss = NAN;
    cr_assert_eq(eng_model_forward(w->model, w->stream, &w->input, inv_count, w->loss_sum, false, NULL,
                                   &error),
                 ENG_OK, "%s", error.text);
    download(w, &loss, w->loss_sum, sizeof loss);
    return (double)loss;
}

/* Error of fp32 chains: each of the ~8 stages of 2 layers and the head rounds sums of at most `longest`
 * terms; errors add up like a random walk, and 8 standard deviations are allowed. */
static double relative_tolerance(int longest)
{
    const int stages = 8 * 2 + 3;
    return 8.0 * (double)FLT_EPSILON * sqrt((double)stages * longest);
}

static void check_gradients(bool tied)
{
    struct world w;
    world_open(&w, tied);
    struct eng_error error = {""};
    const double loss = run_forward(&w, 1.0f / (float)w.supervised);
    const double exact = loss_by_definition(&w);
    cr_assert(fabs(loss - exact) <= relative_tolerance(31) * exact, "loss %.9g, exact %.9g", loss,
              exact);
    cr_assert_eq(eng_model_backward(w.model, w.stream, &w.input, &error), ENG_OK, "%s", error.text);
    float *grad = malloc((size_t)w.params->elements * sizeof *grad);
    download(&w, grad, w.params->grad, (size_t)w.params->elements * sizeof *grad);
    const double h = 1e-5;
    size_t compared = 0;
    for (int t = 0; t < w.params->tensor_count; t++) {
        const struct eng_tensor *tensor_ = &w.params->tensors[t];
        double largest = 0.0;
        for (int64_t i = 0; i < tensor_->elements; i++) {
            largest = fmax(largest, fabs((double)grad[tensor_->offset + i]));
        }
        cr_expect_gt(largest, 0.0, "%s", tensor_->name);
        for (int64_t i = 0; i < tensor_->elements; i += 7) {
            double *p = &w.weights[tensor_->offset + i];
            const double saved = *p;
            *p = saved + h;
            const double above = loss_by_definition(&w);
            *p = saved - h;
            const double below = loss_by_definition(&w);
            *p = saved;
            const double numeric = (above - below) / (2.0 * h) / w.supervised;
            /* central differences: h^2 of the third derivative, and cancellation of two losses */
            const double slack = relative_tolerance(TOKENS) * largest + h * h +
                                 DBL_EPSILON * exact / h;
            const double analytic = (double)grad[tensor_->offset + i];
            cr_expect(fabs(analytic - numeric) <= slack, "%s[%lld]: %.9g, numeric %.9g",
                      tensor_->name, (long long)i, analytic, numeric);
            compared++;
        }
    }
    cr_assert_gt(compared, 400);
    free(grad);
    world_close(&w);
}

Test(eng_model, loss_and_gradients_agree_with_central_differences)
{
    check_gradients(false);
}

Test(eng_model, tied_embeddings_receive_both_shares_of_the_gradient)
{
    check_gradients(true);
}

Test(eng_model, a_pass_leaves_no_device_memory_behind)
{
    struct world w;
    world_open(&w, false);
    struct eng_error error = {""};
    struct dev_ledger before, after;
    dev_ledger(w.d, &before);
    for (int i = 0; i < 3; i++) {
        run_forward(&w, 1.0f);
        cr_assert_eq(eng_model_backward(w.model, w.stream, &w.input, &error), ENG_OK);
        run_forward(&w, 0.0f);
    }
    must(dev_sync_all(w.d), &w);
    dev_ledger(w.d, &after);
    cr_assert_eq(before.live_bytes, after.live_bytes);
    cr_assert_eq(eng_model_backward(w.model, w.stream, &w.input, &error), ENG_EINTERNAL);
    world_close(&w);
}

Test(eng_model, weights_survive_a_file_and_a_wrong_shape_is_named)
{
    struct world w;
    world_open(&w, false);
    struct eng_error error = {""};
    char path[] = "/tmp/eng_model_test_XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(eng_model_save(w.model, w.stream, path, w.params->param, &error), ENG_OK, "%s",
                 error.text);
    cr_assert_eq(eng_model_load(w.model, w.stream, path, w.params->moment1, &error), ENG_OK, "%s",
                 error.text);
    const size_t bytes = (size_t)w.params->elements * sizeof(float);
    char *a = malloc(bytes);
    char *b = malloc(bytes);
    download(&w, a, w.params->param, bytes);
    download(&w, b, w.params->moment1, bytes);
    cr_assert_arr_eq(a, b, bytes);
    free(a);
    free(b);
    eng_model *other = NULL;
    struct eng_model_config config = w.config;
    config.ffn = 25;
    cr_assert_eq(eng_model_create(w.d, w.stream, &config, &other, &error), ENG_OK, "%s", error.text);
    cr_assert_eq(eng_model_load(other, w.stream, path, eng_model_params(other)->param, &error),
                 ENG_EINPUT);
    cr_assert_not_null(strstr(error.text, "mlp.gate_proj.weight"), "%s", error.text);
    cr_assert_eq(eng_model_load(other, w.stream, "/no/such", eng_model_params(other)->param, &error),
                 ENG_EIO);
    eng_model_destroy(other);
    unlink(path);
    world_close(&w);
}

Test(eng_model, the_memory_plan_covers_a_pass)
{
    struct world w;
    world_open(&w, false);
    struct eng_error error = {""};
    run_forward(&w, 1.0f);
    cr_assert_eq(eng_model_backward(w.model, w.stream, &w.input, &error), ENG_OK);
    must(dev_sync_all(w.d), &w);
    struct dev_ledger ledger;
    dev_ledger(w.d, &ledger);
    const size_t inputs = 4 * sizeof w.ids + 5 * 256;
    cr_assert_leq(ledger.peak_bytes, eng_model_plan_bytes(&w.config) + inputs);
    cr_assert_geq(2 * ledger.peak_bytes, eng_model_plan_bytes(&w.config), "the plan is too generous");
    world_close(&w);
}
