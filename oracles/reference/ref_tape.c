/* Order, memory and threads of the tape. See ref_tape.h; operations are in ref_ops.c. */
#include "ref_tape.h"

#include "ref_error.h"
#include "ref_node.h"

#include <stdlib.h>
#include <string.h>

/* Elements a thread gets at least: less is not worth waking it. */
enum { PART_ELEMENTS = 16384 };

enum { CHUNK_BYTES = 4 << 20 };

struct orc_ref_tape {
    struct orc_ref_arena *arena;
    struct orc_ref_pool *pool;
    struct orc_ref_matmul_space *space;
    struct orc_ref_node *nodes;
    size_t count, capacity;
    bool gradients, failed;
};

struct orc_ref_tape *orc_ref_tape_create(struct orc_ref_pool *pool)
{
    struct orc_ref_tape *const tape = calloc(1, sizeof *tape);
    if (tape == NULL)
        return NULL;
    tape->pool = pool;
    tape->arena = orc_ref_arena_create(CHUNK_BYTES);
    tape->space = orc_ref_matmul_space_create(orc_ref_pool_threads(pool));
    if (tape->arena == NULL || tape->space == NULL) {
        orc_ref_tape_destroy(tape);
        return NULL;
    }
    return tape;
}

void orc_ref_tape_destroy(struct orc_ref_tape *tape)
{
    if (tape == NULL)
        return;
    orc_ref_matmul_space_destroy(tape->space);
    orc_ref_arena_destroy(tape->arena);
    free(tape->nodes);
    free(tape);
}

void orc_ref_tape_reset(struct orc_ref_tape *tape, bool gradients)
{
    orc_ref_arena_reset(tape->arena);
    tape->count = 0;
    tape->gradients = gradients;
    tape->failed = false;
}

bool orc_ref_tape_failed(const struct orc_ref_tape *tape)
{
    return tape->failed;
}

void *orc_ref_tape_take(struct orc_ref_tape *tape, size_t count, size_t size)
{
    void *const memory = tape->failed ? NULL : orc_ref_arena_take(tape->arena, count, size);
    if (memory == NULL)
        tape->failed = true;
    return memory;
}

struct orc_ref_tensor orc_ref_tape_constant(struct orc_ref_tape *tape, size_t rows, size_t cols)
{
    struct orc_ref_tensor x = {NULL, NULL, rows, cols, cols};
    size_t count;
    if (__builtin_mul_overflow(rows, cols, &count))
        tape->failed = true;
    else
        x.value = orc_ref_tape_take(tape, count, sizeof *x.value);
    return x;
}

struct orc_ref_tensor orc_ref_tape_tensor(struct orc_ref_tape *tape, size_t rows, size_t cols)
{
    struct orc_ref_tensor x = orc_ref_tape_constant(tape, rows, cols);
    if (tape->gradients && !tape->failed) {
        x.grad = orc_ref_tape_take(tape, rows * cols, sizeof *x.grad);
        if (x.grad != NULL)
            memset(x.grad, 0, rows * cols * sizeof *x.grad);
    }
    return x;
}

struct orc_ref_tensor orc_ref_tape_columns(struct orc_ref_tensor x, size_t col, size_t cols)
{
    ORC_REF_ASSERT(col + cols <= x.cols);
    if (x.value != NULL)
        x.value += col;
    if (x.grad != NULL)
        x.grad += col;
    x.cols = cols;
    return x;
}

/* ---- element-wise work, shared out by rows or columns ---- */

struct share {
    const struct orc_ref_node *node;
    orc_ref_part *part;
    size_t total, each;
};

static void run_share(void *context, size_t task, size_t worker)
{
    (void)worker;
    const struct share *const share = context;
    const size_t begin = task * share->each;
    const size_t end = begin + share->each < share->total ? begin + share->each : share->total;
    share->part(share->node, begin, end);
}

/* lines = rows or columns of the node's result; length = elements of each. */
static void run_part(struct orc_ref_tape *tape, const struct orc_ref_node *node,
                     orc_ref_part *part, size_t lines, size_t length)
{
    if (part == NULL || lines == 0)
        return;
    size_t each = lines;
    if (orc_ref_pool_threads(tape->pool) > 1)
        each = PART_ELEMENTS / (length + 1) + 1;
    struct share share = {node, part, lines, each};
    orc_ref_pool_run(tape->pool, (lines + each - 1) / each, run_share, &share);
}

/* ---- products ---- */

static struct orc_ref_operand operand(double *data, size_t ld, size_t outer_step,
                                      size_t inner_step, bool transposed)
{
    const struct orc_ref_operand x = {data, transposed ? 1 : ld, transposed ? ld : 1, outer_step,
                                      inner_step};
    return x;
}

static void product_forward(struct orc_ref_tape *tape, const struct orc_ref_node *node)
{
    const struct orc_ref_blocks *const s = &node->blocks;
    const struct orc_ref_matmul job = {
        .a = operand(node->a.value, node->a.ld, s->a_outer, s->a_inner, false),
        .b = operand(node->b.value, node->b.ld, s->b_outer, s->b_inner, s->b_transposed),
        .c = operand(node->out.value, node->out.ld, s->c_outer, s->c_inner, false),
        .m = s->m, .n = s->n, .k = s->k, .outer = s->outer, .inner = s->inner,
    };
    orc_ref_matmul_run(&job, tape->space, tape->pool);
}

/* c = a op(b): da += dc transpose(op(b)); d op(b) += transpose(a) dc, which for a transposed b
 * reads db += transpose(dc) a. */
static void product_backward(struct orc_ref_tape *tape, const struct orc_ref_node *node)
{
    const struct orc_ref_blocks *const s = &node->blocks;
    const struct orc_ref_tensor a = node->a, b = node->b, c = node->out;
    const bool flip = s->b_transposed;
    if (a.grad != NULL) {
        const struct orc_ref_matmul job = {
            .a = operand(c.grad, c.ld, s->c_outer, s->c_inner, false),
            .b = operand(b.value, b.ld, s->b_outer, s->b_inner, !flip),
            .c = operand(a.grad, a.ld, s->a_outer, s->a_inner, false),
            .m = s->m, .n = s->k, .k = s->n, .outer = s->outer, .inner = s->inner,
            .accumulate = true,
        };
        orc_ref_matmul_run(&job, tape->space, tape->pool);
    }
    if (b.grad != NULL) {
        const struct orc_ref_operand left = operand(a.value, a.ld, s->a_outer, s->a_inner, !flip);
        const struct orc_ref_operand grad = operand(c.grad, c.ld, s->c_outer, s->c_inner, flip);
        const struct orc_ref_matmul job = {
            .a = flip ? grad : left,
            .b = flip ? left : grad,
            .c = operand(b.grad, b.ld, s->b_outer, s->b_inner, false),
            .m = flip ? s->n : s->k, .n = flip ? s->k : s->n, .k = s->m,
            .outer = s->outer, .inner = s->inner, .accumulate = true,
        };
        orc_ref_matmul_run(&job, tape->space, tape->pool);
    }
}

/* ---- the tape itself ---- */

static bool grow(struct orc_ref_tape *tape)
{
    if (tape->count < tape->capacity)
        return true;
    const size_t capacity = tape->capacity * 2 + 64;
    struct orc_ref_node *const nodes = realloc(tape->nodes, capacity * sizeof *nodes);
    if (nodes == NULL)
        return false;
    tape->nodes = nodes;
    tape->capacity = capacity;
    return true;
}

void orc_ref_tape_push(struct orc_ref_tape *tape, const struct orc_ref_node *node)
{
    if (tape->failed)
        return;
    if (node->operation != NULL)
        run_part(tape, node, node->operation->forward, node->out.rows, node->out.cols);
    else
        product_forward(tape, node);
    if (!tape->gradients)
        return;
    if (!grow(tape)) {
        tape->failed = true;
        return;
    }
    tape->nodes[tape->count++] = *node;
}

void orc_ref_tape_backward(struct orc_ref_tape *tape)
{
    if (tape->failed)
        return;
    for (size_t i = tape->count; i-- > 0;) {
        const struct orc_ref_node *const node = &tape->nodes[i];
        const struct orc_ref_operation *const operation = node->operation;
        if (operation == NULL) {
            product_backward(tape, node);
            continue;
        }
        run_part(tape, node, operation->backward, node->out.rows, node->out.cols);
        run_part(tape, node, operation->backward_columns, node->out.cols, node->out.rows);
    }
}
