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
#include "gemm_mask.h"

enum {
    K_DEPTH = 256,
    K_DEPTH_ONE = 384, /* a product up to this deep is not divided: C is written once */
    K_ROWS = 168,
    K_COLS = 1024,
    /* Up to this many columns (rows) per element of A (B), operands are read where they are; only
     * up to the smaller number where A is stored transposed, and so read in short pieces, or where
     * its rows lie a multiple of ALIASING_BYTES apart: more of them share one set of the first
     * cache than it has room for. */
    UNPACKED_COLS = 256,
    UNPACKED_COLS_SOON = 64,
    ALIASING_BYTES = 4096,
    UNPACKED_ROWS = 28,
    TILE_COLS_MAX = 64,
    PACK_SLACK = 64,
    PACK_DEPTHS = 16,
    LINES_MAX = 256, /* of one tile */
    RUNS_MAX = 1024, /* stretches of rows, and of depth, of one problem */
    ROWS_BRIDGE = 3, /* ignored rows and steps between two stretches that cost less than a border */
    A_FLOATS = K_ROWS * K_DEPTH_ONE + PACK_SLACK,
    B_FLOATS = (K_COLS + TILE_COLS_MAX) * K_DEPTH_ONE
};

/* One product without batch, and what of C this part computes. */
struct problem {
    const float *a;
    const float *b;
    float *c;
    ptrdiff_t a_row, a_step, b_step, b_col, c_row;
    int row_begin, row_end, col_begin, col_end;
    int depth; /* without what is left out */
    bool accumulate;
    enum k_gemm_mask mask;
    const int32_t *marks;
    const struct k_gemm_run *runs; /* of depth, when some of it is left out, else NULL */
};

/* Cache lines of a part of an operand, and how far they have been asked for. */
struct ahead {
    const float *at;
    ptrdiff_t stride;           /* between stretches of consecutive elements */
    int stretches, line_floats; /* how many, how long */
    int stretch, within;        /* the next line */
};

/* Rows of a block that make tiles together, and what of columns and depth they need. */
struct panel {
    int row, rows;
    struct k_gemm_run cols, depth;
};

struct workspace {
    float a[A_FLOATS];
    float b[B_FLOATS];
    const float *lines[LINES_MAX + 1];
    int line_count;
    struct panel panels[K_ROWS + 2];
    int panel_count;
    struct k_gemm_run rows[RUNS_MAX], depth[RUNS_MAX];
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

/* Calls pack(context, step of depth, how many, place in the block) for the stretches of depth that
 * a block consists of. */
typedef void pack_fn(const struct k_gemm_kernel *kernel, const struct problem *p,
                     const struct block *s, struct workspace *w, int k, int steps, int at);
static void pack_depth(const struct k_gemm_kernel *kernel, const struct problem *p,
                       const struct block *s, struct workspace *w, pack_fn *pack)
{
    if (p->runs == NULL) {
        pack(kernel, p, s, w, s->k, s->depth, 0);
        return;
    }
    int before = 0; /* steps of the runs so far */
    for (const struct k_gemm_run *run = p->runs; before < s->k + s->depth; run++) {
        const int steps = run->end - run->begin;
        const int from = before > s->k ? before : s->k;
        const int to = smaller(before + steps, s->k + s->depth);
        if (from < to) {
            pack(kernel, p, s, w, run->begin + from - before, to - from, from - s->k);
        }
        before += steps;
    }
}

static void pack_steps_b(const struct k_gemm_kernel *kernel, const struct problem *p,
                         const struct block *s, struct workspace *w, int k, int steps, int at)
{
    for (int j = 0; j < s->cols; j += kernel->tile_cols) {
        const int cols = smaller(kernel->tile_cols, s->cols - j);
        if (s->pack_b || cols < kernel->tile_cols) {
            kernel->pack_b(w->b + (ptrdiff_t)j * s->depth + (ptrdiff_t)at * kernel->tile_cols,
                           p->b + k * p->b_step + (s->col + j) * p->b_col, p->b_step, p->b_col,
                           cols, steps);
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
    if (!s->pack_a || k >= p->depth || p->runs != NULL) {
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

/* Divides the rows of a block into panels of nearly equal height, so that no tile is much lower
 * than the others. The one behind the last has no rows. */
static void set_panels(const struct k_gemm_kernel *kernel, const struct problem *p,
                       const struct block *s, struct workspace *w)
{
    const bool wide = p->mask == K_GEMM_SEEN_C;
    const bool deep = p->mask == K_GEMM_SEEN_A || p->mask == K_GEMM_SEEN_A_TRANSPOSED;
    w->panel_count = (s->rows + kernel->tile_rows - 1) / kernel->tile_rows;
    for (int i = 0; i < w->panel_count; i++) {
        struct panel *panel = &w->panels[i];
        panel->row = piece_begin(s->rows, w->panel_count, i);
        panel->rows = piece_begin(s->rows, w->panel_count, i + 1) - panel->row;
        panel->cols = (struct k_gemm_run){p->col_begin, p->col_end};
        panel->depth = (struct k_gemm_run){0, p->depth};
        if (wide || deep) {
            *(wide ? &panel->cols : &panel->depth) =
                k_gemm_mask_range(p->mask, p->marks, s->row + panel->row,
                                  s->row + panel->row + panel->rows, deep ? p->depth : p->col_end);
        }
    }
    w->panels[w->panel_count] = (struct panel){.row = s->rows};
}

/* Lists what the tiles after t need: C of the next one, which is below t or at the top of the next
 * column, and a share of the next block of A. */
static void list_lines(const struct k_gemm_kernel *kernel, const struct block *s, int j,
                       const struct panel *after, const struct problem *p, struct ahead *next_a,
                       int share, struct k_gemm_tile *t, struct workspace *w)
{
    const int right = j + t->cols;
    w->line_count = 0;
    if (after->rows > 0) {
        ask_for_c(w, t->c + t->rows * p->c_row, p->c_row, after->rows, t->cols);
    } else if (right < s->cols) {
        ask_for_c(w, p->c + s->row * p->c_row + (s->col + right), p->c_row, w->panels[0].rows,
                  smaller(kernel->tile_cols, s->cols - right));
    }
    ask_for(w, next_a, share);
    w->lines[w->line_count] = w->lines[0];
    t->lines = w->lines;
    t->line_count = w->line_count + w->line_count % 2;
}

/* A that is stored transposed is packed a few depths at a time, so that a line which two panels
 * share is still at hand. */
static void pack_steps_a(const struct k_gemm_kernel *kernel, const struct problem *p,
                         const struct block *s, struct workspace *w, int k, int steps, int at)
{
    const int slice = p->a_row == 1 ? PACK_DEPTHS : steps;
    for (int done = 0; done < steps; done += slice) {
        for (int i = 0; i < w->panel_count; i++) {
            const struct panel *panel = &w->panels[i];
            const float *from = p->a + (s->row + panel->row) * p->a_row + (k + done) * p->a_step;
            kernel->pack_a(w->a + (ptrdiff_t)panel->row * s->depth + (at + done) * panel->rows,
                           from, p->a_row, p->a_step, panel->rows, smaller(slice, steps - done));
        }
    }
}

/* Where the tiles of columns from s->col + j on find B. */
static void set_b(const struct k_gemm_kernel *kernel, const struct problem *p,
                  const struct block *s, const struct workspace *w, int j, struct k_gemm_tile *t)
{
    if (s->pack_b || t->cols < kernel->tile_cols) {
        t->b = w->b + (ptrdiff_t)j * s->depth;
        t->b_step = kernel->tile_cols;
    } else {
        t->b = p->b + s->k * p->b_step + (s->col + j);
        t->b_step = p->b_step;
    }
}

/* Leaves out of a tile what its panel does not need of the block's depth; false when that is all.
 */
static bool cut_depth(const struct panel *panel, const struct block *s, struct k_gemm_tile *t)
{
    const int begin = panel->depth.begin > s->k ? panel->depth.begin : s->k;
    const int end = smaller(panel->depth.end, s->k + s->depth);
    t->a += (begin - s->k) * t->a_step;
    t->b += (begin - s->k) * t->b_step;
    t->depth = end - begin;
    t->load_c = t->load_c || begin > panel->depth.begin;
    return begin < end;
}

/* Tiles of the columns from s->col + j on. */
static void run_column(const struct k_gemm_kernel *kernel, const struct problem *p,
                       const struct block *s, int j, struct ahead *next_a, int share,
                       struct workspace *w)
{
    const int cols = smaller(kernel->tile_cols, s->cols - j);
    for (int i = 0; i < w->panel_count; i++) {
        const struct panel *panel = &w->panels[i];
        struct k_gemm_tile t = {.c = p->c + (s->row + panel->row) * p->c_row + (s->col + j),
                                .c_row = p->c_row,
                                .rows = panel->rows,
                                .cols = cols,
                                .load_c = p->accumulate};
        set_a(p, s, w, panel->row, &t);
        set_b(kernel, p, s, w, j, &t);
        if (!cut_depth(panel, s, &t) || s->col + j >= panel->cols.end ||
            s->col + j + cols <= panel->cols.begin) {
            continue;
        }
        list_lines(kernel, s, j, panel + 1, p, next_a, share, &t, w);
        if (!s->pack_a && j == 0 && panel[1].rows > 0) {
            fetch(ahead_of(t.a + t.rows * p->a_row, p->a_row, p->a_step, panel[1].rows, t.depth));
        }
        kernel->tile(&t);
    }
}

static void run_block(const struct k_gemm_kernel *kernel, const struct problem *p,
                      const struct block *s, struct ahead next_a, struct workspace *w)
{
    set_panels(kernel, p, s, w);
    const int columns = (s->cols + kernel->tile_cols - 1) / kernel->tile_cols;
    const int tiles = w->panel_count * columns;
    const int share = (lines_of(&next_a) + tiles - 1) / tiles;
    if (s->pack_a) {
        pack_depth(kernel, p, s, w, pack_steps_a);
    }
    for (int j = 0; j < s->cols; j += kernel->tile_cols) {
        run_column(kernel, p, s, j, &next_a, share, w);
    }
}

static void clear_c(const struct problem *p, int row_begin, int row_end)
{
    for (int i = row_begin; i < row_end; i++) {
        memset(p->c + i * p->c_row + p->col_begin, 0,
               sizeof(float) * (size_t)(p->col_end - p->col_begin));
    }
}

/* The stretches of rows to compute; those between them are cleared where they are known to be 0. */
static int set_rows(const struct problem *p, struct workspace *w)
{
    if (p->mask != K_GEMM_ROWS_WANTED && p->mask != K_GEMM_ROWS_ZERO) {
        w->rows[0] = (struct k_gemm_run){p->row_begin, p->row_end};
        return 1;
    }
    const int runs =
        k_gemm_mask_runs(p->marks, p->row_begin, p->row_end, ROWS_BRIDGE, w->rows, RUNS_MAX);
    int done = p->row_begin;
    for (int i = 0; p->mask == K_GEMM_ROWS_ZERO && !p->accumulate && i <= runs; i++) {
        clear_c(p, done, i < runs ? w->rows[i].begin : p->row_end);
        done = i < runs ? w->rows[i].end : done;
    }
    return runs;
}

/* Only where A is packed step by step; the transposing pack writes past the end of a stretch. */
static void set_depth(struct problem *p, struct workspace *w)
{
    if (p->mask == K_GEMM_DEPTH_ZERO && p->a_row == 1) {
        const int runs = k_gemm_mask_runs(p->marks, 0, p->depth, ROWS_BRIDGE, w->depth, RUNS_MAX);
        p->runs = w->depth;
        p->depth = 0;
        for (int i = 0; i < runs; i++) {
            p->depth += w->depth[i].end - w->depth[i].begin;
        }
    }
}

/* The rows of a stretch, a block after the other. */
static void run_rows(const struct k_gemm_kernel *kernel, const struct problem *p,
                     struct k_gemm_run run, struct block s, struct workspace *w)
{
    const int rows = run.end - run.begin;
    const int blocks = (rows + K_ROWS - 1) / K_ROWS;
    struct problem stretch = *p;
    stretch.row_begin = run.begin;
    stretch.row_end = run.end;
    for (int i = 0; i < blocks; i++) {
        s.row = run.begin + piece_begin(rows, blocks, i);
        s.rows = run.begin + piece_begin(rows, blocks, i + 1) - s.row;
        run_block(kernel, &stretch, &s, block_after(&stretch, &s, piece_begin(rows, blocks, 1) + 1),
                  w);
    }
}

/* Whether A is packed: it is used often enough, or in a way in which packing is soon paid. */
static bool packs_a(const struct problem *p, int cols)
{
    const bool aliasing = p->a_row % (ALIASING_BYTES / (int)sizeof *p->a) == 0;
    const bool soon = p->a_step != 1 || aliasing;
    return cols > (soon ? UNPACKED_COLS_SOON : UNPACKED_COLS) || p->runs != NULL;
}

static void run_problem(const struct k_gemm_kernel *kernel, const struct problem *whole,
                        struct workspace *w)
{
    struct problem p = *whole;
    const int rows = p.row_end - p.row_begin;
    const int cols = p.col_end - p.col_begin;
    if (rows <= 0 || cols <= 0) {
        return;
    }
    set_depth(&p, w);
    if (p.depth <= 0 && !p.accumulate) {
        clear_c(&p, p.row_begin, p.row_end);
    }
    const int row_runs = set_rows(&p, w);
    const int depth_blocks =
        p.depth <= K_DEPTH_ONE ? p.depth > 0 : (p.depth + K_DEPTH - 1) / K_DEPTH;
    struct block s = {.pack_a = packs_a(&p, cols),
                      .pack_b = rows > UNPACKED_ROWS || p.b_col != 1 || p.runs != NULL};
    for (int col = 0; col < cols; col += K_COLS) {
        s.col = p.col_begin + col;
        s.cols = smaller(K_COLS, cols - col);
        for (int d = 0; d < depth_blocks; d++) {
            s.k = piece_begin(p.depth, depth_blocks, d);
            s.depth = piece_begin(p.depth, depth_blocks, d + 1) - s.k;
            pack_depth(kernel, &p, &s, w, pack_steps_b);
            for (int i = 0; i < row_runs; i++) {
                run_rows(kernel, &p, w->rows[i], s, w);
            }
        }
    }
}

/* Where the rows of a part begin. */
static int share_of_rows(const struct k_gemm_args *args, int part, int parts)
{
    return args->mask == K_GEMM_ROWS_WANTED || args->mask == K_GEMM_ROWS_ZERO
               ? k_gemm_mask_share(args->marks, args->m, part, parts)
               : piece_begin(args->m, parts, part);
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
                        .accumulate = args->accumulate,
                        .mask = args->mask,
                        .marks = args->marks};
    if (problems == 1) {
        p.a = args->a;
        p.b = args->b;
        p.c = args->c;
        p.row_end = args->m;
        if (args->n > args->m) {
            const int panels = (args->n + kernel->tile_cols - 1) / kernel->tile_cols;
            p.col_begin = piece_begin(panels, parts, part) * kernel->tile_cols;
            p.col_end = smaller(piece_begin(panels, parts, part + 1) * kernel->tile_cols, args->n);
        } else {
            p.row_begin = share_of_rows(args, part, parts);
            p.row_end = share_of_rows(args, part + 1, parts);
        }
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
        p.marks = args->marks != NULL ? args->marks + outer * args->marks_outer : NULL;
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
