/* The host matrix product: divides it into parts, blocks and tiles for a micro-kernel. Called by
 * the device runtime; must not know instruction sets.
 *
 * Blocks of depth K_DEPTH go on with the chain of fmaf where the block before left it in C, so
 * blocking does not change bits. A block of B (K_DEPTH, K_COLS) and one of A (K_ROWS, K_DEPTH) are
 * packed into the caller's workspace, unless so little reads them that packing costs more than it
 * saves. */
#include "gemm.h"

#include <string.h>

#include "gemm_kernel.h"

enum {
    K_DEPTH = 256,
    K_ROWS = 168,
    K_COLS = 2048,
    /* Up to this many columns (rows) per element of A (B), operands are read where they are. */
    UNPACKED_COLS = 64,
    UNPACKED_ROWS = 28,
    TILE_COLS_MAX = 64,
    PACK_SLACK = 64,
    A_FLOATS = K_ROWS * K_DEPTH + PACK_SLACK,
    B_FLOATS = (K_COLS + TILE_COLS_MAX) * K_DEPTH
};

/* One product without batch, and what of C this part computes. */
struct problem {
    const float *a;
    const float *b;
    float *c;
    ptrdiff_t a_row, a_step, b_step, b_col, c_row;
    int row_begin, row_end, col_begin, col_end, depth;
    bool accumulate;
};

struct workspace {
    float a[A_FLOATS];
    float b[B_FLOATS];
};

/* A block of a problem: rows, columns and depth that are packed together. */
struct block {
    int row, rows, col, cols, k, depth;
    bool pack_a, pack_b;
};

size_t k_gemm_workspace_bytes(void)
{
    return sizeof(struct workspace);
}

const char *k_gemm_kernel_name(void)
{
    size_t count;
    return k_gemm_kernels(&count)[0]->name;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The piece `index` of `pieces` nearly equal ones of [0, total): where it begins. */
static int piece_begin(int total, int pieces, int index)
{
    return (int)((long long)total * index / pieces);
}

static void pack_block_b(const struct k_gemm_kernel *kernel, const struct problem *p,
                         const struct block *s, struct workspace *w)
{
    for (int j = 0; j < s->cols; j += kernel->tile_cols) {
        const int cols = smaller(kernel->tile_cols, s->cols - j);
        if (s->pack_b || cols < kernel->tile_cols) {
            kernel->pack_b(w->b + (ptrdiff_t)j * s->depth,
                           p->b + s->k * p->b_step + (s->col + j) * p->b_col, p->b_step, p->b_col,
                           cols, s->depth);
        }
    }
}

/* Panels of rows are of nearly equal height, so that no tile is much lower than the others. */
static void pack_block_a(const struct k_gemm_kernel *kernel, const struct problem *p,
                         const struct block *s, int panels, struct workspace *w)
{
    for (int i = 0; i < panels; i++) {
        const int row = piece_begin(s->rows, panels, i);
        const int rows = piece_begin(s->rows, panels, i + 1) - row;
        kernel->pack_a(w->a + (ptrdiff_t)row * s->depth,
                       p->a + (s->row + row) * p->a_row + s->k * p->a_step, p->a_row, p->a_step,
                       rows, s->depth);
    }
}

static void run_block(const struct k_gemm_kernel *kernel, const struct problem *p,
                      const struct block *s, struct workspace *w)
{
    const int panels = (s->rows + kernel->tile_rows - 1) / kernel->tile_rows;
    if (s->pack_a) {
        pack_block_a(kernel, p, s, panels, w);
    }
    for (int j = 0; j < s->cols; j += kernel->tile_cols) {
        struct k_gemm_tile t = {.c_row = p->c_row,
                                .cols = smaller(kernel->tile_cols, s->cols - j),
                                .depth = s->depth,
                                .load_c = p->accumulate || s->k > 0};
        if (s->pack_b || t.cols < kernel->tile_cols) {
            t.b = w->b + (ptrdiff_t)j * s->depth;
            t.b_step = kernel->tile_cols;
        } else {
            t.b = p->b + s->k * p->b_step + (s->col + j);
            t.b_step = p->b_step;
        }
        for (int i = 0; i < panels; i++) {
            const int row = piece_begin(s->rows, panels, i);
            t.rows = piece_begin(s->rows, panels, i + 1) - row;
            if (s->pack_a) {
                t.a = w->a + (ptrdiff_t)row * s->depth;
                t.a_row = 1;
                t.a_step = t.rows;
            } else {
                t.a = p->a + (s->row + row) * p->a_row + s->k * p->a_step;
                t.a_row = p->a_row;
                t.a_step = p->a_step;
            }
            t.c = p->c + (s->row + row) * p->c_row + (s->col + j);
            kernel->tile(&t);
        }
    }
}

static void clear_c(const struct problem *p)
{
    for (int i = p->row_begin; i < p->row_end; i++) {
        memset(p->c + i * p->c_row + p->col_begin, 0,
               sizeof(float) * (size_t)(p->col_end - p->col_begin));
    }
}

static void run_problem(const struct k_gemm_kernel *kernel, const struct problem *p,
                        struct workspace *w)
{
    const int rows = p->row_end - p->row_begin;
    const int cols = p->col_end - p->col_begin;
    if (rows <= 0 || cols <= 0) {
        return;
    }
    if (p->depth <= 0 && !p->accumulate) {
        clear_c(p);
    }
    const int row_blocks = (rows + K_ROWS - 1) / K_ROWS;
    struct block s = {.pack_a = cols > UNPACKED_COLS,
                      .pack_b = rows > UNPACKED_ROWS || p->b_col != 1};
    for (int col = 0; col < cols; col += K_COLS) {
        s.col = p->col_begin + col;
        s.cols = smaller(K_COLS, cols - col);
        for (s.k = 0; s.k < p->depth; s.k += K_DEPTH) {
            s.depth = smaller(K_DEPTH, p->depth - s.k);
            pack_block_b(kernel, p, &s, w);
            for (int i = 0; i < row_blocks; i++) {
                s.row = p->row_begin + piece_begin(rows, row_blocks, i);
                s.rows = p->row_begin + piece_begin(rows, row_blocks, i + 1) - s.row;
                run_block(kernel, p, &s, w);
            }
        }
    }
}

void k_gemm_part_with(const struct k_gemm_kernel *kernel, const struct k_gemm_args *args, int part,
                      int parts, void *workspace)
{
    const int problems = args->batch_outer * args->batch_inner;
    struct problem p = {.a_row = args->trans_a ? 1 : args->lda,
                        .a_step = args->trans_a ? args->lda : 1,
                        .b_step = args->trans_b ? 1 : args->ldb,
                        .b_col = args->trans_b ? args->ldb : 1,
                        .c_row = args->ldc,
                        .col_end = args->n,
                        .depth = args->k,
                        .accumulate = args->accumulate};
    if (problems == 1 && args->n > args->m) {
        p.a = args->a;
        p.b = args->b;
        p.c = args->c;
        p.row_end = args->m;
        const int panels = (args->n + kernel->tile_cols - 1) / kernel->tile_cols;
        p.col_begin = piece_begin(panels, parts, part) * kernel->tile_cols;
        p.col_end = smaller(piece_begin(panels, parts, part + 1) * kernel->tile_cols, args->n);
        run_problem(kernel, &p, workspace);
        return;
    }
    /* The rows of all problems, one after another, are divided. */
    const long long lines = (long long)problems * args->m;
    const long long begin = lines * part / parts;
    const long long end = lines * (part + 1) / parts;
    for (long long line = begin; line < end;) {
        const int problem = (int)(line / args->m);
        const size_t outer = (size_t)(problem / args->batch_inner);
        const size_t inner = (size_t)(problem % args->batch_inner);
        const long long first = (long long)problem * args->m;
        p.a = args->a + outer * args->a_outer + inner * args->a_inner;
        p.b = args->b + outer * args->b_outer + inner * args->b_inner;
        p.c = args->c + outer * args->c_outer + inner * args->c_inner;
        p.row_begin = (int)(line - first);
        p.row_end = end - first < args->m ? (int)(end - first) : args->m;
        run_problem(kernel, &p, workspace);
        line = first + p.row_end;
    }
}

void k_gemm_part(const struct k_gemm_args *args, int part, int parts, void *workspace)
{
    size_t count;
    k_gemm_part_with(k_gemm_kernels(&count)[0], args, part, parts, workspace);
}
