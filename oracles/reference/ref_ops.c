/* What each primitive operation of the tape computes, forwards and backwards. See ref_tape.h.
 * Every backward part adds to gradients; a NULL gradient belongs to a constant. */
#include "ref_error.h"
#include "ref_node.h"

#include <math.h>
#include <string.h>

typedef const struct orc_ref_node *node_ptr;

static double *value_row(const struct orc_ref_tensor *x, size_t row)
{
    return x->value + row * x->ld;
}

static double *grad_row(const struct orc_ref_tensor *x, size_t row)
{
    return x->grad + row * x->ld;
}

static bool same_shape(struct orc_ref_tensor a, struct orc_ref_tensor b)
{
    return a.rows == b.rows && a.cols == b.cols;
}

/* Sum of x_i y_i, or of x_i where y is NULL, in eight lanes: a fixed order that vectorises. */
static double sum_products(const double *restrict x, const double *restrict y, size_t count)
{
    enum { LANES = 8 };
    double lane[LANES] = {0};
    size_t c = 0;
    for (; c + LANES <= count; c += LANES)
        for (size_t i = 0; i < LANES; i++)
            lane[i] += y == NULL ? x[c + i] : x[c + i] * y[c + i];
    double sum = 0.0;
    for (; c < count; c++)
        sum += y == NULL ? x[c] : x[c] * y[c];
    for (size_t i = 0; i < LANES; i++)
        sum += lane[i];
    return sum;
}

/* ---- add ---- */

static void add_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *const a = value_row(&n->a, r), *const b = value_row(&n->b, r);
        double *restrict const out = value_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c++)
            out[c] = a[c] + b[c];
    }
}

static void add_to(const struct orc_ref_tensor *x, const double *restrict grad, size_t row)
{
    if (x->grad == NULL)
        return;
    double *restrict const to = grad_row(x, row);
    for (size_t c = 0; c < x->cols; c++)
        to[c] += grad[c];
}

static void add_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        add_to(&n->a, grad_row(&n->out, r), r);
        add_to(&n->b, grad_row(&n->out, r), r);
    }
}

void orc_ref_tape_add(struct orc_ref_tape *tape, struct orc_ref_tensor a, struct orc_ref_tensor b,
                      struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {add_forward, add_backward, NULL};
    ORC_REF_ASSERT(same_shape(a, b) && same_shape(a, out));
    orc_ref_tape_push(tape,
                      &(struct orc_ref_node){.operation = &operation, .a = a, .b = b, .out = out});
}

/* ---- mul, b of full shape ---- */

static void mul_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *const a = value_row(&n->a, r), *const b = value_row(&n->b, r);
        double *restrict const out = value_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c++)
            out[c] = a[c] * b[c];
    }
}

static void mul_add(double *to, const double *restrict x, const double *restrict y, size_t count)
{
    for (size_t c = 0; c < count; c++)
        to[c] += x[c] * y[c];
}

static void mul_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *const grad = grad_row(&n->out, r);
        if (n->a.grad != NULL)
            mul_add(grad_row(&n->a, r), grad, value_row(&n->b, r), n->out.cols);
        if (n->b.grad != NULL)
            mul_add(grad_row(&n->b, r), grad, value_row(&n->a, r), n->out.cols);
    }
}

/* ---- mul, b one row ---- */

static void mul_row_forward(node_ptr n, size_t begin, size_t end)
{
    const double *const b = n->b.value;
    for (size_t r = begin; r < end; r++) {
        const double *const a = value_row(&n->a, r);
        double *restrict const out = value_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c++)
            out[c] = a[c] * b[c];
    }
}

static void mul_row_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; n->a.grad != NULL && r < end; r++)
        mul_add(grad_row(&n->a, r), grad_row(&n->out, r), n->b.value, n->out.cols);
}

static void mul_row_backward_columns(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = 0; n->b.grad != NULL && r < n->out.rows; r++)
        mul_add(n->b.grad + begin, grad_row(&n->out, r) + begin, value_row(&n->a, r) + begin,
                end - begin);
}

/* ---- mul, b one column ---- */

static void mul_column_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *const a = value_row(&n->a, r), b = *value_row(&n->b, r);
        double *restrict const out = value_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c++)
            out[c] = a[c] * b;
    }
}

static void mul_column_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *restrict const grad = grad_row(&n->out, r);
        if (n->a.grad != NULL) {
            double *restrict const to = grad_row(&n->a, r);
            const double b = *value_row(&n->b, r);
            for (size_t c = 0; c < n->out.cols; c++)
                to[c] += grad[c] * b;
        }
        if (n->b.grad != NULL)
            *grad_row(&n->b, r) += sum_products(grad, value_row(&n->a, r), n->out.cols);
    }
}

void orc_ref_tape_mul(struct orc_ref_tape *tape, struct orc_ref_tensor a, struct orc_ref_tensor b,
                      struct orc_ref_tensor out)
{
    static const struct orc_ref_operation full = {mul_forward, mul_backward, NULL};
    static const struct orc_ref_operation row = {mul_row_forward, mul_row_backward,
                                                 mul_row_backward_columns};
    static const struct orc_ref_operation column = {mul_column_forward, mul_column_backward, NULL};
    const struct orc_ref_operation *operation = &full;
    ORC_REF_ASSERT(same_shape(a, out));
    if (!same_shape(a, b)) {
        ORC_REF_ASSERT((b.rows == 1 && b.cols == a.cols) || (b.rows == a.rows && b.cols == 1));
        operation = b.rows == 1 && b.cols == a.cols ? &row : &column;
    }
    orc_ref_tape_push(tape,
                      &(struct orc_ref_node){.operation = operation, .a = a, .b = b, .out = out});
}

/* ---- affine ---- */

static void affine_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *const a = value_row(&n->a, r);
        double *restrict const out = value_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c++)
            out[c] = n->scale * a[c] + n->shift;
    }
}

static void affine_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; n->a.grad != NULL && r < end; r++) {
        const double *const grad = grad_row(&n->out, r);
        double *restrict const to = grad_row(&n->a, r);
        for (size_t c = 0; c < n->out.cols; c++)
            to[c] += n->scale * grad[c];
    }
}

void orc_ref_tape_affine(struct orc_ref_tape *tape, struct orc_ref_tensor a, double scale,
                         double shift, struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {affine_forward, affine_backward, NULL};
    ORC_REF_ASSERT(same_shape(a, out));
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .a = a, .out = out,
                                                   .scale = scale, .shift = shift});
}

/* ---- row_sum ---- */

static void row_sum_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        *value_row(&n->out, r) = sum_products(value_row(&n->a, r), NULL, n->a.cols);
}

static void row_sum_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; n->a.grad != NULL && r < end; r++) {
        const double grad = *grad_row(&n->out, r);
        double *const to = grad_row(&n->a, r);
        for (size_t c = 0; c < n->a.cols; c++)
            to[c] += grad;
    }
}

void orc_ref_tape_row_sum(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                          struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {row_sum_forward, row_sum_backward, NULL};
    ORC_REF_ASSERT(out.rows == a.rows && out.cols == 1);
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .a = a, .out = out});
}

/* ---- functions of one element: f, and f' from input x and result y ---- */

#define ORC_REF_UNARY(name, f, derivative)                                                         \
    static void name##_forward(node_ptr n, size_t begin, size_t end)                               \
    {                                                                                              \
        for (size_t r = begin; r < end; r++) {                                                     \
            const double *const a = value_row(&n->a, r);                                           \
            double *restrict const out = value_row(&n->out, r);                                    \
            for (size_t c = 0; c < n->out.cols; c++) {                                             \
                const double x = a[c];                                                             \
                out[c] = (f);                                                                      \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_backward(node_ptr n, size_t begin, size_t end)                              \
    {                                                                                              \
        for (size_t r = begin; n->a.grad != NULL && r < end; r++) {                                \
            const double *const a = value_row(&n->a, r), *const out = value_row(&n->out, r);       \
            const double *const grad = grad_row(&n->out, r);                                       \
            double *restrict const to = grad_row(&n->a, r);                                        \
            for (size_t c = 0; c < n->out.cols; c++) {                                             \
                const double x = a[c], y = out[c];                                                 \
                (void)x, (void)y;                                                                  \
                to[c] += grad[c] * (derivative);                                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    void orc_ref_tape_##name(struct orc_ref_tape *tape, struct orc_ref_tensor a,                   \
                             struct orc_ref_tensor out)                                            \
    {                                                                                              \
        static const struct orc_ref_operation operation = {name##_forward, name##_backward, NULL}; \
        ORC_REF_ASSERT(same_shape(a, out));                                                        \
        orc_ref_tape_push(tape,                                                                    \
                          &(struct orc_ref_node){.operation = &operation, .a = a, .out = out});    \
    }

ORC_REF_UNARY(rsqrt, 1.0 / sqrt(x), -0.5 * y / x)
ORC_REF_UNARY(reciprocal, 1.0 / x, -y * y)
ORC_REF_UNARY(log, log(x), 1.0 / x)
ORC_REF_UNARY(sigmoid, 1.0 / (1.0 + exp(-x)), y * (1.0 - y))

/* ---- exp_range: out and a are the same memory, b is the shift ---- */

static void exp_range_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        double *const x = value_row(&n->out, r);
        const size_t from = (size_t)n->first[r], to = (size_t)n->end[r];
        double largest = x[from];
        for (size_t c = from + 1; c < to; c++)
            largest = x[c] > largest ? x[c] : largest;
        *value_row(&n->b, r) = largest;
        memset(x, 0, from * sizeof *x);
        for (size_t c = from; c < to; c++)
            x[c] = exp(x[c] - largest);
        memset(x + to, 0, (n->out.cols - to) * sizeof *x);
    }
}

static void exp_range_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++) {
        const double *restrict const y = value_row(&n->out, r);
        double *restrict const grad = grad_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c++)
            grad[c] *= y[c];
    }
}

void orc_ref_tape_exp_range(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                            const int32_t *first, const int32_t *end, struct orc_ref_tensor shift)
{
    static const struct orc_ref_operation operation = {exp_range_forward, exp_range_backward,
                                                       NULL};
    ORC_REF_ASSERT(shift.rows == a.rows && shift.cols == 1 && shift.grad == NULL);
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .b = shift, .out = a,
                                                   .first = first, .end = end});
}

/* ---- gather, pick ---- */

static void gather_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        memcpy(value_row(&n->out, r), value_row(&n->a, (size_t)n->first[r]),
               n->out.cols * sizeof(double));
}

static void gather_backward_columns(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = 0; n->a.grad != NULL && r < n->out.rows; r++) {
        const double *restrict const grad = grad_row(&n->out, r);
        double *restrict const to = grad_row(&n->a, (size_t)n->first[r]);
        for (size_t c = begin; c < end; c++)
            to[c] += grad[c];
    }
}

void orc_ref_tape_gather(struct orc_ref_tape *tape, struct orc_ref_tensor a, const int32_t *index,
                         struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {gather_forward, NULL,
                                                       gather_backward_columns};
    ORC_REF_ASSERT(a.cols == out.cols);
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .a = a, .out = out,
                                                   .first = index});
}

static void pick_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        *value_row(&n->out, r) = value_row(&n->a, r)[n->first[r]];
}

static void pick_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; n->a.grad != NULL && r < end; r++)
        grad_row(&n->a, r)[n->first[r]] += *grad_row(&n->out, r);
}

void orc_ref_tape_pick(struct orc_ref_tape *tape, struct orc_ref_tensor a, const int32_t *index,
                       struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {pick_forward, pick_backward, NULL};
    ORC_REF_ASSERT(out.rows == a.rows && out.cols == 1);
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .a = a, .out = out,
                                                   .first = index});
}

/* ---- rotate_half, repeat ---- */

static void rotate_half_forward(node_ptr n, size_t begin, size_t end)
{
    const size_t half = n->size / 2;
    for (size_t r = begin; r < end; r++) {
        const double *const a = value_row(&n->a, r);
        double *const out = value_row(&n->out, r);
        for (size_t c = 0; c < n->out.cols; c += n->size)
            for (size_t i = 0; i < half; i++) {
                out[c + i] = -a[c + half + i];
                out[c + half + i] = a[c + i];
            }
    }
}

static void rotate_half_backward(node_ptr n, size_t begin, size_t end)
{
    const size_t half = n->size / 2;
    for (size_t r = begin; n->a.grad != NULL && r < end; r++) {
        const double *const grad = grad_row(&n->out, r);
        double *const to = grad_row(&n->a, r);
        for (size_t c = 0; c < n->out.cols; c += n->size)
            for (size_t i = 0; i < half; i++) {
                to[c + half + i] -= grad[c + i];
                to[c + i] += grad[c + half + i];
            }
    }
}

void orc_ref_tape_rotate_half(struct orc_ref_tape *tape, struct orc_ref_tensor a, size_t size,
                              struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {rotate_half_forward, rotate_half_backward,
                                                       NULL};
    ORC_REF_ASSERT(same_shape(a, out) && size % 2 == 0 && a.cols % size == 0);
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .a = a, .out = out,
                                                   .size = size});
}

static void repeat_forward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; r < end; r++)
        for (size_t group = 0; group < n->out.cols / n->size; group++)
            memcpy(value_row(&n->out, r) + group * n->size,
                   value_row(&n->a, r) + group / n->times * n->size, n->size * sizeof(double));
}

static void repeat_backward(node_ptr n, size_t begin, size_t end)
{
    for (size_t r = begin; n->a.grad != NULL && r < end; r++)
        for (size_t group = 0; group < n->out.cols / n->size; group++) {
            const double *restrict const grad = grad_row(&n->out, r) + group * n->size;
            double *restrict const to = grad_row(&n->a, r) + group / n->times * n->size;
            for (size_t c = 0; c < n->size; c++)
                to[c] += grad[c];
        }
}

void orc_ref_tape_repeat(struct orc_ref_tape *tape, struct orc_ref_tensor a, size_t size,
                         size_t times, struct orc_ref_tensor out)
{
    static const struct orc_ref_operation operation = {repeat_forward, repeat_backward, NULL};
    ORC_REF_ASSERT(a.rows == out.rows && a.cols * times == out.cols && a.cols % size == 0);
    orc_ref_tape_push(tape, &(struct orc_ref_node){.operation = &operation, .a = a, .out = out,
                                                   .size = size, .times = times});
}

/* ---- products ---- */

void orc_ref_tape_matmul(struct orc_ref_tape *tape, struct orc_ref_tensor a,
                         struct orc_ref_tensor b, const struct orc_ref_blocks *blocks,
                         struct orc_ref_tensor out)
{
    ORC_REF_ASSERT(blocks->k > 0);
    orc_ref_tape_push(tape,
                      &(struct orc_ref_node){.a = a, .b = b, .out = out, .blocks = *blocks});
}

void orc_ref_tape_linear(struct orc_ref_tape *tape, struct orc_ref_tensor x,
                         struct orc_ref_tensor w, struct orc_ref_tensor out)
{
    ORC_REF_ASSERT(x.cols == w.cols && out.rows == x.rows && out.cols == w.rows);
    const struct orc_ref_blocks blocks = {.outer = 1, .inner = 1, .m = x.rows, .n = w.rows,
                                          .k = x.cols, .b_transposed = true};
    orc_ref_tape_matmul(tape, x, w, &blocks, out);
}
