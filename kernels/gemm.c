/* The host matrix product: divides it into parts, blocks and tiles for a micro-kernel. Called by
 * the device runtime; must not know instruction sets.
 *
 * Blocks of depth go on with the chain of fmaf where the block before left it in C, so blocking
 * does not change bits. A block of B (K_DEPTH, K_COLS) and one of A (K_ROWS, K_DEPTH) are packed
 * into the caller's workspace, unless so little reads them that packing costs more than it saves.
 *
 * Operands of a training step seldom lie in the caches of the core. So each tile is given the lines
 * that are needed next: C of the tile after it and a share of the next block of A. */
#include "gemm.h"

#include <string.h>

#include "gemm_kernel.h"

enum {
    K_DEPTH = 256,
    K_DEPTH_ONE = 384, /* a product up to this deep is not divided: C is written once */
    K_ROWS = 168,
    K_COLS = 1024,
    /* Up to this many columns (rows) per element of A (B), operands are read where they are; A that
     * is stored transposed, and so read in short pieces, only up to the smaller number. */
    UNPACKED_COLS = 256,
    UNPACKED_COLS_TRANSPOSED = 64,
    UNPACKED_ROWS = 28,
    TILE_COLS_MAX = 64,
    PACK_SLACK = 64,
    PACK_DEPTHS = 16,
    LINES_MAX = 256, /* of one tile */
    A_FLOATS = K_ROWS * K_DEPTH_ONE + PACK_SLACK,
    B_FLOATS = (K_COLS + TILE_COLS_MAX) * K_DEPTH_ONE
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

/* Cache lines of a part of an operand, and how far they have been asked for. */
struct ahead {
    const float *at;
    ptrdiff_t stride;           /* between stretches of consecutive elements */
    int stretches, line_floats; /* how many, how long */
    int stretch, within;        /* the next line */
};

struct workspace {
    float a[A_FLOATS];
    float b[B_FLOATS];
    const float *lines[LINES_MAX + 1];
    int line_count;
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

static struct ahead ahead_of(const float *a, ptrdiff_t a_row, ptrdiff_t a_step, int rows, int depth)
{
    return (struct ahead){.at = a,
                          .stride = a_step == 1 ? a_row : a_step,
                          .stretches = a_step == 1 ? rows : depth,
                          .line_floats = a_step == 1 ? depth : rows};
}

static int lines_of(const struct ahead *next)
{
    return next->stretches * ((next->line_floats + K_GEMM_LINE - 1) / K_GEMM_LINE);
}

/* Puts up to `count` more lines on the list of the tile at hand. */
static void ask_for(struct workspace *w, struct ahead *next, int count)
{
    for (; count > 0 && next->stretch < next->stretches && w->line_count < LINES_MAX; count--) {
        w->lines[w->line_count++] = next->at + next->stretch * next->stride + next->within;
        next->within += K_GEMM_LINE;
        if (next->within >= next->line_floats) {
            next->within = 0;
            next->stretch++;
        }
    }
}

/* The same at once: for a panel of A that is read by the next tile already. */
static void fetch(struct ahead next)
{
    for (int i = 0; i < next.stretches; i++) {
        for (int j = 0; j < next.line_floats; j += K_GEMM_LINE) {
            __builtin_prefetch(next.at + i * next.stride + j);
        }
    }
}

static void ask_for_c(struct workspace *w, const float *c, ptrdiff_t c_row, int rows, int cols)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < cols && w->line_count < LINES_MAX; j += K_GEMM_LINE) {
            w->lines[w->line_count++] = c + i * c_row + j;
        }
    }
}

/* The block of A that follows a block of rows: further down, or at the top and deeper. */
static struct ahead block_after(const struct problem *p, const struct block *s, int rows_there)
{
    const bool down = s->row + s->rows < p->row_end;
    const int row = down ? s->row + s->rows : p->row_begin;
    const int k = down ? s->k : s->k + s->depth;
    if (!s->pack_a || k >= p->depth) {
        return (struct ahead){.at = NULL};
    }
    return ahead_of(p->a + row * p->a_row + k * p->a_step, p->a_row, p->a_step,
                    smaller(rows_there, p->row_end - row),
                    down ? s->depth : smaller(K_DEPTH, p->depth - k));
}

/* Where the tile in rows [row, row + rows) finds A. */
static void set_a(const struct problem *p, const struct block *s, const struct workspace *w,
                  int row, struct k_gemm_tile *t)
{
    if (s->pack_a) {
        t->a = w->a + (ptrdiff_t)row * s->depth;
        t->a_row = 1;
        t->a_step = t->rows;
    } else {
        t->a = p->a + (s->row + row) * p->a_row + s->k * p->a_step;
        t->a_row = p->a_row;
        t->a_step = p->a_step;
    }
}

/* Where a panel of rows begins. They are of nearly equal height, so that no tile is much lower than
 * the others. */
static int panel_begin(const struct k_gemm_kernel *kernel, const struct block *s, int index)
{
    const int panels = (s->rows + kernel->tile_rows - 1) / kernel->tile_rows;
    return index < panels ? piece_begin(s->rows, panels, index) : s->rows;
}

/* Lists what the tiles after t need: C of the next one, which is below t or at the top of the next
 * column, and a share of the next block of A. */
static void list_lines(const struct k_gemm_kernel *kernel, const struct block *s, int j,
                       int rows_after, const struct problem *p, struct ahead *next_a, int share,
                       struct k_gemm_tile *t, struct workspace *w)
{
    const int right = j + t->cols;
    w->line_count = 0;
    if (rows_after > 0) {
        ask_for_c(w, t->c + t->rows * p->c_row, p->c_row, rows_after, t->cols);
    } else if (right < s->cols) {
        ask_for_c(w, p->c + s->row * p->c_row + (s->col + right), p->c_row,
                  panel_begin(kernel, s, 1), smaller(kernel->tile_cols, s->cols - right));
    }
    ask_for(w, next_a, share);
    w->lines[w->line_count] = w->lines[0];
    t->lines = w->lines;
    t->line_count = w->line_count + w->line_count % 2;
}

/* A that is stored transposed is packed a few depths at a time, so that a line which two panels
 * share is still at hand. */
static void pack_block_a(const struct k_gemm_kernel *kernel, const struct problem *p,
                         const struct block *s, struct workspace *w)
{
    const int slice = p->a_row == 1 ? PACK_DEPTHS : s->depth;
    for (int k = 0; k < s->depth; k += slice) {
        int after = 0;
        for (int i = 0; after < s->rows; i++) {
            const int row = after;
            after = panel_begin(kernel, s, i + 1);
            const int rows = after - row;
            const float *from = p->a + (s->row + row) * p->a_row + (s->k + k) * p->a_step;
            kernel->pack_a(w->a + (ptrdiff_t)row * s->depth + k * rows, from, p->a_row, p->a_step,
                           rows, smaller(slice, s->depth - k));
        }
    }
}

/* Tiles of the columns from s->col + j on. */
static void run_column(const struct k_gemm_kernel *kernel, const struct problem *p,
                       const struct block *s, int j, struct ahead *next_a, int share,
                       struct workspace *w)
{
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
    int after = 0;
    for (int i = 0; after < s->rows; i++) {
        const int row = after;
        after = panel_begin(kernel, s, i + 1);
        const int rows_after = panel_begin(kernel, s, i + 2) - after;
        t.rows = after - row;
        t.c = p->c + (s->row + row) * p->c_row + (s->col + j);
        set_a(p, s, w, row, &t);
        list_lines(kernel, s, j, rows_after, p, next_a, share, &t, w);
        if (!s->pack_a && j == 0 && rows_after > 0) {
            fetch(ahead_of(t.a + t.rows * p->a_row, p->a_row, p->a_step, rows_after, s->depth));
        }
        kernel->tile(&t);
    }
}

static void run_block(const struct k_gemm_kernel *kernel, const struct problem *p,
                      const struct block *s, struct ahead next_a, struct workspace *w)
{
    const int panels = (s->rows + kernel->tile_rows - 1) / kernel->tile_rows;
    const int columns = (s->cols + kernel->tile_cols - 1) / kernel->tile_cols;
    const int share = (lines_of(&next_a) + panels * columns - 1) / (panels * columns);
    if (s->pack_a) {
        pack_block_a(kernel, p, s, w);
    }
    for (int j = 0; j < s->cols; j += kernel->tile_cols) {
        run_column(kernel, p, s, j, &next_a, share, w);
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
    const int depth_blocks =
        p->depth <= K_DEPTH_ONE ? p->depth > 0 : (p->depth + K_DEPTH - 1) / K_DEPTH;
    struct block s = {.pack_a = cols > (p->a_step == 1 ? UNPACKED_COLS : UNPACKED_COLS_TRANSPOSED),
                      .pack_b = rows > UNPACKED_ROWS || p->b_col != 1};
    for (int col = 0; col < cols; col += K_COLS) {
        s.col = p->col_begin + col;
        s.cols = smaller(K_COLS, cols - col);
        for (int d = 0; d < depth_blocks; d++) {
            s.k = piece_begin(p->depth, depth_blocks, d);
            s.depth = piece_begin(p->depth, depth_blocks, d + 1) - s.k;
            pack_block_b(kernel, p, &s, w);
            for (int i = 0; i < row_blocks; i++) {
                s.row = p->row_begin + piece_begin(rows, row_blocks, i);
                s.rows = p->row_begin + piece_begin(rows, row_blocks, i + 1) - s.row;
                run_block(kernel, p, &s, block_after(p, &s, piece_begin(rows, row_blocks, 1) + 1),
                          w);
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
