/* Same bits: any division of rows, the twin with nothing armed, emulated lanes in any order.
 * Other bits: every armed fault of the kernels. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "k_cases.h"
#include "registry.h"
#include "row_emulator.h"
#include "select.h"

#define KERNEL(name, file)                                                                         \
    k_rows_fn k_##name##_rows_emulated;                                                            \
    k_rows_fn k_##name##_rows_emulated_twin;
#include "kernels.def"
#undef KERNEL

static k_rows_fn *const emulated[K_ID_COUNT] = {
#define KERNEL(name, file) k_##name##_rows_emulated,
#include "kernels.def"
#undef KERNEL
};

static k_rows_fn *const emulated_twin[K_ID_COUNT] = {
#define KERNEL(name, file) k_##name##_rows_emulated_twin,
#include "kernels.def"
#undef KERNEL
};

enum { SEEDS = 3 };

static void select_fault(const char *spec)
{
    char error[MUT_ERROR_MAX];
    cr_assert(mut_select(spec, error, sizeof error), "%s", error);
}

/* Runs every program and variant with both and asserts equal hashes of more than 0 bytes. */
static void assert_same(k_rows_fn *(*one)(enum k_id), int one_pieces,
                        k_rows_fn *(*other)(enum k_id), int other_pieces)
{
    size_t compared = 0;
    for (int id = 0; id < K_ID_COUNT; id++) {
        for (int variant = 0; variant < K_CASE_VARIANTS; variant++) {
            const struct k_case_result a = k_case_run(id, variant, one(id), one_pieces);
            const struct k_case_result b = k_case_run(id, variant, other(id), other_pieces);
            cr_assert(a.hash == b.hash && a.bytes == b.bytes, "%s variant %d differs",
                      k_kernel_at(id)->name, variant);
            cr_assert(a.bytes > 0, "%s wrote nothing", k_kernel_at(id)->name);
            compared++;
        }
    }
    cr_assert(compared == (size_t)K_ID_COUNT * K_CASE_VARIANTS);
}

static k_rows_fn *plain(enum k_id id)
{
    return k_kernel_at(id)->rows;
}

static k_rows_fn *twin(enum k_id id)
{
    return k_kernel_at(id)->rows_twin;
}

static k_rows_fn *lanes(enum k_id id)
{
    return emulated[id];
}

static k_rows_fn *lanes_twin(enum k_id id)
{
    return emulated_twin[id];
}

Test(k_twin, table_names_every_program)
{
    for (int id = 0; id < K_ID_COUNT; id++) {
        const struct k_kernel *k = k_kernel_at(id);
        cr_assert(k->rows != NULL && k->rows_twin != NULL && k->rows != k->rows_twin);
        cr_assert(k->args_bytes > 0 && strncmp(k->file, "kernels/", 8) == 0, "%s", k->name);
    }
}

Test(k_twin, runs_only_in_the_file_of_the_armed_fault)
{
    select_fault("none");
    cr_assert(k_kernel_rows(K_ID_xent) == plain(K_ID_xent));
    select_fault("none:kernels/loss.cu");
    cr_assert(k_kernel_rows(K_ID_xent) == twin(K_ID_xent));
    cr_assert(k_kernel_rows(K_ID_rope) == plain(K_ID_rope));
    select_fault("rope_pair.interleaved");
    cr_assert(k_kernel_rows(K_ID_xent) == plain(K_ID_xent));
    cr_assert(k_kernel_rows(K_ID_rope) == twin(K_ID_rope));
}

/* What gcc and clang gave for AVX2 and AVX-512. A change of a formula or a case changes it: replace
 * it when two compilers agree. */
Test(k_twin, bits_are_those_of_every_compiler)
{
    const uint64_t expected = 0x498E2B4DACCE0DA8u;
    uint64_t hash = 0;
    for (int id = 0; id < K_ID_COUNT; id++) {
        for (int variant = 0; variant < K_CASE_VARIANTS; variant++) {
            hash = hash * 31 + k_case_run(id, variant, plain(id), 1).hash;
        }
    }
    cr_assert(hash == expected, "%016llx", (unsigned long long)hash);
}

Test(k_twin, any_division_of_rows_gives_the_same_bits)
{
    assert_same(plain, 1, plain, 2);
    assert_same(plain, 1, plain, 5);
}

Test(k_twin, twin_with_nothing_armed_gives_the_same_bits)
{
    select_fault("none");
    assert_same(plain, 1, twin, 1);
    select_fault("none:all");
    assert_same(plain, 1, twin, 3);
}

Test(k_twin, emulated_lanes_give_the_same_bits_in_any_order)
{
    select_fault("none");
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        row_emulator_seed(seed);
        assert_same(plain, 1, lanes, 1);
    }
    assert_same(plain, 1, lanes_twin, 2);
}

Test(k_twin, a_dropped_barrier_shows_with_emulated_lanes)
{
    select_fault("xent_barrier.dropped");
    const struct k_case_result healthy = k_case_run(K_ID_xent, 0, plain(K_ID_xent), 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        row_emulator_seed(seed);
        const struct k_case_result faulty = k_case_run(K_ID_xent, 0, lanes_twin(K_ID_xent), 1);
        cr_assert(faulty.hash != healthy.hash, "seed %d", (int)seed);
    }
}

/* True when some variant of some program of the file gives other bits under the armed fault. */
static bool shows(const char *file)
{
    bool differs = false;
    for (int id = 0; id < K_ID_COUNT; id++) {
        for (int v = 0; v < K_CASE_VARIANTS && strcmp(k_kernel_at(id)->file, file) == 0; v++) {
            const struct k_case_result healthy = k_case_run(id, v, plain(id), 1);
            differs |= k_case_run(id, v, twin(id), 1).hash != healthy.hash;
        }
    }
    return differs;
}

Test(k_twin, every_armed_fault_is_reached_and_changes_bits)
{
    size_t tried = 0;
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *f = mut_fault_at(i);
        const struct mut_site_info *site = mut_site_find(f->site);
        if (strncmp(site->file, "kernels/", 8) != 0) {
            continue;
        }
        select_fault(f->id);
        const bool differs = shows(site->file);
        cr_assert(mut_reached_step((size_t)(site - mut_site_at(0))) == 0, "%s not reached", f->id);
        /* the gap is a barrier: it shows where lanes exist */
        cr_assert(differs == (f->expect == MUT_EXPECT_KILL || K_EMULATED), "%s: %s", f->id,
                  differs ? "changes bits" : "changes nothing");
        tried++;
    }
    cr_assert(tried > 0);
}

Test(k_twin, the_smallest_dose_of_a_fault_changes_bits)
{
    size_t tried = 0;
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *f = mut_fault_at(i);
        const struct mut_site_info *site = mut_site_find(f->site);
        if (strncmp(site->file, "kernels/", 8) != 0 || f->dose.unit == NULL) {
            continue;
        }
        char spec[128];
        snprintf(spec, sizeof spec, "%s:%.9g", f->id, (double)f->dose.smallest);
        select_fault(spec);
        cr_assert(shows(site->file), "%s", spec);
        tried++;
    }
    cr_assert(tried > 0);
}
