/* Model of the second stack: forward against plain loops written from corpus/RECIPE.md, backward
 * against finite differences of the forward. */
#include "ref_model.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME = 6, ROWS = 2, TOKENS = TIME * ROWS };

static const struct orc_ref_shape shape_grouped = {
    .layers = 2, .width = 16, .heads = 4, .kv_heads = 2, .ffn = 12, .context = TIME, .vocab = 11,
    .tied = false, .norm_eps = 1e-5, .rope_theta = 100.0};
static const struct orc_ref_shape shape_tied = {
    .layers = 1, .width = 8, .heads = 2, .kv_heads = 2, .ffn = 5, .context = TIME, .vocab = 9,
    .tied = true, .norm_eps = 1e-5, .rope_theta = 10000.0};

static int32_t ids[TOKENS] = {1, 4, 2, 8, 8, 0, 3, 5, 7, 2, 6, 1};
static int32_t labels[TOKENS] = {4, -100, 8, 8, -100, -100, -100, 7, 2, 6, 1, -100};
static int32_t positions[TOKENS] = {0, 1, 2, 0, 1, 0, 0, 1, 2, 3, 4, 0};
static int32_t segments[TOKENS] = {0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 1};
static const struct orc_ref_batch batch = {ROWS, TIME, ids, labels, positions, segments};

struct rig {
    const struct orc_ref_shape *shape;
    struct orc_ref_params params;
    struct orc_ref_pool *pool;
    struct orc_ref_tape *tape;
};

static void rig_up(struct rig *rig, const struct orc_ref_shape *shape)
{
    rig->shape = shape;
    cr_assert_eq(orc_ref_params_init(&rig->params, shape, NULL), ORC_REF_OK);
    rig->pool = orc_ref_pool_create(1);
    rig->tape = orc_ref_tape_create(rig->pool);
    for (size_t i = 0; i < rig->params.count; i++) {
        const struct orc_ref_param *const param = &rig->params.list[i];
        for (size_t j = 0; j < orc_ref_param_size(param); j++)
            rig->params.value[param->offset + j] =
                (param->dims == 1 ? 1.0 : 0.0) + 0.4 * sin((double)(i * 911 + j * 37 + 1));
    }
}

static void rig_down(struct rig *rig)
{
    orc_ref_tape_destroy(rig->tape);
    orc_ref_pool_destroy(rig->pool);
    orc_ref_params_fini(&rig->params);
}

static double run(struct rig *rig, double scale, struct orc_ref_forward *forward)
{
    orc_ref_tape_reset(rig->tape, scale != 0.0);
    cr_assert_eq(orc_ref_model_run(rig->tape, rig->shape, &rig->params, &batch, scale, forward, NULL),
                 ORC_REF_OK);
    return forward->nll;
}

/* ---- the plain loops ---- */

static const double *weight(const struct rig *rig, const char *name)
{
    for (size_t i = 0; i < rig->params.count; i++)
        if (strcmp(rig->params.list[i].name, name) == 0)
            return rig->params.value + rig->params.list[i].offset;
    cr_assert_fail("no parameter %s", name);
    return NULL;
}

static const double *layer_weight(const struct rig *rig, size_t layer, const char *name)
{
    char whole[96];
    (void)snprintf(whole, sizeof whole, "model.layers.%zu.%s.weight", layer, name);
    return weight(rig, whole);
}

static void plain_norm(const struct rig *rig, const double *x, const double *w, double *out)
{
    const size_t width = rig->shape->width;
    double mean = 0.0;
    for (size_t i = 0; i < width; i++)
        mean += x[i] * x[i] / (double)width;
    for (size_t i = 0; i < width; i++)
        out[i] = x[i] / sqrt(mean + rig->shape->norm_eps) * w[i];
}

static void plain_linear(const double *w, const double *x, size_t out_size, size_t in_size,
                         double *out)
{
    for (size_t o = 0; o < out_size; o++) {
        out[o] = 0.0;
        for (size_t i = 0; i < in_size; i++)
            out[o] += w[o * in_size + i] * x[i];
    }
}

static void plain_rope(const struct rig *rig, double *x, size_t heads, int32_t position)
{
    const size_t size = rig->shape->width / rig->shape->heads;
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < size / 2; i++) {
            double *const a = &x[h * size + i], *const b = &x[h * size + i + size / 2];
            const double angle =
                position * pow(rig->shape->rope_theta, -2.0 * (double)i / (double)size);
            const double first = *a * cos(angle) - *b * sin(angle);
            *b = *b * cos(angle) + *a * sin(angle);
            *a = first;
        }
}

enum { WIDE = 16 };

static void plain_attention(const struct rig *rig, double (*q)[WIDE], double (*k)[WIDE],
                            double (*v)[WIDE], size_t t, double *out)
{
    const size_t size = rig->shape->width / rig->shape->heads;
    const size_t group = rig->shape->heads / rig->shape->kv_heads;
    for (size_t h = 0; h < rig->shape->heads; h++) {
        double score[TOKENS], sum = 0.0;
        for (size_t s = t / TIME * TIME; s <= t; s++) {
            double dot = 0.0;
            for (size_t i = 0; i < size; i++)
                dot += q[t][h * size + i] * k[s][h / group * size + i];
            score[s] = segments[s] == segments[t] ? exp(dot / sqrt((double)size)) : 0.0;
            sum += score[s];
        }
        for (size_t i = 0; i < size; i++) {
            out[h * size + i] = 0.0;
            for (size_t s = t / TIME * TIME; s <= t; s++)
                out[h * size + i] += score[s] / sum * v[s][h / group * size + i];
        }
    }
}

static void plain_layer(const struct rig *rig, size_t layer, double (*x)[WIDE])
{
    const size_t width = rig->shape->width, ffn = rig->shape->ffn;
    const size_t kv = width / rig->shape->heads * rig->shape->kv_heads;
    double q[TOKENS][WIDE], k[TOKENS][WIDE], v[TOKENS][WIDE], h[WIDE], gate[WIDE], up[WIDE];
    for (size_t t = 0; t < TOKENS; t++) {
        plain_norm(rig, x[t], layer_weight(rig, layer, "input_layernorm"), h);
        plain_linear(layer_weight(rig, layer, "self_attn.q_proj"), h, width, width, q[t]);
        plain_linear(layer_weight(rig, layer, "self_attn.k_proj"), h, kv, width, k[t]);
        plain_linear(layer_weight(rig, layer, "self_attn.v_proj"), h, kv, width, v[t]);
        plain_rope(rig, q[t], rig->shape->heads, positions[t]);
        plain_rope(rig, k[t], rig->shape->kv_heads, positions[t]);
    }
    for (size_t t = 0; t < TOKENS; t++) {
        double joined[WIDE], added[WIDE];
        plain_attention(rig, q, k, v, t, joined);
        plain_linear(layer_weight(rig, layer, "self_attn.o_proj"), joined, width, width, added);
        for (size_t i = 0; i < width; i++)
            x[t][i] += added[i];
        plain_norm(rig, x[t], layer_weight(rig, layer, "post_attention_layernorm"), h);
        plain_linear(layer_weight(rig, layer, "mlp.gate_proj"), h, ffn, width, gate);
        plain_linear(layer_weight(rig, layer, "mlp.up_proj"), h, ffn, width, up);
        for (size_t i = 0; i < ffn; i++)
            up[i] *= gate[i] / (1.0 + exp(-gate[i]));
        plain_linear(layer_weight(rig, layer, "mlp.down_proj"), up, width, ffn, added);
        for (size_t i = 0; i < width; i++)
            x[t][i] += added[i];
    }
}

static void plain_losses(const struct rig *rig, double nll[TOKENS])
{
    const size_t width = rig->shape->width, vocab = rig->shape->vocab;
    const double *const embed = weight(rig, "model.embed_tokens.weight");
    const double *const head = rig->shape->tied ? embed : weight(rig, "lm_head.weight");
    double x[TOKENS][WIDE], h[WIDE], logits[WIDE];
    for (size_t t = 0; t < TOKENS; t++)
        memcpy(x[t], embed + (size_t)ids[t] * width, width * sizeof(double));
    for (size_t layer = 0; layer < rig->shape->layers; layer++)
        plain_layer(rig, layer, x);
    for (size_t t = 0; t < TOKENS; t++) {
        double sum = 0.0;
        nll[t] = 0.0;
        plain_norm(rig, x[t], weight(rig, "model.norm.weight"), h);
        plain_linear(head, h, vocab, width, logits);
        for (size_t i = 0; i < vocab; i++)
            sum += exp(logits[i]);
        if (labels[t] >= 0)
            nll[t] = log(sum) - logits[labels[t]];
    }
}

/* Both ways of summing are within n eps of the exact value for each of a few nested sums of at
 * most `longest` terms; values are of the order of one, and each layer passes errors on. */
static double tolerance(const struct orc_ref_shape *shape)
{
    const double longest = (double)shape->width * (double)shape->ffn;
    return longest * (double)(8 * shape->layers + 2) * DBL_EPSILON;
}

static void check_forward(const struct orc_ref_shape *shape)
{
    struct rig rig;
    struct orc_ref_forward forward;
    double nll[TOKENS], sum = 0.0;
    size_t compared = 0;
    rig_up(&rig, shape);
    plain_losses(&rig, nll);
    (void)run(&rig, 0.0, &forward);
    const struct orc_ref_tensor tap = forward.taps[orc_ref_model_taps(shape) - 1];
    for (size_t t = 0; t < TOKENS; t++) {
        cr_assert(fabs(tap.value[t] - nll[t]) <= tolerance(shape), "position %zu: %.17g, plain %.17g",
                  t, tap.value[t], nll[t]);
        sum += nll[t];
        compared += labels[t] >= 0;
    }
    cr_assert_eq(compared, 7);
    cr_assert_eq(forward.supervised, compared);
    cr_assert(fabs(forward.nll - sum) <= TOKENS * tolerance(shape));
    rig_down(&rig);
}

Test(ref_model, forward_matches_plain_loops)
{
    check_forward(&shape_grouped);
    check_forward(&shape_tied);
}

/* See orc_ref_tape_test.c for the bound; here a loss has about as many terms as the model has
 * multiplications of one token, all of the order of one. */
static void check_backward(const struct orc_ref_shape *shape)
{
    struct rig rig;
    struct orc_ref_forward forward;
    size_t compared = 0;
    rig_up(&rig, shape);
    const double scale = 1.0 / 7.0, h = cbrt(DBL_EPSILON);
    const double rounding = tolerance(shape) * TOKENS / h;
    (void)run(&rig, scale, &forward);
    for (size_t i = 0; i < rig.params.count; i++)
        for (size_t j = 0; j < orc_ref_param_size(&rig.params.list[i]); j++) {
            double *const x = &rig.params.value[rig.params.list[i].offset + j], kept = *x;
            double slope[2];
            for (int far = 0; far < 2; far++) {
                const double step = far ? 2.0 * h : h;
                *x = kept + step;
                const double up = run(&rig, 0.0, &forward);
                *x = kept - step;
                slope[far] = scale * (up - run(&rig, 0.0, &forward)) / (2.0 * step);
                *x = kept;
            }
            const double got = rig.params.grad[rig.params.list[i].offset + j];
            cr_assert(fabs(slope[0] - got) <= fabs(slope[1] - slope[0]) + rounding,
                      "%s[%zu]: tape %.17g, differences %.17g, bound %g", rig.params.list[i].name,
                      j, got, slope[0], fabs(slope[1] - slope[0]) + rounding);
            compared++;
        }
    cr_assert_gt(compared, 0);
    rig_down(&rig);
}

Test(ref_model, gradients_match_finite_differences)
{
    check_backward(&shape_grouped);
    check_backward(&shape_tied);
}

Test(ref_model, gradients_add_up_over_batches)
{
    struct rig rig;
    struct orc_ref_forward forward;
    size_t compared = 0;
    rig_up(&rig, &shape_grouped);
    (void)run(&rig, 0.25, &forward);
    double *const once = malloc(rig.params.total * sizeof *once);
    memcpy(once, rig.params.grad, rig.params.total * sizeof *once);
    (void)run(&rig, 0.25, &forward);
    /* Each sum now holds twice as many terms, each below the largest gradient. */
    double largest = 0.0;
    for (size_t i = 0; i < rig.params.total; i++)
        largest = fmax(largest, fabs(once[i]));
    for (size_t i = 0; i < rig.params.total; i++) {
        cr_assert(fabs(rig.params.grad[i] - 2.0 * once[i]) <= 4 * TOKENS * DBL_EPSILON * largest);
        compared += once[i] != 0.0;
    }
    cr_assert_gt(compared, 0);
    free(once);
    rig_down(&rig);
}

Test(ref_model, a_batch_without_labels_has_no_gradient)
{
    struct rig rig;
    struct orc_ref_forward forward;
    int32_t ignored[TOKENS];
    rig_up(&rig, &shape_grouped);
    for (size_t t = 0; t < TOKENS; t++)
        ignored[t] = ORC_REF_IGNORED;
    const struct orc_ref_batch silent = {ROWS, TIME, ids, ignored, positions, segments};
    orc_ref_tape_reset(rig.tape, true);
    cr_assert_eq(orc_ref_model_run(rig.tape, rig.shape, &rig.params, &silent, 1.0, &forward, NULL),
                 ORC_REF_OK);
    cr_assert(forward.nll == 0.0);
    cr_assert_gt(rig.params.total, 0);
    for (size_t i = 0; i < rig.params.total; i++)
        cr_assert(rig.params.grad[i] == 0.0);
    rig_down(&rig);
}
