/* Blocked matrix product. A task is a block of c; both operands are packed into panels that the
 * register tile reads in order. Called through ref_matmul.h; knows nothing of tensors. */
#include "ref_matmul.h"

#include <stdlib.h>
#include <string.h>

/* Tile: 6 x 16 doubles fill 12 of 32 registers of 512 bits. */
enum { TILE_M = 6, TILE_N = 16, BLOCK_M = 96, BLOCK_N = 192, BLOCK_K = 256 };

typedef double vector __attribute__((vector_size(TILE_N * sizeof(double))));

struct panels {
    double a[BLOCK_M * BLOCK_K] __attribute__((aligned(64)));
    double b[BLOCK_N * BLOCK_K] __attribute__((aligned(64)));
};

struct orc_ref_matmul_space {
    struct panels *panels;
};

struct orc_ref_matmul_space *orc_ref_matmul_space_create(size_t threads)
{
    struct orc_ref_matmul_space *const space = calloc(1, sizeof *space);
    if (space == NULL)
        return NULL;
    space->panels = aligned_alloc(64, threads * sizeof *space->panels);
    if (space->panels == NULL) {
        free(space);
        return NULL;
    }
    return space;
}

void orc_ref_matmul_space_destroy(struct orc_ref_matmul_space *space)
{
    if (space == NULL)
        return;
    free(space->panels);
    free(space);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Packs `lanes` rows of a panel side by side for each of `depth` steps, zeros behind the last. */
static void pack_panel(double *restrict to, const double *restrict from, size_t lane_step,
                       size_t depth_step, size_t lanes, size_t lanes_max, size_t depth)
{
    if (lanes == lanes_max && lane_step == 1) {
        for (size_t p = 0; p < depth; p++)
            memcpy(to + p * lanes_max, from + p * depth_step, lanes_max * sizeof *to);
        return;
    }
    if (lanes < lanes_max)
        memset(to, 0, depth * lanes_max * sizeof *to);
    for (size_t lane = 0; lane < lanes; lane++) {
        const double *restrict const line = from + lane * lane_step;
        for (size_t p = 0; p < depth; p++)
            to[p * lanes_max + lane] = line[p * depth_step];
    }
}

/* One tile of c from two panels; rows x cols of it are real. */
static void multiply_tile(double *restrict c, size_t c_step, const double *restrict a,
                          const double *restrict b, size_t depth, size_t rows, size_t cols,
                          bool accumulate)
{
    vector sum[TILE_M] = {{0}};
    for (size_t p = 0; p < depth; p++) {
        const vector right = *(const vector *)(const void *)(b + p * TILE_N);
        for (size_t i = 0; i < TILE_M; i++)
            sum[i] += right * a[p * TILE_M + i];
    }
    for (size_t i = 0; cols == TILE_N && i < rows; i++) {
        vector old = {0};
        if (accumulate)
            memcpy(&old, c + i * c_step, sizeof old);
        old += sum[i];
        memcpy(c + i * c_step, &old, sizeof old);
    }
    for (size_t i = 0; cols < TILE_N && i < rows; i++) {
        double line[TILE_N];
        memcpy(line, &sum[i], sizeof line);
        for (size_t j = 0; j < cols; j++)
            c[i * c_step + j] = accumulate ? c[i * c_step + j] + line[j] : line[j];
    }
}

struct run {
    const struct orc_ref_matmul *job;
    struct orc_ref_matmul_space *space;
    size_t blocks_m, blocks_n;
};

static double *member(const struct orc_ref_operand *x, size_t outer, size_t inner, size_t row,
                      size_t col)
{
    return x->data + outer * x->outer_step + inner * x->inner_step + row * x->row_step +
           col * x->col_step;
}

/* All tiles of a block for one slice of k. */
static void multiply_panels(double *c, size_t c_step, const struct panels *panels, size_t depth,
                            size_t rows, size_t cols, bool accumulate)
{
    for (size_t j = 0; j < cols; j += TILE_N)
        for (size_t i = 0; i < rows; i += TILE_M)
            multiply_tile(c + i * c_step + j, c_step, panels->a + i * depth, panels->b + j * depth,
                          depth, smaller(TILE_M, rows - i), smaller(TILE_N, cols - j), accumulate);
}

static void run_block(void *context, size_t task, size_t worker)
{
    const struct run *const run = context;
    const struct orc_ref_matmul *const job = run->job;
    struct panels *const panels = &run->space->panels[worker];
    const size_t col = task % run->blocks_n * BLOCK_N;
    const size_t row = task / run->blocks_n % run->blocks_m * BLOCK_M;
    const size_t which = task / run->blocks_n / run->blocks_m;
    const size_t outer = which / job->inner, inner = which % job->inner;
    const size_t rows = smaller(BLOCK_M, job->m - row), cols = smaller(BLOCK_N, job->n - col);
    for (size_t k = 0; k < job->k; k += BLOCK_K) {
        const size_t depth = smaller(BLOCK_K, job->k - k);
        for (size_t i = 0; i < rows; i += TILE_M)
            pack_panel(panels->a + i * depth, member(&job->a, outer, inner, row + i, k),
                       job->a.row_step, job->a.col_step, smaller(TILE_M, rows - i), TILE_M, depth);
        for (size_t j = 0; j < cols; j += TILE_N)
            pack_panel(panels->b + j * depth, member(&job->b, outer, inner, k, col + j),
                       job->b.col_step, job->b.row_step, smaller(TILE_N, cols - j), TILE_N, depth);
        multiply_panels(member(&job->c, outer, inner, row, col), job->c.row_step, panels, depth,
                        rows, cols, job->accumulate || k > 0);
    }
}

void orc_ref_matmul_run(const struct orc_ref_matmul *job, struct orc_ref_matmul_space *space,
                        struct orc_ref_pool *pool)
{
    const size_t members = job->outer * job->inner;
    if (members == 0 || job->m == 0 || job->n == 0)
        return;
    struct run run = {job, space, (job->m + BLOCK_M - 1) / BLOCK_M,
                      (job->n + BLOCK_N - 1) / BLOCK_N};
    orc_ref_pool_run(pool, members * run.blocks_m * run.blocks_n, run_block, &run);
}
