/* Row programs on the host: a lane is an index of a vector loop; `#pragma omp simd` states that
 * lanes do not depend on each other. Included by row.h alone.
 *
 * ROW_SUFFIX, set by the build, names the entry k_<name><ROW_SUFFIX>: _rows, or _rows_twin for the
 * mutable twin. */
#pragma once

#define ROW_FN static inline __attribute__((always_inline, unused))
#define ROW_RESTRICT restrict

#define ROW_PASTE2_(a, b) a##b
#define ROW_PASTE_(a, b) ROW_PASTE2_(a, b)
#define ROW_ENTRY_(name) ROW_PASTE_(k_##name, ROW_SUFFIX)

/* The arguments are copied to a local: no store of the body can be thought to change them. */
#define ROW_KERNEL(name, lanes)                                                                    \
    ROW_FN void name##_body(ROW_UNUSED const struct k_##name##_args *a, ROW_UNUSED const int row,  \
                            ROW_UNUSED const char (*row_lanes_)[lanes]);                           \
    k_rows_fn ROW_ENTRY_(name);                                                                    \
    void ROW_ENTRY_(name)(const void *args, int row_begin, int row_end)                            \
    {                                                                                              \
        const struct k_##name##_args copy = *(const struct k_##name##_args *)args;                 \
        for (int row = row_begin; row < row_end; row++) {                                          \
            name##_body(&copy, row, NULL);                                                         \
        }                                                                                          \
    }                                                                                              \
    ROW_FN void name##_body(ROW_UNUSED const struct k_##name##_args *a, ROW_UNUSED const int row,  \
                            ROW_UNUSED const char (*row_lanes_)[lanes])

#define ROW_PRAGMA_(text) _Pragma(#text)
#define ROW_SIMD_ ROW_PRAGMA_(omp simd)

#define ROW_FOR(i, n) ROW_SIMD_ for (int i = 0; i < (n); i++)
#define ROW_ONE
#define ROW_SYNC() ((void)0)
#define ROW_LANES(type, v) type v[ROW_L]
#define ROW_LANE lane_
#define ROW_MINE lane_
#define ROW_EACH ROW_SIMD_ for (int lane_ = 0; lane_ < ROW_L; lane_++)

/* Eight steps of each lane in one pass keep what the lane accumulates in a register meanwhile. */
#define ROW_STEP_(k, i, ...)                                                                       \
    {                                                                                              \
        const int i = base_ + (k)*ROW_L + lane_;                                                   \
        __VA_ARGS__;                                                                               \
    }
#define ROW_WALK(i, n, ...)                                                                        \
    {                                                                                              \
        int base_ = 0;                                                                             \
        const int n_ = (n);                                                                        \
        for (; base_ + 8 * ROW_L <= n_; base_ += 8 * ROW_L) {                                      \
            ROW_EACH {                                                                             \
                ROW_STEP_(0, i, __VA_ARGS__)                                                       \
                ROW_STEP_(1, i, __VA_ARGS__)                                                       \
                ROW_STEP_(2, i, __VA_ARGS__)                                                       \
                ROW_STEP_(3, i, __VA_ARGS__)                                                       \
                ROW_STEP_(4, i, __VA_ARGS__)                                                       \
                ROW_STEP_(5, i, __VA_ARGS__)                                                       \
                ROW_STEP_(6, i, __VA_ARGS__)                                                       \
                ROW_STEP_(7, i, __VA_ARGS__)                                                       \
            }                                                                                      \
        }                                                                                          \
        for (; base_ + ROW_L <= n_; base_ += ROW_L) {                                              \
            ROW_EACH { ROW_STEP_(0, i, __VA_ARGS__) }                                              \
        }                                                                                          \
        ROW_SIMD_ for (int lane_ = 0; lane_ < n_ - base_; lane_++) {                               \
            ROW_STEP_(0, i, __VA_ARGS__)                                                           \
        }                                                                                          \
    }

#define ROW_FOLD_SUM(out, v) ((out) = row_fold_sum(v, ROW_L))
#define ROW_FOLD_MAX(out, v) ((out) = row_fold_max(v, ROW_L))
#define ROW_FOLD_WORDS(out, v) ((out) = row_fold_words(v, ROW_L))

/* NaN in y wins; NaN in x is lost here, but every program also sums over the same elements. */
ROW_FN float row_max(float x, float y)
{
    return x > y ? x : y;
}

ROW_FN float row_fold_sum(float *v, int lanes)
{
    for (int warp = 0; warp < lanes; warp += 32) {
        for (int half = 16; half > 0; half /= 2) {
            for (int l = 0; l < half; l++) {
                v[warp + l] += v[warp + l + half];
            }
        }
    }
    float sum = v[0];
    for (int warp = 32; warp < lanes; warp += 32) {
        sum += v[warp];
    }
    return sum;
}

ROW_FN float row_fold_max(float *v, int lanes)
{
    for (int warp = 0; warp < lanes; warp += 32) {
        for (int half = 16; half > 0; half /= 2) {
            for (int l = 0; l < half; l++) {
                v[warp + l] = row_max(v[warp + l], v[warp + l + half]);
            }
        }
    }
    float largest = v[0];
    for (int warp = 32; warp < lanes; warp += 32) {
        largest = row_max(largest, v[warp]);
    }
    return largest;
}

ROW_FN uint32_t row_fold_words(const uint32_t *v, int lanes)
{
    uint32_t sum = 0;
    for (int l = 0; l < lanes; l++) {
        sum += v[l];
    }
    return sum;
}
