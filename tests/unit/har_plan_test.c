/* Tests of the plan: triggers against recipes, doses, selection. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "har_plan.h"

static const struct har_catalogue registry; /* the built-in one */

static const char *const plain_features[] = {"packed", "accum", "clipped"};
static const char *const tied_features[] = {"packed", "tied"};

static const struct har_place places[] = {
    {.recipe = "dear",
     .features = plain_features,
     .feature_count = 3,
     .resumes = true,
     .cost = 30.0},
    {.recipe = "cheap",
     .features = plain_features,
     .feature_count = 3,
     .resumes = false,
     .cost = 10.0},
    {.recipe = "tied",
     .features = tied_features,
     .feature_count = 2,
     .resumes = true,
     .cost = 20.0},
};
enum { PLACES = sizeof places / sizeof places[0] };

static int match(const char *trigger, struct har_variant *variant)
{
    struct mut_fault fault = *mut_fault_at(0);
    char reason[160];
    fault.trigger = trigger;
    const int place =
        har_plan_match(&fault, places, PLACES, HAR_SCHEDULE_fifo, variant, reason, sizeof reason);
    cr_expect_eq(place < 0, reason[0] != '\0');
    return place;
}

Test(har_plan, the_cheapest_recipe_with_the_trigger_is_taken)
{
    struct har_variant variant;
    cr_expect_eq(match("", &variant), 1);
    cr_expect_eq(match("accum clipped", &variant), 1);
    cr_expect_eq(match("tied", &variant), 2);
    cr_expect_eq(match("  packed   tied ", &variant), 2);
    cr_expect_eq(match("tie", &variant), -1);
    cr_expect_eq(match("accum tied", &variant), -1);
    cr_expect_eq(match("tight", &variant), -1);
}

Test(har_plan, schedule_and_driver_are_how_not_where)
{
    struct har_variant variant;
    cr_expect_eq(match("lazy packed", &variant), 1);
    cr_expect_eq(variant.schedule, HAR_SCHEDULE_lazy);
    cr_expect_not(variant.tasks);
    cr_expect_eq(match("pct tasks", &variant), 1);
    cr_expect_eq(variant.schedule, HAR_SCHEDULE_pct);
    cr_expect(variant.tasks);
    cr_expect_eq(match("packed", &variant), 1);
    cr_expect_eq(variant.schedule, HAR_SCHEDULE_fifo);
    cr_expect_not(variant.lanes);
    cr_expect_eq(match("lanes", &variant), 1);
    cr_expect(variant.lanes);
    cr_expect(har_variant_other(variant).lanes);
}

Test(har_plan, resumed_needs_a_recipe_that_writes_checkpoints)
{
    struct har_variant variant;
    cr_expect_eq(match("resumed", &variant), 2);
    cr_expect_eq(match("resumed accum", &variant), 0);
}

Test(har_plan, the_repeat_differs_in_schedule_and_driver)
{
    for (int schedule = 0; schedule < HAR_SCHEDULE_COUNT; schedule++) {
        for (int tasks = 0; tasks < 2; tasks++) {
            const struct har_variant variant = {.schedule = (enum har_schedule)schedule,
                                                .tasks = tasks != 0};
            const struct har_variant other = har_variant_other(variant);
            cr_expect_neq(other.schedule, variant.schedule);
            cr_expect_neq(other.tasks, variant.tasks);
        }
    }
}

static struct har_campaign campaign_of(char **patterns, size_t count)
{
    struct har_campaign campaign = {.fault_source = "test",
                                    .faults = patterns,
                                    .fault_count = count,
                                    .dose_smallest = true,
                                    .dose_usual = true,
                                    .repeats = 1};
    memset(campaign.families, 1, sizeof campaign.families);
    return campaign;
}

static const struct mut_fault *dose_fault(void)
{
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *const fault = mut_fault_at(i);
        if (fault->dose.unit != NULL && fault->dose.smallest < fault->dose.usual) {
            return fault;
        }
    }
    cr_assert_fail("the catalogue has no dose fault");
    abort();
}

Test(har_plan, a_dose_fault_appears_once_per_dose)
{
    char *pattern = strdup(dose_fault()->id);
    const struct har_campaign campaign = campaign_of(&pattern, 1);
    struct har_plan plan;
    struct har_error error = {{0}};
    cr_assert_eq(har_plan_make(&campaign, &registry, places, PLACES, &plan, &error), HAR_OK, "%s",
                 error.text);
    cr_assert_eq(plan.count, 2);
    for (size_t i = 0; i < plan.count; i++) {
        const char *const colon = strchr(plan.entries[i].id, ':');
        cr_assert_not_null(colon);
        cr_expect_eq(strtof(colon + 1, NULL), (float)plan.entries[i].dose);
    }
    cr_expect_eq((float)plan.entries[0].dose, dose_fault()->dose.smallest);
    cr_expect_eq((float)plan.entries[1].dose, dose_fault()->dose.usual);
    har_plan_fini(&plan);
    free(pattern);
}

Test(har_plan, a_pattern_with_a_dose_selects_that_dose)
{
    char dose[32];
    char *pattern = NULL;
    har_plan_dose_text(dose_fault()->dose.largest, dose, sizeof dose);
    cr_assert_geq(asprintf(&pattern, "%s:%s", dose_fault()->id, dose), 0);
    const struct har_campaign campaign = campaign_of(&pattern, 1);
    struct har_plan plan;
    struct har_error error = {{0}};
    cr_assert_eq(har_plan_make(&campaign, &registry, places, PLACES, &plan, &error), HAR_OK, "%s",
                 error.text);
    cr_assert_eq(plan.count, 1);
    cr_expect_str_eq(plan.entries[0].id, pattern);
    har_plan_fini(&plan);
    free(pattern);
}

Test(har_plan, every_fault_of_the_catalogue_stands_in_a_full_plan_in_order)
{
    char *pattern = strdup("*");
    const struct har_campaign campaign = campaign_of(&pattern, 1);
    struct har_plan plan;
    struct har_error error = {{0}};
    cr_assert_eq(har_plan_make(&campaign, &registry, places, PLACES, &plan, &error), HAR_OK);
    cr_assert_geq(plan.count, mut_fault_count());
    for (size_t i = 0; i + 1 < plan.count; i++) {
        cr_expect_leq(plan.entries[i].fault->family, plan.entries[i + 1].fault->family);
        cr_expect_str_neq(plan.entries[i].id, plan.entries[i + 1].id);
    }
    for (size_t i = 0; i < plan.count; i++) {
        cr_expect_eq(plan.entries[i].place < 0, plan.entries[i].reason[0] != '\0');
    }
    har_plan_fini(&plan);
    free(pattern);
}

Test(har_plan, an_unknown_fault_is_named)
{
    char *pattern = strdup("no_such.fault");
    const struct har_campaign campaign = campaign_of(&pattern, 1);
    struct har_plan plan;
    struct har_error error = {{0}};
    cr_assert_eq(har_plan_make(&campaign, &registry, places, PLACES, &plan, &error), HAR_EUSAGE);
    cr_expect_not_null(strstr(error.text, "no_such.fault"), "%s", error.text);
    free(pattern);
}

Test(har_plan, dose_texts_are_short_and_exact)
{
    static const float doses[] = {0.1f, 10.0f, 1.1f, 1e-4f, 0.001f, 100.0f, 3.0f, 0.3333333f};
    static const char *const texts[] = {"0.1", "10", "1.1", "0.0001", "0.001", "100", "3"};
    for (size_t i = 0; i < sizeof doses / sizeof doses[0]; i++) {
        char text[32];
        har_plan_dose_text(doses[i], text, sizeof text);
        cr_expect_eq(strtof(text, NULL), doses[i], "%s", text);
        if (i < sizeof texts / sizeof texts[0]) {
            cr_expect_str_eq(text, texts[i]);
        }
    }
}
