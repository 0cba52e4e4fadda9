/* Marks of a product, read into ranges. Called by gemm.c; must not know operands or tiles. */
#include "gemm_mask.h"

static int next_wanted(const int32_t *marks, int at, int end)
{
    while (at < end && marks[at] < 0) {
        at++;
    }
    return at;
}

int k_gemm_mask_runs(const int32_t *marks, int begin, int end, int bridge, struct k_gemm_run *runs,
                     int most)
{
    int count = 0;
    for (int at = next_wanted(marks, begin, end); at < end; at = next_wanted(marks, at, end)) {
        const int first = at;
        while (at < end && marks[at] >= 0) {
            at++;
        }
        if (count > 0 && first - runs[count - 1].end <= bridge) {
            runs[count - 1].end = at;
        } else if (count < most) {
            runs[count++] = (struct k_gemm_run){first, at};
        } else {
            runs[count - 1].end = end;
            break;
        }
    }
    return count;
}

int k_gemm_mask_share(const int32_t *marks, int count, int part, int parts)
{
    long long wanted = 0;
    for (int i = 0; i < count; i++) {
        wanted += marks[i] >= 0;
    }
    const long long before = wanted * part / parts;
    int at = 0;
    for (long long seen = 0; at < count && seen < before; at++) {
        seen += marks[at] >= 0;
    }
    return part == parts ? count : at;
}

/* The first key that a query sees: itself at the latest. */
static int first_key(const int32_t *marks, int query)
{
    const int first = marks[query] > 0 ? marks[query] : 0;
    return first < query ? first : query;
}

struct k_gemm_run k_gemm_mask_range(enum k_gemm_mask mask, const int32_t *marks, int begin, int end,
                                    int size)
{
    struct k_gemm_run range = {begin, end};
    if (mask == K_GEMM_SEEN_A_TRANSPOSED) {
        range.end = size;
        while (range.end > end && first_key(marks, range.end - 1) >= end) {
            range.end--;
        }
    } else if (mask == K_GEMM_SEEN_C || mask == K_GEMM_SEEN_A) {
        for (int i = begin; i < end; i++) {
            const int first = first_key(marks, i);
            range.begin = first < range.begin ? first : range.begin;
        }
    } else {
        range = (struct k_gemm_run){0, size};
    }
    return range;
}
