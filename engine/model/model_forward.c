/* The forward pass and the loss. Called by engine/train through model.h; must not know gradients.
 */
#include "model_forward.h"

#include <math.h>

#include "attention.h"
#include "embed.h"
#include "fault.h"
#include "loss.h"
#include "mlp.h"
#include "norm.h"
#include "rope.h"

/* One pass: the chain, its input, and who wants to see activations. */
struct forward {
    struct eng_chain chain;
    const struct eng_input *input;
    const struct eng_taps *taps;
    size_t tap_index;
    enum eng_status tap_status;
    struct eng_error *error;
};

static void tap(struct forward *f, const float *x, int width)
{
    const char *name = eng_model_tap_name(f->chain.model, f->tap_index++);
    if (f->taps == NULL || f->taps->fn == NULL || f->chain.status != DEV_OK ||
        f->tap_status != ENG_OK) {
        return;
    }
    f->tap_status = f->taps->fn(f->taps->context, name, x, f->chain.model->tokens, width, f->error);
}

void eng_model_norm(struct eng_chain *c, const float *x, const float *weight, float *out,
                    float *rstd, const char *what)
{
    const struct eng_model *m = c->model;
    const size_t width = (size_t)m->config.width;
    const size_t tokens = (size_t)m->tokens;
    const struct k_rmsnorm_fwd_args args = {.x = x,
                                            .weight = weight,
                                            .out = out,
                                            .rstd = rstd,
                                            .width = m->config.width,
                                            .eps = m->config.norm_eps};
    const struct dev_span spans[] = {
        ENG_SPAN(x, tokens * width, DEV_READ), ENG_SPAN(weight, width, DEV_READ),
        ENG_SPAN(out, tokens * width, DEV_WRITE), ENG_SPAN(rstd, tokens, DEV_WRITE)};
    eng_chain_launch(c, K_ID_rmsnorm_fwd, m->tokens, &args, ENG_SPANS(spans), what);
}

void eng_model_rope(struct eng_chain *c, float *qkv, const int32_t *positions, float direction,
                    const char *what)
{
    const struct eng_model *m = c->model;
    const size_t table = (size_t)m->config.context * (size_t)m->head_dim / 2;
    const struct k_rope_args args = {.x = qkv,
                                     .cosine = m->cosine,
                                     .sine = m->sine,
                                     .positions = positions,
                                     .stride = m->qkv_width,
                                     .heads = m->config.heads + m->config.kv_heads,
                                     .head_dim = m->head_dim,
                                     .direction = direction};
    const struct dev_span spans[] = {
        ENG_SPAN(qkv, (size_t)m->tokens * (size_t)m->qkv_width, DEV_READ_WRITE),
        ENG_SPAN(m->cosine, table, DEV_READ), ENG_SPAN(m->sine, table, DEV_READ),
        ENG_SPAN(positions, m->tokens, DEV_READ)};
    eng_chain_launch(c, K_ID_rope, m->tokens, &args, ENG_SPANS(spans), what);
}

/* Query head served as the `nth` of key/value head `kv`: consecutive groups (Hugging Face
 * repeat_kv). */
static int query_head(const struct eng_model *m, int kv, int nth)
{
    return FAULT(model_query_head, kv * (m->config.heads / m->config.kv_heads) + nth);
}

/* Element strides between heads of one nth: the first, and the step to the next key/value head. */
static void head_span(const struct eng_model *m, int nth, size_t *first, size_t *step)
{
    *first = (size_t)query_head(m, 0, nth);
    *step = m->config.kv_heads > 1 ? (size_t)query_head(m, 1, nth) - *first : 0;
}

struct eng_place eng_place_query(const eng_model *m, int nth)
{
    size_t first, step;
    head_span(m, nth, &first, &step);
    return (struct eng_place){.offset = first * (size_t)m->head_dim,
                              .outer = (size_t)m->config.context * (size_t)m->qkv_width,
                              .inner = step * (size_t)m->head_dim,
                              .stride = m->qkv_width};
}

struct eng_place eng_place_attn(const eng_model *m, int nth)
{
    const int width = m->config.heads * m->head_dim;
    struct eng_place place = eng_place_query(m, nth);
    place.outer = (size_t)m->config.context * (size_t)width;
    place.stride = width;
    return place;
}

struct eng_place eng_place_scores(const eng_model *m, int nth)
{
    const size_t matrix = (size_t)m->config.context * (size_t)m->config.context;
    size_t first, step;
    head_span(m, nth, &first, &step);
    return (struct eng_place){.offset = first * matrix,
                              .outer = (size_t)m->config.heads * matrix,
                              .inner = step * matrix,
                              .stride = m->config.context};
}

static struct eng_place place_kv(const eng_model *m, int heads_before)
{
    return (struct eng_place){.offset = (size_t)heads_before * (size_t)m->head_dim,
                              .outer = (size_t)m->config.context * (size_t)m->qkv_width,
                              .inner = (size_t)m->head_dim,
                              .stride = m->qkv_width};
}

struct eng_place eng_place_key(const eng_model *m)
{
    return place_kv(m, m->config.heads);
}

struct eng_place eng_place_value(const eng_model *m)
{
    return place_kv(m, m->config.heads + m->config.kv_heads);
}

void eng_chain_attention(struct eng_chain *c, const struct eng_attention_product *p,
                         const char *what)
{
    if (c->status != DEV_OK) {
        return; /* an operand may be missing */
    }
    const struct k_gemm_args args = {.a = p->a + p->a_place.offset,
                                     .b = p->b + p->b_place.offset,
                                     .c = p->c + p->c_place.offset,
                                     .m = p->m,
                                     .n = p->n,
                                     .k = p->k,
                                     .lda = p->a_place.stride,
                                     .ldb = p->b_place.stride,
                                     .ldc = p->c_place.stride,
                                     .trans_a = p->trans_a,
                                     .trans_b = p->trans_b,
                                     .accumulate = p->accumulate,
                                     .batch_outer = c->model->config.rows,
                                     .batch_inner = c->model->config.kv_heads,
                                     .a_outer = p->a_place.outer,
                                     .a_inner = p->a_place.inner,
                                     .b_outer = p->b_place.outer,
                                     .b_inner = p->b_place.inner,
                                     .c_outer = p->c_place.outer,
                                     .c_inner = p->c_place.inner,
                                     .mask = p->first != NULL ? p->mask : K_GEMM_DENSE,
                                     .marks = p->first,
                                     .marks_outer = (size_t)c->model->config.context};
    eng_chain_gemm(c, &args, what);
}

static void attention_scores(struct eng_chain *c, const float *qkv, const int32_t *first,
                             float *scores, int nth)
{
    const struct eng_model *m = c->model;
    const struct eng_attention_product p = {.a = qkv,
                                            .a_place = eng_place_query(m, nth),
                                            .b = qkv,
                                            .b_place = eng_place_key(m),
                                            .c = scores,
                                            .c_place = eng_place_scores(m, nth),
                                            .m = m->config.context,
                                            .n = m->config.context,
                                            .k = m->head_dim,
                                            .trans_b = true,
                                            .mask = K_GEMM_SEEN_C,
                                            .first = first};
    eng_chain_attention(c, &p, "attention scores");
}

static void attention_mix(struct eng_chain *c, const float *qkv, const int32_t *first,
                          const float *probs, float *out, int nth)
{
    const struct eng_model *m = c->model;
    const struct eng_attention_product p = {.a = probs,
                                            .a_place = eng_place_scores(m, nth),
                                            .b = qkv,
                                            .b_place = eng_place_value(m),
                                            .c = out,
                                            .c_place = eng_place_attn(m, nth),
                                            .m = m->config.context,
                                            .n = m->head_dim,
                                            .k = m->config.context,
                                            .mask = K_GEMM_SEEN_A,
                                            .first = first};
    eng_chain_attention(c, &p, "attention output");
}

static void attention(struct forward *f, struct eng_layer_saved *s)
{
    struct eng_chain *c = &f->chain;
    const struct eng_model *m = c->model;
    const int group = m->config.heads / m->config.kv_heads;
    const int score_rows = m->tokens * m->config.heads;
    const int32_t *first = eng_model_marks(K_ID_attn_softmax_fwd, f->input->first);
    const struct k_attn_softmax_fwd_args args = {
        .scores = s->probs,
        .first = f->input->first,
        .heads = m->config.heads,
        .time = m->config.context,
        .scale = FAULT(model_attention_scale, 1.0f / sqrtf((float)m->head_dim))};
    const struct dev_span spans[] = {
        ENG_SPAN(s->probs, (size_t)score_rows * (size_t)m->config.context, DEV_READ_WRITE),
        ENG_SPAN(f->input->first, m->tokens, DEV_READ)};
    for (int nth = 0; nth < group; nth++) {
        attention_scores(c, s->qkv, first, s->probs, nth);
    }
    eng_chain_launch(c, K_ID_attn_softmax_fwd, score_rows, &args, ENG_SPANS(spans),
                     "attention softmax");
    for (int nth = 0; nth < group; nth++) {
        attention_mix(c, s->qkv, first, s->probs, s->attn, nth);
    }
}

static void allocate_layer(struct eng_chain *c, struct eng_layer_saved *s)
{
    const struct eng_model *m = c->model;
    const size_t tokens = (size_t)m->tokens;
    const size_t stream = tokens * (size_t)m->config.width;
    const size_t ffn = tokens * (size_t)m->config.ffn;
    s->attn_norm = eng_chain_malloc(c, stream, "attention norm");
    s->attn_rstd = eng_chain_malloc(c, tokens, "attention rstd");
    s->qkv = eng_chain_malloc(c, tokens * (size_t)m->qkv_width, "qkv");
    s->probs = eng_chain_malloc(c, tokens * (size_t)m->config.heads * (size_t)m->config.context,
                                "probabilities");
    s->attn = eng_chain_malloc(c, tokens * (size_t)m->config.heads * (size_t)m->head_dim,
                               "attention output");
    s->mid = eng_chain_malloc(c, stream, "mid residual");
    s->mlp_norm = eng_chain_malloc(c, stream, "mlp norm");
    s->mlp_rstd = eng_chain_malloc(c, tokens, "mlp rstd");
    s->gate_up = eng_chain_malloc(c, 2 * ffn, "gate and up");
    s->mlp = eng_chain_malloc(c, ffn, "mlp");
}

static void mlp(struct eng_chain *c, int layer, struct eng_layer_saved *s, float *out)
{
    const struct eng_model *m = c->model;
    const struct eng_model_config *config = &m->config;
    const float *w = m->params.param;
    const size_t ffn = (size_t)m->tokens * (size_t)config->ffn;
    const struct k_swiglu_fwd_args args = {
        .gate_up = s->gate_up, .out = s->mlp, .ffn = config->ffn};
    const struct dev_span spans[] = {ENG_SPAN(s->gate_up, 2 * ffn, DEV_READ),
                                     ENG_SPAN(s->mlp, ffn, DEV_WRITE)};
    eng_model_norm(c, s->mid, w + eng_model_layer_offset(m, layer, ENG_W_MLP_NORM), s->mlp_norm,
                   s->mlp_rstd, "mlp norm");
    eng_chain_linear(c, s->gate_up, s->mlp_norm, w + eng_model_layer_offset(m, layer, ENG_W_GATE),
                     2 * config->ffn, config->width, false, "gate and up");
    eng_chain_launch(c, K_ID_swiglu_fwd, m->tokens, &args, ENG_SPANS(spans), "swiglu");
    eng_chain_copy(c, out, s->mid, (size_t)m->tokens * (size_t)config->width, "residual");
    eng_chain_linear(c, out, s->mlp, w + eng_model_layer_offset(m, layer, ENG_W_DOWN),
                     config->width, config->ffn, true, "down");
}

/* Runs one layer on s->input; returns the residual stream behind it. */
static float *layer_forward(struct forward *f, int layer, struct eng_layer_saved *s)
{
    struct eng_chain *c = &f->chain;
    const struct eng_model *m = c->model;
    const int width = m->config.width;
    const size_t stream = (size_t)m->tokens * (size_t)width;
    const float *w = m->params.param;
    allocate_layer(c, s);
    float *out = eng_chain_malloc(c, stream, "residual");
    eng_model_norm(c, s->input, w + eng_model_layer_offset(m, layer, ENG_W_ATTN_NORM), s->attn_norm,
                   s->attn_rstd, "attention norm");
    eng_chain_linear(c, s->qkv, s->attn_norm, w + eng_model_layer_offset(m, layer, ENG_W_Q),
                     m->qkv_width, width, false, "qkv");
    eng_model_rope(c, s->qkv, f->input->positions, 1.0f, "rope");
    tap(f, s->qkv, m->qkv_width);
    attention(f, s);
    tap(f, s->attn, m->config.heads * m->head_dim);
    eng_chain_copy(c, s->mid, s->input, stream, "residual");
    eng_chain_linear(c, s->mid, s->attn, w + eng_model_layer_offset(m, layer, ENG_W_O), width,
                     m->config.heads * m->head_dim, true, "o_proj");
    tap(f, s->mid, width);
    mlp(c, layer, s, out);
    tap(f, out, width);
    return out;
}

static float *embed(struct forward *f)
{
    struct eng_chain *c = &f->chain;
    const struct eng_model *m = c->model;
    const int width = m->config.width;
    const size_t stream = (size_t)m->tokens * (size_t)width;
    float *out = eng_chain_malloc(c, stream, "embedding");
    const struct k_embed_fwd_args args = {
        .ids = f->input->ids, .table = m->params.param, .out = out, .width = width};
    const struct dev_span spans[] = {
        ENG_SPAN(f->input->ids, m->tokens, DEV_READ),
        ENG_SPAN(m->params.param, (size_t)m->config.vocab * (size_t)width, DEV_READ),
        ENG_SPAN(out, stream, DEV_WRITE)};
    eng_chain_launch(c, K_ID_embed_fwd, m->tokens, &args, ENG_SPANS(spans), "embedding");
    tap(f, out, width);
    return out;
}

static void loss(struct forward *f, float inv_count, float *loss_sum, bool accumulate)
{
    struct eng_chain *c = &f->chain;
    const struct eng_model *m = c->model;
    const struct eng_head_saved *h = &m->head;
    const size_t logits = (size_t)m->tokens * (size_t)m->config.vocab;
    const struct k_xent_args xent = {.logits = h->logits,
                                     .labels = f->input->labels,
                                     .nll = h->nll,
                                     .vocab = m->config.vocab,
                                     .inv_count = inv_count};
    const struct dev_span xent_spans[] = {ENG_SPAN(h->logits, logits, DEV_READ_WRITE),
                                          ENG_SPAN(f->input->labels, m->tokens, DEV_READ),
                                          ENG_SPAN(h->nll, m->tokens, DEV_WRITE)};
    const struct k_loss_sum_args sum = {
        .nll = h->nll, .out = loss_sum, .count = m->tokens, .accumulate = accumulate};
    const struct dev_span sum_spans[] = {ENG_SPAN(h->nll, m->tokens, DEV_READ),
                                         ENG_SPAN(loss_sum, 1, DEV_READ_WRITE)};
    eng_chain_launch(c, K_ID_xent, m->tokens, &xent, ENG_SPANS(xent_spans), "cross entropy");
    eng_chain_launch(c, K_ID_loss_sum, 1, &sum, ENG_SPANS(sum_spans), "loss sum");
    tap(f, h->nll, 1);
}

static void head_forward(struct forward *f, float *residual)
{
    struct eng_chain *c = &f->chain;
    struct eng_model *m = c->model;
    const size_t tokens = (size_t)m->tokens;
    struct eng_head_saved *h = &m->head;
    h->input = residual;
    h->norm = eng_chain_malloc(c, tokens * (size_t)m->config.width, "final norm");
    h->rstd = eng_chain_malloc(c, tokens, "final rstd");
    h->logits = eng_chain_malloc(c, tokens * (size_t)m->config.vocab, "logits");
    h->nll = eng_chain_malloc(c, tokens, "nll");
    eng_model_norm(c, residual, m->params.param + eng_model_norm_offset(m), h->norm, h->rstd,
                   "final norm");
    tap(f, h->norm, m->config.width);
    struct k_gemm_args product =
        eng_linear_product(m, h->logits, h->norm, m->params.param + eng_model_head_offset(m),
                           m->config.vocab, m->config.width);
    product.marks = eng_model_marks(K_ID_xent, f->input->labels);
    product.mask = product.marks != NULL ? K_GEMM_ROWS_WANTED : K_GEMM_DENSE;
    eng_chain_gemm(c, &product, "lm_head");
}

void eng_model_free_layer(struct eng_chain *c, struct eng_layer_saved *s)
{
    float **const buffers[] = {&s->input,    &s->attn_norm, &s->attn_rstd, &s->qkv,
                               &s->probs,    &s->attn,      &s->mid,       &s->mlp_norm,
                               &s->mlp_rstd, &s->gate_up,   &s->mlp};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        eng_chain_free(c, buffers[i]);
    }
}

void eng_model_free_head(struct eng_chain *c, struct eng_head_saved *h)
{
    float **const buffers[] = {&h->input, &h->norm, &h->rstd, &h->logits, &h->nll};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        eng_chain_free(c, buffers[i]);
    }
}

enum eng_status eng_model_forward(eng_model *model, dev_stream stream,
                                  const struct eng_input *input, float inv_count, float *loss_sum,
                                  bool accumulate, const struct eng_taps *taps,
                                  struct eng_error *error)
{
    struct forward f = {.chain = {.model = model, .stream = stream, .status = DEV_OK},
                        .input = input,
                        .taps = taps,
                        .tap_status = ENG_OK,
                        .error = error};
    float *residual = embed(&f);
    for (int l = 0; l < model->config.layers; l++) {
        model->saved[l].input = residual;
        residual = layer_forward(&f, l, &model->saved[l]);
    }
    head_forward(&f, residual);
    loss(&f, inv_count, loss_sum, accumulate);
    const enum eng_status status = f.tap_status != ENG_OK
                                       ? f.tap_status
                                       : eng_model_device_status(model, f.chain.status, error);
    model->kept = status == ENG_OK && inv_count > 0.0f;
    if (!model->kept) {
        for (int l = 0; l < model->config.layers; l++) {
            eng_model_free_layer(&f.chain, &model->saved[l]);
        }
        eng_model_free_head(&f.chain, &model->head);
    }
    return status;
}
