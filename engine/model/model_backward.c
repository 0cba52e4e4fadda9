/* The backward pass: gradients of the kept forward pass, added into params->grad.
 * Called by engine/train through model.h; must not know the optimizer. */
#include <math.h>

#include "attention.h"
#include "embed.h"
#include "fault.h"
#include "mlp.h"
#include "model_forward.h"
#include "norm.h"

struct backward {
    struct eng_chain chain;
    const struct eng_input *input;
    float *dresidual; /* gradient of the residual stream, updated layer by layer */
};

/* Hands over a block: the caller's pointer becomes NULL. */
__attribute__((unused)) static inline float *take(float **ptr)
{
    float *block = *ptr;
    *ptr = NULL;
    return block;
}

static size_t stream_elements(const struct eng_model *m)
{
    return (size_t)m->tokens * (size_t)m->config.width;
}

/* dweight (out, in) += dy^T x */
static struct k_gemm_args weight_product(const struct eng_model *m, int64_t offset, const float *dy,
                                         const float *x, int out, int in)
{
    return (struct k_gemm_args){.a = dy,
                                .b = x,
                                .c = m->params.grad + offset,
                                .m = out,
                                .n = in,
                                .k = m->tokens,
                                .lda = out,
                                .ldb = in,
                                .ldc = in,
                                .trans_a = true,
                                .accumulate = true,
                                .batch_outer = 1,
                                .batch_inner = 1};
}

/* labels: rows of dy whose label is ignored are 0; NULL when that is not known. */
static void weight_grad(struct eng_chain *c, struct k_gemm_args product, const int32_t *labels,
                        const char *what)
{
    product.marks = labels;
    product.mask = labels != NULL ? K_GEMM_DEPTH_ZERO : K_GEMM_DENSE;
    eng_chain_gemm(c, &product, what);
}

/* dx (tokens, in) = dy W, W (out, in) */
static struct k_gemm_args input_product(const struct eng_model *m, float *dx, const float *dy,
                                        int64_t offset, int out, int in)
{
    return (struct k_gemm_args){.a = dy,
                                .b = m->params.param + offset,
                                .c = dx,
                                .m = m->tokens,
                                .n = in,
                                .k = out,
                                .lda = out,
                                .ldb = in,
                                .ldc = in,
                                .batch_outer = 1,
                                .batch_inner = 1};
}

static void input_grad(struct eng_chain *c, struct k_gemm_args product, const int32_t *labels,
                       const char *what)
{
    product.marks = labels;
    product.mask = labels != NULL ? K_GEMM_ROWS_ZERO : K_GEMM_DENSE;
    eng_chain_gemm(c, &product, what);
}

struct norm_grad {
    const float *x, *rstd, *dout;
    int64_t weight;
    float *dx;
    int accumulate;
};

static void norm_backward(struct eng_chain *c, const struct norm_grad *g, const char *what)
{
    const struct eng_model *m = c->model;
    const int width = m->config.width;
    const int chunks = (m->tokens + K_NORM_ROWS - 1) / K_NORM_ROWS;
    const size_t part_elements = (size_t)chunks * (size_t)width;
    float *block = eng_chain_malloc(c, part_elements, "norm gain parts");
    float *part = FAULT(model_norm_parts, block);
    const struct k_rmsnorm_bwd_args args = {.x = g->x,
                                            .weight = m->params.param + g->weight,
                                            .rstd = g->rstd,
                                            .dout = g->dout,
                                            .dx = g->dx,
                                            .dweight_part = part,
                                            .tokens = m->tokens,
                                            .width = width,
                                            .accumulate = g->accumulate};
    const struct dev_span spans[] = {
        ENG_SPAN(g->x, stream_elements(m), DEV_READ),
        ENG_SPAN(args.weight, width, DEV_READ),
        ENG_SPAN(g->rstd, m->tokens, DEV_READ),
        ENG_SPAN(g->dout, stream_elements(m), DEV_READ),
        ENG_SPAN(g->dx, stream_elements(m), g->accumulate ? DEV_READ_WRITE : DEV_WRITE),
        ENG_SPAN(part, part_elements, DEV_WRITE)};
    const struct k_colsum_args sum = {
        .part = part, .out = m->params.grad + g->weight, .parts = chunks, .width = width};
    const struct dev_span sum_spans[] = {ENG_SPAN(part, part_elements, DEV_READ),
                                         ENG_SPAN(sum.out, width, DEV_READ_WRITE)};
    eng_chain_launch(c, K_ID_rmsnorm_bwd, chunks, &args, ENG_SPANS(spans), what);
    eng_chain_launch(c, K_ID_colsum, (width + K_COLSUM_COLS - 1) / K_COLSUM_COLS, &sum,
                     ENG_SPANS(sum_spans), what);
    eng_chain_free(c, &block);
}

static void head_backward(struct backward *b)
{
    struct eng_chain *c = &b->chain;
    struct eng_model *m = c->model;
    struct eng_head_saved *h = &m->head;
    const int width = m->config.width;
    const int64_t head = eng_model_head_offset(m);
    float *dnorm = eng_chain_malloc(c, stream_elements(m), "final norm gradient");
    b->dresidual = eng_chain_malloc(c, stream_elements(m), "residual gradient");
    const int32_t *labels = eng_model_marks(K_ID_xent, b->input->labels);
    if (FAULT(model_head_grad, true)) {
        weight_grad(c, weight_product(m, head, h->logits, h->norm, m->config.vocab, width), labels,
                    "lm_head gradient");
    }
    input_grad(c, input_product(m, dnorm, h->logits, head, m->config.vocab, width), labels,
               "lm_head input gradient");
    eng_chain_free(c, &h->logits);
    const struct norm_grad norm = {.x = h->input,
                                   .rstd = FAULT(model_final_rstd, h->rstd),
                                   .dout = dnorm,
                                   .weight = eng_model_norm_offset(m),
                                   .dx = b->dresidual};
    norm_backward(c, &norm, "final norm backward");
    eng_chain_free(c, &dnorm);
    eng_model_free_head(c, h);
}

/* In the last layer no gradient comes back to a token whose label is ignored until attention mixes
 * tokens: the labels, as long as every program on the way keeps its zeros; else NULL. */
static const int32_t *zero_rows(const struct backward *b, int layer)
{
    const int32_t *labels = layer == b->chain.model->config.layers - 1 ? b->input->labels : NULL;
    labels = eng_model_marks(K_ID_xent, labels);
    labels = eng_model_marks(K_ID_rmsnorm_bwd, labels);
    return eng_model_marks(K_ID_swiglu_bwd, labels);
}

static void mlp_backward(struct backward *b, int layer, struct eng_layer_saved *s)
{
    struct eng_chain *c = &b->chain;
    const struct eng_model *m = c->model;
    const int width = m->config.width;
    const int ffn = m->config.ffn;
    const size_t ffn_elements = (size_t)m->tokens * (size_t)ffn;
    const int32_t *labels = zero_rows(b, layer);
    const int64_t down = eng_model_layer_offset(m, layer, ENG_W_DOWN);
    const int64_t gate = eng_model_layer_offset(m, layer, ENG_W_GATE);
    float *dmlp = eng_chain_malloc(c, ffn_elements, "mlp gradient");
    float *dgate_up = eng_chain_malloc(c, 2 * ffn_elements, "gate and up gradient");
    const float *mid = s->mid;
    float *dnorm =
        FAULT(model_mlp_dnorm, eng_chain_malloc(c, stream_elements(m), "mlp norm gradient"));
    const struct k_swiglu_bwd_args args = {
        .gate_up = s->gate_up, .dout = dmlp, .dgate_up = dgate_up, .ffn = ffn};
    const struct dev_span spans[] = {ENG_SPAN(s->gate_up, 2 * ffn_elements, DEV_READ),
                                     ENG_SPAN(dmlp, ffn_elements, DEV_READ),
                                     ENG_SPAN(dgate_up, 2 * ffn_elements, DEV_WRITE)};
    weight_grad(c, weight_product(m, down, b->dresidual, s->mlp, width, ffn), labels,
                "down gradient");
    input_grad(c, input_product(m, dmlp, b->dresidual, down, width, ffn), labels,
               "down input gradient");
    eng_chain_launch(c, K_ID_swiglu_bwd, m->tokens, &args, ENG_SPANS(spans), "swiglu backward");
    eng_chain_free(c, &dmlp);
    weight_grad(c, weight_product(m, gate, dgate_up, s->mlp_norm, 2 * ffn, width), labels,
                "gate and up gradient");
    input_grad(c, input_product(m, dnorm, dgate_up, gate, 2 * ffn, width), labels,
               "gate and up input gradient");
    eng_chain_free(c, &dgate_up);
    const struct norm_grad norm = {.x = mid,
                                   .rstd = s->mlp_rstd,
                                   .dout = dnorm,
                                   .weight = eng_model_layer_offset(m, layer, ENG_W_MLP_NORM),
                                   .dx = b->dresidual,
                                   .accumulate = FAULT(model_mlp_residual, 1)};
    norm_backward(c, &norm, "mlp norm backward");
    eng_chain_free(c, &dnorm);
}

/* dprobs of the nth query heads: dattn V^T. */
static void probs_grad(struct eng_chain *c, const float *dattn, const float *qkv,
                       const int32_t *first, float *dprobs, int nth)
{
    const struct eng_model *m = c->model;
    const struct eng_attention_product p = {.a = dattn,
                                            .a_place = eng_place_attn(m, nth),
                                            .b = qkv,
                                            .b_place = eng_place_value(m),
                                            .c = dprobs,
                                            .c_place = eng_place_scores(m, nth),
                                            .m = m->config.context,
                                            .n = m->config.context,
                                            .k = m->head_dim,
                                            .trans_b = true,
                                            .mask = K_GEMM_SEEN_C,
                                            .first = first};
    eng_chain_attention(c, &p, "probabilities gradient");
}

/* dvalue (+)= probs^T dattn over the nth query heads. */
static void value_grad(struct eng_chain *c, const float *probs, const float *dattn,
                       const int32_t *first, float *dqkv, int nth)
{
    const struct eng_model *m = c->model;
    const struct eng_attention_product p = {.a = probs,
                                            .a_place = eng_place_scores(m, nth),
                                            .b = dattn,
                                            .b_place = eng_place_attn(m, nth),
                                            .c = dqkv,
                                            .c_place = eng_place_value(m),
                                            .m = m->config.context,
                                            .n = m->head_dim,
                                            .k = m->config.context,
                                            .trans_a = true,
                                            .accumulate = nth > 0,
                                            .mask = K_GEMM_SEEN_A_TRANSPOSED,
                                            .first = first};
    eng_chain_attention(c, &p, "value gradient");
}

/* dkey (+)= dscores^T query over the nth query heads. */
static void key_grad(struct eng_chain *c, const float *dscores, const float *qkv,
                     const int32_t *first, float *dqkv, int nth)
{
    const struct eng_model *m = c->model;
    const struct eng_attention_product p = {.a = dscores,
                                            .a_place = eng_place_scores(m, nth),
                                            .b = qkv,
                                            .b_place = eng_place_query(m, nth),
                                            .c = dqkv,
                                            .c_place = eng_place_key(m),
                                            .m = m->config.context,
                                            .n = m->head_dim,
                                            .k = m->config.context,
                                            .trans_a = true,
                                            .accumulate = nth > 0,
                                            .mask = K_GEMM_SEEN_A_TRANSPOSED,
                                            .first = first};
    eng_chain_attention(c, &p, "key gradient");
}

static void query_grad(struct eng_chain *c, const float *dscores, const float *qkv,
                       const int32_t *first, float *dqkv, int nth)
{
    const struct eng_model *m = c->model;
    const struct eng_attention_product p = {.a = dscores,
                                            .a_place = eng_place_scores(m, nth),
                                            .b = qkv,
                                            .b_place = eng_place_key(m),
                                            .c = dqkv,
                                            .c_place = eng_place_query(m, nth),
                                            .m = m->config.context,
                                            .n = m->head_dim,
                                            .k = m->config.context,
                                            .mask = K_GEMM_SEEN_A,
                                            .first = first};
    eng_chain_attention(c, &p, "query gradient");
}

static void attention_backward(struct backward *b, const struct eng_layer_saved *s,
                               const float *dattn, float *dqkv)
{
    struct eng_chain *c = &b->chain;
    const struct eng_model *m = c->model;
    const int group = m->config.heads / m->config.kv_heads;
    const int score_rows = m->tokens * m->config.heads;
    const size_t scores = (size_t)score_rows * (size_t)m->config.context;
    float *dprobs = eng_chain_malloc(c, scores, "probabilities gradient");
    const int32_t *first = eng_model_marks(K_ID_attn_softmax_bwd, b->input->first);
    const struct k_attn_softmax_bwd_args args = {.probs = s->probs,
                                                 .dprobs = dprobs,
                                                 .first = b->input->first,
                                                 .heads = m->config.heads,
                                                 .time = m->config.context,
                                                 .scale = 1.0f / sqrtf((float)m->head_dim)};
    const struct dev_span spans[] = {ENG_SPAN(s->probs, scores, DEV_READ),
                                     ENG_SPAN(dprobs, scores, DEV_READ_WRITE),
                                     ENG_SPAN(b->input->first, m->tokens, DEV_READ)};
    for (int nth = 0; nth < group; nth++) {
        value_grad(c, s->probs, dattn, first, dqkv, nth);
        probs_grad(c, dattn, s->qkv, first, dprobs, nth);
    }
    eng_chain_launch(c, K_ID_attn_softmax_bwd, score_rows, &args, ENG_SPANS(spans),
                     "attention softmax backward");
    for (int nth = 0; nth < group; nth++) {
        query_grad(c, dprobs, s->qkv, first, dqkv, nth);
        key_grad(c, dprobs, s->qkv, first, dqkv, nth);
    }
    eng_chain_free(c, &dprobs);
}

static void attention_block_backward(struct backward *b, int layer, struct eng_layer_saved *s)
{
    struct eng_chain *c = &b->chain;
    const struct eng_model *m = c->model;
    const int width = m->config.width;
    const int attn_width = m->config.heads * m->head_dim;
    const size_t tokens = (size_t)m->tokens;
    const int32_t *labels = zero_rows(b, layer);
    const int64_t o = eng_model_layer_offset(m, layer, ENG_W_O);
    const int64_t q = eng_model_layer_offset(m, layer, ENG_W_Q);
    float *dattn = eng_chain_malloc(c, tokens * (size_t)attn_width, "attention gradient");
    float *dqkv = eng_chain_malloc(c, tokens * (size_t)m->qkv_width, "qkv gradient");
    struct k_gemm_args output = input_product(m, dattn, b->dresidual, o, width, attn_width);
    output.trans_b = FAULT(model_o_proj_transposed, false);
    weight_grad(c, weight_product(m, o, b->dresidual, s->attn, width, attn_width), labels,
                "o_proj gradient");
    input_grad(c, output, labels, "o_proj input gradient");
    attention_backward(b, s, dattn, dqkv);
    if (FAULT(model_rope_backward, true)) {
        eng_model_rope(c, dqkv, b->input->positions, FAULT(model_rope_direction, -1.0f),
                       "rope backward");
    }
    weight_grad(c, weight_product(m, q, dqkv, s->attn_norm, m->qkv_width, width), NULL,
                "qkv gradient");
    input_grad(c, input_product(m, dattn, dqkv, q, m->qkv_width, width), NULL,
               "qkv input gradient");
    eng_chain_free(c, &dqkv);
    const struct norm_grad norm = {.x = s->input,
                                   .rstd = s->attn_rstd,
                                   .dout = dattn,
                                   .weight = eng_model_layer_offset(m, layer, ENG_W_ATTN_NORM),
                                   .dx = b->dresidual,
                                   .accumulate = FAULT(model_attention_residual, 1)};
    norm_backward(c, &norm, "attention norm backward");
    eng_chain_free(c, &dattn);
}

static void embed_backward(struct backward *b)
{
    struct eng_chain *c = &b->chain;
    const struct eng_model *m = c->model;
    const int width = m->config.width;
    const size_t table = (size_t)m->config.vocab * (size_t)width;
    const struct k_embed_bwd_args args = {.ids = b->input->ids,
                                          .dout = b->dresidual,
                                          .dtable = m->params.grad,
                                          .tokens = m->tokens,
                                          .width = width};
    const struct dev_span spans[] = {ENG_SPAN(b->input->ids, m->tokens, DEV_READ),
                                     ENG_SPAN(b->dresidual, stream_elements(m), DEV_READ),
                                     ENG_SPAN(m->params.grad, table, DEV_READ_WRITE)};
    eng_chain_launch(c, K_ID_embed_bwd, (width + K_EMBED_COLS - 1) / K_EMBED_COLS, &args,
                     ENG_SPANS(spans), "embedding backward");
}

enum eng_status eng_model_backward(eng_model *model, dev_stream stream,
                                   const struct eng_input *input, struct eng_error *error)
{
    if (!model->kept) {
        return eng_fail(error, ENG_EINTERNAL, "model: backward without a kept forward pass");
    }
    struct backward b = {.chain = {.model = model, .stream = stream, .status = DEV_OK},
                         .input = input};
    model->kept = false;
    head_backward(&b);
    for (int l = model->config.layers - 1; l >= 0; l--) {
        mlp_backward(&b, l, &model->saved[l]);
        attention_block_backward(&b, l, &model->saved[l]);
        eng_model_free_layer(&b.chain, &model->saved[l]);
    }
    if (FAULT(model_embed_grad, true)) {
        embed_backward(&b);
    }
    eng_chain_free(&b.chain, &b.dresidual);
    return eng_model_device_status(model, b.chain.status, error);
}
