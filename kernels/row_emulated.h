/* Row programs with emulated lanes (tests): every lane is a fiber; between two meetings the lanes
 * run one after another in a seeded random order, so that a missing ROW_SYNC shows as wrong
 * numbers. Included by row.h alone; ROW_SUFFIX as in row_host.h. */
#pragma once

#include "row_emulator.h"

#define ROW_FN static inline __attribute__((unused))
#define ROW_RESTRICT restrict

#define ROW_PASTE2_(a, b) a##b
#define ROW_PASTE_(a, b) ROW_PASTE2_(a, b)
#define ROW_ENTRY_(name) ROW_PASTE_(k_##name, ROW_SUFFIX)

#define ROW_KERNEL(name, lanes)                                                                    \
    ROW_FN void name##_body(ROW_UNUSED const struct k_##name##_args *a, ROW_UNUSED const int row,  \
                            ROW_UNUSED const int lane_,                                            \
                            ROW_UNUSED const char(*row_lanes_)[lanes]);                            \
    static void name##_lane(const void *args, int row, int lane)                                   \
    {                                                                                              \
        name##_body((const struct k_##name##_args *)args, row, lane, NULL);                        \
    }                                                                                              \
    k_rows_fn ROW_ENTRY_(name);                                                                    \
    void ROW_ENTRY_(name)(const void *args, int row_begin, int row_end)                            \
    {                                                                                              \
        row_emulator_run(name##_lane, lanes, args, row_begin, row_end);                            \
    }                                                                                              \
    ROW_FN void name##_body(ROW_UNUSED const struct k_##name##_args *a, ROW_UNUSED const int row,  \
                            ROW_UNUSED const int lane_, ROW_UNUSED const char(*row_lanes_)[lanes])

#define ROW_FOR(i, n) for (int i = lane_; i < (n); i += ROW_L)
#define ROW_ONE if (lane_ == 0)
#define ROW_SYNC() row_emulator_meet()
#define ROW_LANES(type, v) type v[1]
#define ROW_LANE lane_
#define ROW_MINE 0
#define ROW_EACH
#define ROW_WALK(i, n, ...)                                                                        \
    for (int i = lane_; i < (n); i += ROW_L) {                                                     \
        __VA_ARGS__;                                                                               \
    }
#define ROW_FOLD_SUM(out, v) ((out) = row_fold_sum((v)[0], lane_, ROW_L))
#define ROW_FOLD_MAX(out, v) ((out) = row_fold_max((v)[0], lane_, ROW_L))
#define ROW_FOLD_WORDS(out, v) ((out) = row_fold_words((v)[0], lane_, ROW_L))

ROW_FN float row_max(float x, float y)
{
    return x > y ? x : y;
}

/* Every lane gets all lanes' values and folds them alone, in the documented order. */
ROW_FN float row_fold_(float mine, int lane, int lanes, int largest)
{
    float v[ROW_EMULATOR_LANES];
    uint32_t bits;
    memcpy(&bits, &mine, sizeof bits);
    memcpy(v, row_emulator_share(bits, lane), sizeof(float) * (size_t)lanes);
    for (int warp = 0; warp < lanes; warp += 32) {
        for (int half = 16; half > 0; half /= 2) {
            for (int l = warp; l < warp + half; l++) {
                v[l] = largest ? row_max(v[l], v[l + half]) : v[l] + v[l + half];
            }
        }
    }
    float result = v[0];
    for (int warp = 32; warp < lanes; warp += 32) {
        result = largest ? row_max(result, v[warp]) : result + v[warp];
    }
    return result;
}

ROW_FN float row_fold_sum(float mine, int lane, int lanes)
{
    return row_fold_(mine, lane, lanes, 0);
}

ROW_FN float row_fold_max(float mine, int lane, int lanes)
{
    return row_fold_(mine, lane, lanes, 1);
}

ROW_FN uint32_t row_fold_words(uint32_t mine, int lane, int lanes)
{
    const uint32_t *v = row_emulator_share(mine, lane);
    uint32_t sum = 0;
    for (int l = 0; l < lanes; l++) {
        sum += v[l];
    }
    return sum;
}
