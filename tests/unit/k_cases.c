/* Inputs for every row program. See k_cases.h. */
#include "k_cases.h"

#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "embed.h"
#include "loss.h"
#include "mlp.h"
#include "norm.h"
#include "optimizer.h"
#include "rope.h"
#include "sketch.h"

enum {
    OUTPUTS_MAX = 8,
    WIDTH = 77,
    TOKENS = 37,
    VOCAB = 1003,
    TIME = 45,
    HEADS = 2,
    BATCH = 2,
    CHUNKS = 3,
    FLAT = 2 * K_CHUNK + 517
};

struct bench {
    unsigned char *pool;
    size_t used;
    uint64_t random;
    struct {
        const void *at;
        size_t bytes;
    } outputs[OUTPUTS_MAX];
    size_t output_count;
    k_rows_fn *fn;
    int pieces;
};

static void *take(struct bench *b, size_t bytes)
{
    void *p = b->pool + b->used;
    b->used += (bytes + 63) / 64 * 64;
    if (b->used > K_CASE_POOL_BYTES) {
        abort();
    }
    return p;
}

static void *output(struct bench *b, void *at, size_t bytes)
{
    b->outputs[b->output_count].at = at;
    b->outputs[b->output_count].bytes = bytes;
    b->output_count++;
    return at;
}

/* SplitMix64 */
static uint64_t next(struct bench *b)
{
    uint64_t z = b->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Uniform in [low, high). */
static float *floats(struct bench *b, size_t count, float low, float high)
{
    float *p = take(b, count * sizeof *p);
    for (size_t i = 0; i < count; i++) {
        p[i] = low + (high - low) * (float)(next(b) >> 40) / (float)(1 << 24);
    }
    return p;
}

static float *out_floats(struct bench *b, size_t count)
{
    return output(b, floats(b, count, -1.0f, 1.0f), count * sizeof(float));
}

static int32_t *integers(struct bench *b, size_t count, int bound)
{
    int32_t *p = take(b, count * sizeof *p);
    for (size_t i = 0; i < count; i++) {
        p[i] = (int32_t)(next(b) % (uint64_t)bound);
    }
    return p;
}

static void run(const struct bench *b, const void *args, int rows)
{
    for (int i = b->pieces - 1; i >= 0; i--) {
        b->fn(args, rows * i / b->pieces, rows * (i + 1) / b->pieces);
    }
}

static void run_embed(struct bench *b, enum k_id id)
{
    enum { IDS = 11 }; /* fewer than tokens: some come again */
    int32_t *ids = integers(b, TOKENS, IDS);
    if (id == K_ID_embed_fwd) {
        const float *table = floats(b, IDS * WIDTH, -1, 1);
        const struct k_embed_fwd_args a = {ids, table, out_floats(b, TOKENS * WIDTH), WIDTH};
        run(b, &a, TOKENS);
        return;
    }
    const float *dout = floats(b, TOKENS * WIDTH, -1, 1);
    const struct k_embed_bwd_args a = {ids, dout, out_floats(b, IDS * WIDTH), TOKENS, WIDTH};
    run(b, &a, (WIDTH + K_EMBED_COLS - 1) / K_EMBED_COLS);
}

static void run_norm(struct bench *b, enum k_id id, int variant)
{
    enum { CHUNKS_OF_ROWS = (TOKENS + K_NORM_ROWS - 1) / K_NORM_ROWS, SUM_WIDTH = 300 };
    if (id == K_ID_colsum) {
        const float *part = floats(b, CHUNKS_OF_ROWS * SUM_WIDTH, -1, 1);
        const struct k_colsum_args a = {part, out_floats(b, SUM_WIDTH), CHUNKS_OF_ROWS, SUM_WIDTH};
        run(b, &a, (SUM_WIDTH + K_COLSUM_COLS - 1) / K_COLSUM_COLS);
        return;
    }
    /* small rows in one variant, so that eps matters */
    const float size = variant == 0 ? 1.0f : 0.003f;
    const float *x = floats(b, TOKENS * WIDTH, -size, size);
    const float *weight = floats(b, WIDTH, 0.5f, 1.5f);
    if (id == K_ID_rmsnorm_fwd) {
        float *out = out_floats(b, TOKENS * WIDTH);
        const struct k_rmsnorm_fwd_args a = {x, weight, out, out_floats(b, TOKENS), WIDTH, 1e-5f};
        run(b, &a, TOKENS);
        return;
    }
    const float *rstd = floats(b, TOKENS, 0.5f, 2.0f);
    const float *dout = floats(b, TOKENS * WIDTH, -1, 1);
    float *dx = out_floats(b, TOKENS * WIDTH);
    float *part = out_floats(b, CHUNKS_OF_ROWS * WIDTH);
    const struct k_rmsnorm_bwd_args a = {x, weight, rstd, dout, dx, part, TOKENS, WIDTH, variant};
    run(b, &a, CHUNKS_OF_ROWS);
}

static void run_rope(struct bench *b, int variant)
{
    enum { HEAD_DIM = 14, STRIDE = 3 * HEAD_DIM + 5, CONTEXT = 50 };
    const float *cosine = floats(b, CONTEXT * HEAD_DIM / 2, -1, 1);
    const float *sine = floats(b, CONTEXT * HEAD_DIM / 2, -1, 1);
    const int32_t *positions = integers(b, TOKENS, CONTEXT);
    float *x = out_floats(b, TOKENS * STRIDE);
    const float direction = variant == 0 ? 1.0f : -1.0f;
    const struct k_rope_args a = {x, cosine, sine, positions, STRIDE, 3, HEAD_DIM, direction};
    run(b, &a, TOKENS);
}

static void run_attention(struct bench *b, enum k_id id)
{
    enum { SCORES = BATCH * HEADS * TIME * TIME };
    int32_t *first = take(b, sizeof *first * BATCH * TIME);
    for (int i = 0; i < BATCH * TIME; i++) {
        const int column = i % TIME; /* documents begin at 0, 7 and 38 */
        first[i] = column < 7 ? 0 : column < 38 ? 7 : 38;
    }
    const int rows = BATCH * HEADS * TIME;
    if (id == K_ID_attn_softmax_fwd) {
        float *scores = output(b, floats(b, SCORES, -9, 9), sizeof(float) * SCORES);
        const struct k_attn_softmax_fwd_args a = {scores, first, HEADS, TIME, 0.3f};
        run(b, &a, rows);
        return;
    }
    const float *probs = floats(b, SCORES, 0, 0.1f);
    const struct k_attn_softmax_bwd_args a = {probs, out_floats(b, SCORES), first, HEADS, TIME,
                                              0.3f};
    run(b, &a, rows);
}

static void run_mlp(struct bench *b, enum k_id id)
{
    const float *gate_up = floats(b, TOKENS * 2 * WIDTH, -4, 4);
    if (id == K_ID_swiglu_fwd) {
        const struct k_swiglu_fwd_args a = {gate_up, out_floats(b, TOKENS * WIDTH), WIDTH};
        run(b, &a, TOKENS);
        return;
    }
    const float *dout = floats(b, TOKENS * WIDTH, -1, 1);
    const struct k_swiglu_bwd_args a = {gate_up, dout, out_floats(b, TOKENS * 2 * WIDTH), WIDTH};
    run(b, &a, TOKENS);
}

static void run_loss(struct bench *b, enum k_id id, int variant)
{
    enum { ROWS = 7 };
    if (id == K_ID_loss_sum) {
        const float *nll = floats(b, TOKENS * 20, 0, 9);
        const struct k_loss_sum_args a = {nll, out_floats(b, 1), TOKENS * 20, variant};
        run(b, &a, 1);
        return;
    }
    int32_t *labels = integers(b, ROWS, VOCAB);
    labels[2] = K_LABEL_IGNORED;
    float *logits = output(b, floats(b, ROWS * VOCAB, -5, 5), sizeof(float) * ROWS * VOCAB);
    float *nll = out_floats(b, ROWS);
    const struct k_xent_args a = {logits, labels, nll, VOCAB, variant == 0 ? 1.0f / ROWS : 0.0f};
    run(b, &a, ROWS);
}

/* Tensor 0: two chunks, decays; tensor 1: the rest, does not. */
static struct k_chunk *chunk_table(struct bench *b)
{
    struct k_chunk *chunks = take(b, sizeof *chunks * CHUNKS);
    chunks[0] = (struct k_chunk){0, 0, K_CHUNK, 0, 1, 0};
    chunks[1] = (struct k_chunk){K_CHUNK, K_CHUNK, 301, 0, 1, 0};
    chunks[2] = (struct k_chunk){K_CHUNK + 301, 0, FLAT - K_CHUNK - 301, 1, 0, 0};
    return chunks;
}

static void run_optimizer(struct bench *b, enum k_id id, int variant)
{
    const struct k_chunk *chunks = chunk_table(b);
    if (id == K_ID_clip_coef) {
        enum { PARTS = 777 };
        const float *part = floats(b, PARTS, 0, 1);
        float *norm = out_floats(b, 1);
        const struct k_clip_coef_args a = {part, PARTS, variant == 0 ? 1.0f : 0.0f, norm,
                                           out_floats(b, 1)};
        run(b, &a, 1);
        return;
    }
    float *grad = out_floats(b, FLAT);
    if (id == K_ID_grad_sumsq) {
        const struct k_grad_sumsq_args a = {grad, chunks, out_floats(b, CHUNKS)};
        run(b, &a, CHUNKS);
        return;
    }
    float *param = out_floats(b, FLAT);
    float *moment1 = out_floats(b, FLAT);
    float *moment2 = output(b, floats(b, FLAT, 0, 1e-6f), sizeof(float) * FLAT);
    float *update = variant == 0 ? out_floats(b, FLAT) : NULL;
    const float *coef = floats(b, 1, 0.5f, 0.6f);
    const struct k_adamw_args a = {param, moment1, moment2, grad, update, chunks, coef,   1e-3f,
                                   0.9f,  0.95f,   1e-8f,   0.1f, 2.1f,   5.1f,   variant};
    run(b, &a, CHUNKS);
}

static void run_sketch(struct bench *b, enum k_id id)
{
    if (id == K_ID_row_rms) {
        const float *x = floats(b, TOKENS * WIDTH, -1, 1);
        const struct k_row_rms_args a = {x, out_floats(b, TOKENS), WIDTH};
        run(b, &a, TOKENS);
    } else if (id == K_ID_sketch_part) {
        float *x = floats(b, FLAT, -1, 1);
        const struct k_chunk *chunks = chunk_table(b);
        struct k_sketch *part = take(b, sizeof *part * CHUNKS);
        const struct k_sketch_part_args a = {x, chunks, output(b, part, sizeof *part * CHUNKS), 0};
        run(b, &a, CHUNKS);
    } else if (id == K_ID_sketch_fold) {
        enum { PARTS = 700, TENSORS = 3 };
        struct k_sketch *part =
            (struct k_sketch *)floats(b, PARTS * sizeof *part / sizeof(float), 0, 1);
        int32_t *first = take(b, sizeof *first * (TENSORS + 1));
        first[0] = 0, first[1] = 1, first[2] = 40, first[3] = PARTS;
        struct k_sketch *out = take(b, sizeof *out * TENSORS);
        const struct k_sketch_fold_args a = {part, first, output(b, out, sizeof *out * TENSORS)};
        run(b, &a, TENSORS);
    } else {
        enum { WORDS = 5003 };
        const uint32_t *words = (const uint32_t *)integers(b, WORDS, 1 << 30);
        uint32_t *out = output(b, take(b, 2 * sizeof *out), 2 * sizeof *out);
        const struct k_hash_words_args a = {words, out, WORDS};
        run(b, &a, 1);
    }
}

struct k_case_result k_case_run_in(enum k_id id, int variant, k_rows_fn *fn, int pieces, void *pool)
{
    struct bench b = {
        .random = (uint64_t)id * 100 + (uint64_t)variant, .fn = fn, .pieces = pieces, .pool = pool};
    memset(b.pool, 0, K_CASE_POOL_BYTES);
    const char *file = strrchr(k_kernel_at(id)->file, '/') + 1;
    if (strcmp(file, "embed.cu") == 0) {
        run_embed(&b, id);
    } else if (strcmp(file, "norm.cu") == 0) {
        run_norm(&b, id, variant);
    } else if (strcmp(file, "rope.cu") == 0) {
        run_rope(&b, variant);
    } else if (strcmp(file, "attention.cu") == 0) {
        run_attention(&b, id);
    } else if (strcmp(file, "mlp.cu") == 0) {
        run_mlp(&b, id);
    } else if (strcmp(file, "loss.cu") == 0) {
        run_loss(&b, id, variant);
    } else if (strcmp(file, "optimizer.cu") == 0) {
        run_optimizer(&b, id, variant);
    } else {
        run_sketch(&b, id);
    }
    struct k_case_result result = {0xCBF29CE484222325u, 0};
    for (size_t i = 0; i < b.output_count; i++) {
        const unsigned char *bytes = b.outputs[i].at;
        for (size_t j = 0; j < b.outputs[i].bytes; j++) {
            result.hash = (result.hash ^ bytes[j]) * 0x100000001B3u;
        }
        result.bytes += b.outputs[i].bytes;
    }
    return result;
}

struct k_case_result k_case_run(enum k_id id, int variant, k_rows_fn *fn, int pieces)
{
    void *pool = aligned_alloc(64, K_CASE_POOL_BYTES);
    if (pool == NULL) {
        abort();
    }
    const struct k_case_result result = k_case_run_in(id, variant, fn, pieces, pool);
    free(pool);
    return result;
}
