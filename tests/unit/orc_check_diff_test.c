/* The first divergence of two traces, by stage. */
#include <criterion/criterion.h>
#include <string.h>

#include "orc_check_synth.h"

enum { SEED = 601 };

static const struct {
    enum synth_plant plant;
    const char *stage, *item;
    int step;
    bool exact; /* found without bounds, too */
} cases[] = {
    {SYNTH_none, "", "", 0, true},
    {SYNTH_text, "text", "record", SYNTH_PLANT_STEP, true},
    {SYNTH_tokens, "tokens", "record", SYNTH_PLANT_STEP, true},
    {SYNTH_labels, "labels", "labels", SYNTH_PLANT_STEP, true},
    {SYNTH_order, "order", "record", SYNTH_PLANT_STEP, true},
    {SYNTH_activation, "activations", "embed", SYNTH_PLANT_STEP, false},
    {SYNTH_loss, "loss", "loss", SYNTH_PLANT_STEP, false},
    {SYNTH_gradient, "gradients", "o_proj", SYNTH_PLANT_STEP, false},
    {SYNTH_update, "updates", "typical", SYNTH_PLANT_STEP, false},
    {SYNTH_parameter, "state", "parameters", SYNTH_PLANT_STEP, false},
};

Test(diff, names_stage_step_and_item)
{
    orc_bounds *bounds = synth_bounds(1, 12);
    const struct synth theirs = synth_reference(SEED);
    orc_trace *reference = synth_trace(&theirs);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth mine = synth_subject(SEED);
        struct orc_error error = {""};
        mine.plant = cases[i].plant;
        mine.scales = 300;
        orc_trace *subject = synth_trace(&mine);
        for (int with = 0; with < 2; with++) {
            struct orc_divergence d;
            cr_assert_eq(orc_diff(subject, reference, with ? bounds : NULL, &d, &error), ORC_OK);
            const bool found = cases[i].step > 0 && (with || cases[i].exact);
            cr_expect_eq(d.found, found, "%s: %s", cases[i].stage, d.detail);
            cr_expect_gt(d.compared, 0);
            cr_expect(d.detail[0] != '\0');
            if (found) {
                cr_expect_str_eq(d.stage, cases[i].stage);
                cr_expect_eq(d.step, cases[i].step);
                cr_expect_not_null(strstr(d.item, cases[i].item), "%s", d.item);
            }
        }
        orc_trace_free(subject);
    }
    orc_trace_free(reference);
    orc_bounds_free(bounds);
}

/* Without bounds the largest deviation is reported where it stands. */
Test(diff, largest_deviation_without_bounds)
{
    const struct synth theirs = synth_reference(SEED);
    struct synth mine = synth_subject(SEED);
    struct orc_error error = {""};
    struct orc_divergence d;
    mine.plant = SYNTH_gradient;
    mine.scales = 1e4;
    orc_trace *a = synth_trace(&mine), *b = synth_trace(&theirs);
    cr_assert_eq(orc_diff(a, b, NULL, &d, &error), ORC_OK);
    cr_expect_eq(d.step, SYNTH_PLANT_STEP);
    cr_expect_not_null(strstr(d.item, "gradients model.layers.0.self_attn.o_proj.weight"), "%s",
                       d.item);
    cr_expect_eq(orc_diff(a, NULL, NULL, &d, &error), ORC_EARG);
    orc_trace_free(a);
    orc_trace_free(b);
}
