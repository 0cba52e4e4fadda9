/* Tests of arming: --fault texts, doses, @step, the reach record, the catalogue as data. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "registry.h"
#include "select.h"

static const struct mut_fault *any_fault(bool with_dose)
{
    for (size_t i = 0; i < mut_fault_count(); i++) {
        if ((mut_fault_at(i)->dose.unit != NULL) == with_dose) {
            return mut_fault_at(i);
        }
    }
    cr_assert_fail("the catalogue has no fault with%s a dose", with_dose ? "" : "out");
    abort();
}

Test(mut_registry, every_row_is_complete_and_found_again)
{
    cr_assert_gt(mut_fault_count(), 35);
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *f = mut_fault_at(i);
        cr_expect_eq(mut_fault_find(f->id), f, "%s", f->id);
        cr_expect_eq(mut_fault_by_number(f->number), f, "%s", f->id);
        cr_expect_not_null(mut_site_find(f->site), "%s", f->id);
        cr_expect_gt(strlen(f->why), 10, "%s", f->id);
        cr_expect_gt(strlen(f->faulty), 0, "%s", f->id);
        cr_expect_eq(f->expect_reason == NULL, f->expect == MUT_EXPECT_KILL, "%s", f->id);
        if (f->dose.unit != NULL) {
            cr_expect(f->dose.smallest < f->dose.usual && f->dose.usual <= f->dose.largest, "%s",
                      f->id);
        }
    }
}

Test(mut_registry, every_site_has_a_fault_and_a_line)
{
    cr_assert_gt(mut_site_count(), 20);
    for (size_t s = 0; s < mut_site_count(); s++) {
        const struct mut_site_info *site = mut_site_at(s);
        size_t faults = 0;
        for (size_t i = 0; i < mut_fault_count(); i++) {
            faults += strcmp(mut_fault_at(i)->site, site->site) == 0;
        }
        cr_expect_gt(faults, 0, "%s", site->site);
        cr_expect_gt(site->line, 1, "%s", site->site);
        cr_expect_gt(strlen(site->healthy), 0, "%s", site->site);
    }
}

Test(mut_registry, unknown_names_find_nothing)
{
    cr_assert_null(mut_fault_find("no.such"));
    cr_assert_null(mut_fault_by_number(0));
    cr_assert_null(mut_site_find("no"));
    cr_assert_null(mut_fault_at(mut_fault_count()));
    cr_assert_null(mut_site_at(mut_site_count()));
}

Test(mut_select, none_arms_nothing)
{
    char error[MUT_ERROR_MAX] = "";
    cr_assert(mut_select("none", error, sizeof error));
    cr_assert_eq(mut_armed_number(), 0);
    cr_assert_eq(mut_selected, 0);
    cr_assert_not(mut_twin_wanted(mut_site_at(0)->file));
}

Test(mut_select, a_file_runs_its_twin_with_nothing_armed)
{
    char error[MUT_ERROR_MAX] = "";
    char spec[256];
    snprintf(spec, sizeof spec, "none:%s", mut_site_at(0)->file);
    cr_assert(mut_select(spec, error, sizeof error), "%s", error);
    cr_assert(mut_twin_wanted(mut_site_at(0)->file));
    cr_assert_not(mut_twin_wanted("kernels/other.cu"));
    cr_assert_eq(mut_selected, 0);
    cr_assert_not(mut_select("none:no/such.c", error, sizeof error));
    cr_assert_not_null(strstr(error, "no/such.c"));
}

Test(mut_select, a_fault_arms_its_number_and_its_file)
{
    const struct mut_fault *f = any_fault(false);
    char error[MUT_ERROR_MAX] = "";
    cr_assert(mut_select(f->id, error, sizeof error), "%s", error);
    cr_assert_eq(mut_selected, f->number);
    cr_assert(mut_twin_wanted(mut_site_find(f->site)->file));
}

Test(mut_select, a_step_delays_arming)
{
    const struct mut_fault *f = any_fault(false);
    char error[MUT_ERROR_MAX] = "";
    char spec[256];
    snprintf(spec, sizeof spec, "%s@3", f->id);
    cr_assert(mut_select(spec, error, sizeof error), "%s", error);
    mut_enter_step(2);
    cr_assert_eq(mut_selected, 0);
    mut_enter_step(3);
    cr_assert_eq(mut_selected, f->number);
    cr_assert_eq(mut_armed_number(), f->number);
}

Test(mut_select, a_step_on_a_set_up_site_is_reported)
{
    const struct mut_fault *f = any_fault(false);
    char error[MUT_ERROR_MAX] = "";
    char spec[256];
    snprintf(spec, sizeof spec, "%s@1", f->id);
    cr_assert(mut_select(spec, error, sizeof error), "%s", error);
    cr_assert_not(mut_armed_too_early());
    const size_t site = (size_t)(mut_site_find(f->site) - mut_site_at(0));
    mut_here((enum mut_site)site);
    cr_assert_eq(mut_reached_step(site), 0);
    cr_assert(mut_armed_too_early());
}

Test(mut_select, doses_are_read_and_bounded)
{
    const struct mut_fault *f = any_fault(true);
    char error[MUT_ERROR_MAX] = "";
    char spec[256];
    cr_assert(mut_select(f->id, error, sizeof error), "%s", error);
    cr_assert_eq(mut_dose, f->dose.usual);
    snprintf(spec, sizeof spec, "%s:%.9g", f->id, (double)f->dose.smallest);
    cr_assert(mut_select(spec, error, sizeof error), "%s", error);
    cr_assert_eq(mut_dose, f->dose.smallest);
    snprintf(spec, sizeof spec, "%s:%.9g", f->id, 2.0 * (double)f->dose.largest);
    cr_assert_not(mut_select(spec, error, sizeof error));
    snprintf(spec, sizeof spec, "%s:nan", f->id);
    cr_assert_not(mut_select(spec, error, sizeof error));
}

Test(mut_select, bad_texts_are_refused_with_a_sentence)
{
    const struct mut_fault *f = any_fault(false);
    const char *const suffixes[] = {":1", "@0", "@", "@1x", ":", "@-1", "x"};
    char error[MUT_ERROR_MAX];
    char spec[256];
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        snprintf(spec, sizeof spec, "%s%s", f->id, suffixes[i]);
        error[0] = '\0';
        cr_expect_not(mut_select(spec, error, sizeof error), "%s", spec);
        cr_expect_gt(strlen(error), 10, "%s", spec);
    }
    cr_expect_not(mut_select("", error, sizeof error));
    cr_expect_not(mut_select("no.such", error, sizeof error));
    cr_expect_not_null(strstr(error, "no.such"));
}
