/* The first divergence of two traces, by stage. */
#include <criterion/criterion.h>
#include <string.h>

#include "orc_check_synth.h"

enum { SEED = 601 };

static const struct {
    enum synth_plant plant;
    const char *stage, *item;
    int step;
} cases[] = {
    {SYNTH_none, "", "", 0},
    {SYNTH_text, "text", "record", SYNTH_PLANT_STEP},
    {SYNTH_tokens, "tokens", "record", SYNTH_PLANT_STEP},
    {SYNTH_labels, "labels", "labels", SYNTH_PLANT_STEP},
    {SYNTH_order, "order", "record", SYNTH_PLANT_STEP},
    {SYNTH_activation, "activations", "embed", SYNTH_PLANT_STEP},
    {SYNTH_loss, "loss", "loss", SYNTH_PLANT_STEP},
    {SYNTH_gradient, "gradients", "o_proj", SYNTH_PLANT_STEP},
    {SYNTH_lr, "schedule", "lr", SYNTH_PLANT_STEP},
    {SYNTH_update, "updates", "typical", SYNTH_PLANT_STEP},
    {SYNTH_parameter, "state", "parameters", SYNTH_PLANT_STEP},
    {SYNTH_race, "races", "1 unordered pairs", SYNTH_PLANT_STEP},
    {SYNTH_leak, "memory", "leak", SYNTH_PLANT_STEP},
    {SYNTH_conservation, "memory", "live + cached", SYNTH_PLANT_STEP},
    {SYNTH_records_absent, "order", "step without records", SYNTH_PLANT_STEP},
};

static struct orc_divergence diff(const struct synth *mine, const struct synth *theirs,
                                  const orc_bounds *bounds)
{
    struct orc_divergence d;
    struct orc_error error = {""};
    orc_trace *const a = synth_trace(mine);
    orc_trace *const b = synth_trace(theirs);
    cr_assert_eq(orc_diff(a, b, bounds, &d, &error), ORC_OK, "%s", error.text);
    cr_expect_gt(d.compared, 0);
    cr_expect(d.detail[0] != '\0');
    orc_trace_free(a);
    orc_trace_free(b);
    return d;
}

Test(diff, names_stage_step_and_item_within_bounds)
{
    orc_bounds *bounds = synth_bounds(1, 12);
    const struct synth theirs = synth_reference(SEED);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth mine = synth_subject(SEED);
        mine.plant = cases[i].plant;
        mine.scales = 300;
        const struct orc_divergence d = diff(&mine, &theirs, bounds);
        cr_expect_eq(d.found, cases[i].step > 0, "%s: %s", cases[i].stage, d.detail);
        if (d.found) {
            cr_expect_str_eq(d.stage, cases[i].stage, "%s", d.detail);
            cr_expect_eq(d.step, cases[i].step);
            cr_expect_not_null(strstr(d.item, cases[i].item), "%s", d.item);
        }
    }
    orc_bounds_free(bounds);
}

/* What neither trace says of a step is no difference; the other steps are compared. */
Test(diff, records_absent_from_both_are_no_difference)
{
    struct synth mine = synth_reference(SEED);
    mine.plant = SYNTH_records_absent;
    const struct orc_divergence d = diff(&mine, &mine, NULL);
    cr_expect_not(d.found, "%s", d.detail);
}

/* Two runs of one stack: without bounds every last digit counts, and so do hashes and races. */
Test(diff, without_bounds_every_digit_and_hash_counts)
{
    static const struct {
        enum synth_plant plant;
        const char *stage;
    } rows[] = {
        {SYNTH_text, "text"},
        {SYNTH_order, "order"},
        {SYNTH_activation, "activations"},
        {SYNTH_loss, "loss"},
        {SYNTH_grad_norm, "gradients"},
        {SYNTH_lr, "schedule"},
        {SYNTH_update_one, "updates"},
        {SYNTH_moment, "state"},
        {SYNTH_race, "races"},
        {SYNTH_spurious, "memory"},
        {SYNTH_hash_state, "hashes"},
        {SYNTH_hash_ledger, "hashes"},
        {SYNTH_nonfinite, "gradients"},
        {SYNTH_tensor_missing, "gradients"},
    };
    const struct synth healthy = synth_subject(SEED);
    const struct orc_divergence same = diff(&healthy, &healthy, NULL);
    cr_expect_not(same.found, "%s", same.detail);
    cr_expect_eq(same.worst, 0.0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct synth mine = healthy;
        mine.plant = rows[i].plant;
        mine.scales = 4;
        for (int turned = 0; turned < 2; turned++) {
            const struct orc_divergence d =
                turned ? diff(&healthy, &mine, NULL) : diff(&mine, &healthy, NULL);
            cr_expect(d.found, "%s", rows[i].stage);
            cr_expect_str_eq(d.stage, rows[i].stage, "%s", d.detail);
            cr_expect_eq(d.step, SYNTH_PLANT_STEP, "%s", d.detail);
        }
    }
}

/* What the device did wrong in a step comes before the numbers of that step, and after its input.
 */
Test(diff, races_and_memory_stand_between_input_and_numbers)
{
    static const struct {
        enum synth_plant mine, theirs;
        const char *stage;
    } rows[] = {
        {SYNTH_race, SYNTH_activation, "races"},  {SYNTH_race, SYNTH_labels, "labels"},
        {SYNTH_leak, SYNTH_activation, "memory"}, {SYNTH_leak, SYNTH_order, "order"},
        {SYNTH_leak, SYNTH_race, "races"},        {SYNTH_backlog, SYNTH_moment, "state"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct synth mine = synth_subject(SEED), theirs = synth_subject(SEED);
        mine.plant = rows[i].mine;
        theirs.plant = rows[i].theirs;
        mine.scales = theirs.scales = 4;
        const struct orc_divergence d = diff(&mine, &theirs, NULL);
        cr_expect_str_eq(d.stage, rows[i].stage, "%s", d.detail);
    }
    struct synth both = synth_subject(SEED);
    both.plant = SYNTH_leak; /* what both break is no difference */
    cr_expect_not(diff(&both, &both, NULL).found);
}

/* Two stacks round differently from the first step on; the largest difference is told beside. */
Test(diff, two_stacks_differ_and_the_largest_difference_is_told)
{
    const struct synth theirs = synth_reference(SEED);
    struct synth mine = synth_subject(SEED);
    mine.plant = SYNTH_gradient;
    mine.scales = 1e4;
    const struct orc_divergence d = diff(&mine, &theirs, NULL);
    cr_expect(d.found);
    cr_expect_eq(d.step, 1);
    cr_expect_eq(d.worst_step, SYNTH_PLANT_STEP);
    cr_expect_gt(d.worst, 0.0);
    cr_expect_not_null(strstr(d.worst_item, "gradients model.layers.0.self_attn.o_proj.weight"),
                       "%s", d.worst_item);
    orc_trace *const a = synth_trace(&mine);
    struct orc_divergence ignored;
    cr_expect_eq(orc_diff(a, NULL, NULL, &ignored, NULL), ORC_EARG);
    orc_trace_free(a);
}
