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
    cr_assert(!k_kernel_is_plain(K_ID_xent) && k_kernel_is_plain(K_ID_rope));
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

/* True when some variant of some program of the file has other bits in `other` than in `one`. */
static bool differ(const char *file, k_rows_fn *(*one)(enum k_id), k_rows_fn *(*other)(enum k_id))
{
    bool found = false;
    for (int id = 0; id < K_ID_COUNT; id++) {
        for (int v = 0; v < K_CASE_VARIANTS && strcmp(k_kernel_at(id)->file, file) == 0; v++) {
            const struct k_case_result a = k_case_run(id, v, one(id), 1);
            found |= k_case_run(id, v, other(id), 1).hash != a.hash;
        }
    }
    return found;
}

static bool needs_lanes(const struct mut_fault *f)
{
    return strcmp(f->trigger, "lanes") == 0;
}

/* Hash of all the file's programs with emulated lanes in this order. */
static uint64_t hash_in_order(const char *file, uint64_t seed)
{
    uint64_t hash = 0;
    row_emulator_seed(seed);
    for (int id = 0; id < K_ID_COUNT; id++) {
        for (int v = 0; v < K_CASE_VARIANTS && strcmp(k_kernel_at(id)->file, file) == 0; v++) {
            hash = hash * 31 + k_case_run(id, v, lanes_twin(id), 1).hash;
        }
    }
    return hash;
}

Test(k_twin, a_fault_of_lanes_gives_other_bits_in_every_order_of_lanes)
{
    size_t tried = 0;
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *f = mut_fault_at(i);
        if (!needs_lanes(f)) {
            continue;
        }
        const char *file = mut_site_find(f->site)->file;
        select_fault("none");
        const uint64_t healthy = hash_in_order(file, 1);
        select_fault(f->id);
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            cr_assert(hash_in_order(file, seed) != healthy, "%s, seed %d", f->id, (int)seed);
            cr_assert(hash_in_order(file, seed) == hash_in_order(file, seed), "%s", f->id);
            cr_assert(hash_in_order(file, seed) != hash_in_order(file, seed + 1), "%s", f->id);
        }
        tried++;
    }
    cr_assert(tried >= 2);
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
        const bool differs = differ(site->file, plain, needs_lanes(f) ? lanes_twin : twin);
        cr_assert(mut_reached_step((size_t)(site - mut_site_at(0))) == 0, "%s not reached", f->id);
        cr_assert(differs == (f->expect == MUT_EXPECT_KILL), "%s: %s", f->id,
                  differs ? "changes bits" : "changes nothing");
        /* on one thread a row has no lanes that could disagree */
        cr_assert(!needs_lanes(f) || K_EMULATED || !differ(site->file, plain, twin), "%s", f->id);
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
        cr_assert(differ(site->file, plain, twin), "%s", spec);
        tried++;
    }
    cr_assert(tried > 0);
}
