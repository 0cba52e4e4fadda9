/* The model as compositions of tape operations. See ref_model.h. */
#include "ref_model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct orc_ref_tensor tensor;

struct build {
    struct orc_ref_tape *tape;
    const struct orc_ref_shape *shape;
    struct orc_ref_params *params;
    const struct orc_ref_batch *batch;
    size_t tokens, head_dim;
    bool gradients;
    tensor cosine, sine;         /* (tokens, width): the same for each head */
    const int32_t *first, *end;  /* keys that row (row, head, position) of the scores may see */
    tensor *taps;
};

size_t orc_ref_model_taps(const struct orc_ref_shape *shape)
{
    return shape->layers * ORC_REF_TAPS_OF_LAYER + 3;
}

void orc_ref_model_tap_name(const struct orc_ref_shape *shape, size_t tap, char *name,
                            size_t bytes)
{
    static const char *const of_layer[ORC_REF_TAPS_OF_LAYER] = {"qkv", "attn", "mid", "out"};
    const size_t last = orc_ref_model_taps(shape) - 1;
    if (tap == 0 || tap >= last - 1)
        (void)snprintf(name, bytes, "%s", tap == 0 ? "embed" : tap == last ? "nll" : "norm");
    else
        (void)snprintf(name, bytes, "layers.%zu.%s", (tap - 1) / ORC_REF_TAPS_OF_LAYER,
                       of_layer[(tap - 1) % ORC_REF_TAPS_OF_LAYER]);
}

static tensor fresh(struct build *b, size_t rows, size_t cols)
{
    return orc_ref_tape_tensor(b->tape, rows, cols);
}

static tensor leaf(const struct build *b, size_t index)
{
    const struct orc_ref_param *const param = &b->params->list[index];
    const tensor x = {b->params->value + param->offset,
                      b->gradients ? b->params->grad + param->offset : NULL, param->rows,
                      param->cols, param->cols};
    return x;
}

/* x / sqrt(mean(x^2) + eps) * weight */
static tensor rms_norm(struct build *b, tensor x, tensor weight)
{
    tensor square = fresh(b, x.rows, x.cols), sum = fresh(b, x.rows, 1);
    tensor mean = fresh(b, x.rows, 1), scale = fresh(b, x.rows, 1);
    tensor unit = fresh(b, x.rows, x.cols), out = fresh(b, x.rows, x.cols);
    orc_ref_tape_mul(b->tape, x, x, square);
    orc_ref_tape_row_sum(b->tape, square, sum);
    orc_ref_tape_affine(b->tape, sum, 1.0 / (double)x.cols, b->shape->norm_eps, mean);
    orc_ref_tape_rsqrt(b->tape, mean, scale);
    orc_ref_tape_mul(b->tape, x, scale, unit);
    orc_ref_tape_mul(b->tape, unit, weight, out);
    return out;
}

static tensor linear(struct build *b, tensor x, size_t weight)
{
    const tensor w = leaf(b, weight);
    tensor out = fresh(b, x.rows, w.rows);
    orc_ref_tape_linear(b->tape, x, w, out);
    return out;
}

/* x cos + rotate_half(x) sin, heads side by side */
static void rotate(struct build *b, tensor x, tensor out)
{
    tensor turned = fresh(b, x.rows, x.cols), straight = fresh(b, x.rows, x.cols);
    tensor crossed = fresh(b, x.rows, x.cols);
    orc_ref_tape_rotate_half(b->tape, x, b->head_dim, turned);
    orc_ref_tape_mul(b->tape, x, orc_ref_tape_columns(b->cosine, 0, x.cols), straight);
    orc_ref_tape_mul(b->tape, turned, orc_ref_tape_columns(b->sine, 0, x.cols), crossed);
    orc_ref_tape_add(b->tape, straight, crossed, out);
}

/* Key or value heads repeated so that each query head has its own. */
static tensor for_each_query(struct build *b, tensor x)
{
    const size_t times = b->shape->heads / b->shape->kv_heads;
    if (times == 1)
        return x;
    tensor out = fresh(b, x.rows, x.cols * times);
    orc_ref_tape_repeat(b->tape, x, b->head_dim, times, out);
    return out;
}

/* softmax(q k / sqrt(head_dim)) v for each row and head; q, k, v (tokens, width). */
static tensor attention(struct build *b, tensor q, tensor k, tensor v)
{
    const size_t rows = b->batch->rows, time = b->batch->context, heads = b->shape->heads;
    const size_t lines = rows * heads * time, block = time * time;
    tensor scaled = fresh(b, q.rows, q.cols), scores = fresh(b, lines, time);
    tensor sum = fresh(b, lines, 1), inverse = fresh(b, lines, 1);
    tensor weights = fresh(b, lines, time), out = fresh(b, b->tokens, q.cols);
    const tensor shift = orc_ref_tape_constant(b->tape, lines, 1);
    const struct orc_ref_blocks score_blocks = {
        .outer = rows, .inner = heads, .m = time, .n = time, .k = b->head_dim,
        .a_outer = time * q.cols, .a_inner = b->head_dim, .b_outer = time * k.ld,
        .b_inner = b->head_dim, .c_outer = heads * block, .c_inner = block, .b_transposed = true};
    const struct orc_ref_blocks value_blocks = {
        .outer = rows, .inner = heads, .m = time, .n = b->head_dim, .k = time,
        .a_outer = heads * block, .a_inner = block, .b_outer = time * v.ld,
        .b_inner = b->head_dim, .c_outer = time * out.ld, .c_inner = b->head_dim};
    orc_ref_tape_affine(b->tape, q, 1.0 / sqrt((double)b->head_dim), 0.0, scaled);
    orc_ref_tape_matmul(b->tape, scaled, k, &score_blocks, scores);
    orc_ref_tape_exp_range(b->tape, scores, b->first, b->end, shift);
    orc_ref_tape_row_sum(b->tape, scores, sum);
    orc_ref_tape_reciprocal(b->tape, sum, inverse);
    orc_ref_tape_mul(b->tape, scores, inverse, weights);
    orc_ref_tape_matmul(b->tape, weights, v, &value_blocks, out);
    return out;
}

static tensor attend(struct build *b, tensor x, size_t layer, tensor *taps)
{
    const size_t width = b->shape->width, kv = b->head_dim * b->shape->kv_heads;
    const tensor qkv = fresh(b, b->tokens, width + 2 * kv);
    const tensor q = orc_ref_tape_columns(qkv, 0, width);
    const tensor k = orc_ref_tape_columns(qkv, width, kv);
    const tensor v = orc_ref_tape_columns(qkv, width + kv, kv);
    const tensor h = rms_norm(b, x, leaf(b, orc_ref_params_layer(layer, ORC_REF_INPUT_NORM)));
    rotate(b, linear(b, h, orc_ref_params_layer(layer, ORC_REF_Q)), q);
    rotate(b, linear(b, h, orc_ref_params_layer(layer, ORC_REF_K)), k);
    orc_ref_tape_linear(b->tape, h, leaf(b, orc_ref_params_layer(layer, ORC_REF_V)), v);
    const tensor joined = attention(b, q, for_each_query(b, k), for_each_query(b, v));
    const tensor added = linear(b, joined, orc_ref_params_layer(layer, ORC_REF_O));
    const tensor out = fresh(b, b->tokens, width);
    orc_ref_tape_add(b->tape, x, added, out);
    taps[0] = qkv;
    taps[1] = joined;
    taps[2] = out;
    return out;
}

/* x + down(silu(gate h) * up h), silu(y) = y sigmoid(y) */
static tensor feed_forward(struct build *b, tensor x, size_t layer)
{
    const size_t ffn = b->shape->ffn;
    const tensor h = rms_norm(b, x, leaf(b, orc_ref_params_layer(layer, ORC_REF_POST_NORM)));
    const tensor gate = linear(b, h, orc_ref_params_layer(layer, ORC_REF_GATE));
    const tensor up = linear(b, h, orc_ref_params_layer(layer, ORC_REF_UP));
    const tensor soft = fresh(b, b->tokens, ffn), silu = fresh(b, b->tokens, ffn);
    const tensor mixed = fresh(b, b->tokens, ffn), out = fresh(b, b->tokens, x.cols);
    orc_ref_tape_sigmoid(b->tape, gate, soft);
    orc_ref_tape_mul(b->tape, gate, soft, silu);
    orc_ref_tape_mul(b->tape, silu, up, mixed);
    const tensor added = linear(b, mixed, orc_ref_params_layer(layer, ORC_REF_DOWN));
    orc_ref_tape_add(b->tape, x, added, out);
    return out;
}

/* Constants of the batch: rotation tables and which keys each query sees. */
static void prepare(struct build *b)
{
    const struct orc_ref_batch *const batch = b->batch;
    const size_t time = batch->context, heads = b->shape->heads, half = b->head_dim / 2;
    const size_t lines = batch->rows * heads * time;
    b->cosine = orc_ref_tape_constant(b->tape, b->tokens, b->shape->width);
    b->sine = orc_ref_tape_constant(b->tape, b->tokens, b->shape->width);
    int32_t *const first = orc_ref_tape_take(b->tape, lines, sizeof *first);
    int32_t *const end = orc_ref_tape_take(b->tape, lines, sizeof *end);
    if (orc_ref_tape_failed(b->tape))
        return;
    for (size_t t = 0; t < b->tokens; t++)
        for (size_t i = 0; i < half; i++) {
            const double exponent = -2.0 * (double)i / (double)b->head_dim;
            const double angle = batch->positions[t] * pow(b->shape->rope_theta, exponent);
            const double cosine = cos(angle), sine = sin(angle);
            for (size_t c = i; c < b->shape->width; c += half) {
                b->cosine.value[t * b->shape->width + c] = cosine;
                b->sine.value[t * b->shape->width + c] = sine;
            }
        }
    for (size_t line = 0; line < lines; line++) {
        const size_t at = line % time, row = line / time / heads;
        const int32_t *const segment = batch->segments + row * time;
        size_t start = at;
        while (start > 0 && segment[start - 1] == segment[at])
            start--;
        first[line] = (int32_t)start;
        end[line] = (int32_t)at + 1;
    }
    b->first = first;
    b->end = end;
}

/* -log softmax(logits)[label] of the supervised positions only: the others have no loss, so their
 * logits are never needed. Returns (supervised, 1); *where = their positions. */
static tensor losses(struct build *b, tensor h, size_t supervised, int32_t **where)
{
    const size_t vocab = b->shape->vocab;
    const tensor none = {0};
    int32_t *const index = orc_ref_tape_take(b->tape, supervised * 4, sizeof *index);
    if (index == NULL)
        return none;
    int32_t *const label = index + supervised, *const first = label + supervised;
    int32_t *const end = first + supervised;
    size_t found = 0;
    for (size_t t = 0; t < b->tokens; t++)
        if (b->batch->labels[t] != ORC_REF_IGNORED) {
            index[found] = (int32_t)t;
            label[found] = b->batch->labels[t];
            first[found] = 0;
            end[found] = (int32_t)vocab;
            found++;
        }
    const tensor rows = fresh(b, supervised, h.cols);
    const tensor chosen = fresh(b, supervised, 1), minus = fresh(b, supervised, 1);
    const tensor sum = fresh(b, supervised, 1), logs = fresh(b, supervised, 1);
    const tensor whole = fresh(b, supervised, 1), nll = fresh(b, supervised, 1);
    const tensor shift = orc_ref_tape_constant(b->tape, supervised, 1);
    orc_ref_tape_gather(b->tape, h, index, rows);
    const tensor logits = linear(b, rows, orc_ref_params_head(b->shape));
    orc_ref_tape_pick(b->tape, logits, label, chosen);
    orc_ref_tape_exp_range(b->tape, logits, first, end, shift);
    orc_ref_tape_row_sum(b->tape, logits, sum);
    orc_ref_tape_log(b->tape, sum, logs);
    orc_ref_tape_add(b->tape, logs, shift, whole);
    orc_ref_tape_affine(b->tape, chosen, -1.0, 0.0, minus);
    orc_ref_tape_add(b->tape, whole, minus, nll);
    *where = index;
    return nll;
}

static void finish(struct build *b, tensor nll, const int32_t *where, double grad_scale,
                   struct orc_ref_forward *out)
{
    const tensor all = orc_ref_tape_constant(b->tape, b->tokens, 1);
    if (orc_ref_tape_failed(b->tape))
        return;
    memset(all.value, 0, b->tokens * sizeof *all.value);
    out->nll = 0.0;
    for (size_t i = 0; i < out->supervised; i++) {
        all.value[where[i]] = nll.value[i];
        out->nll += nll.value[i];
        if (b->gradients)
            nll.grad[i] = grad_scale;
    }
    b->taps[orc_ref_model_taps(b->shape) - 1] = all;
    if (b->gradients)
        orc_ref_tape_backward(b->tape);
}

enum orc_ref_status orc_ref_model_run(struct orc_ref_tape *tape, const struct orc_ref_shape *shape,
                                      struct orc_ref_params *params,
                                      const struct orc_ref_batch *batch, double grad_scale,
                                      struct orc_ref_forward *out, struct orc_ref_error *error)
{
    struct build b = {.tape = tape, .shape = shape, .params = params, .batch = batch,
                      .tokens = batch->rows * batch->context,
                      .head_dim = shape->width / shape->heads, .gradients = grad_scale != 0.0};
    *out = (struct orc_ref_forward){0};
    for (size_t t = 0; t < b.tokens; t++)
        out->supervised += batch->labels[t] != ORC_REF_IGNORED;
    b.taps = orc_ref_tape_take(tape, orc_ref_model_taps(shape), sizeof *b.taps);
    prepare(&b);
    if (orc_ref_tape_failed(tape))
        goto done;
    tensor x = fresh(&b, b.tokens, shape->width);
    orc_ref_tape_gather(tape, leaf(&b, 0), batch->ids, x);
    b.taps[0] = x;
    for (size_t layer = 0; layer < shape->layers; layer++) {
        tensor *const taps = b.taps + 1 + layer * ORC_REF_TAPS_OF_LAYER;
        x = attend(&b, x, layer, taps);
        x = feed_forward(&b, x, layer);
        taps[3] = x;
    }
    const tensor h = rms_norm(&b, x, leaf(&b, orc_ref_params_norm(shape)));
    b.taps[orc_ref_model_taps(shape) - 2] = h;
    int32_t *where = NULL;
    const tensor nll = losses(&b, h, out->supervised, &where);
    finish(&b, nll, where, grad_scale, out);
    out->taps = b.taps;
done:
    if (orc_ref_tape_failed(tape))
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory for a batch of %zu tokens",
                            b.tokens);
    return ORC_REF_OK;
}
