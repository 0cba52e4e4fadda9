/* Reading traces: what is kept of a dead run, what is refused, and with which words. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orc_check_synth.h"

static const char header[] = "{\"type\":\"header\",\"trace_version\":1,\"first_step\":1}\n";

static enum orc_status read_text(const char *text, orc_trace **out, struct orc_error *error)
{
    return synth_read(text, strlen(text), ".jsonl", out, error);
}

Test(trace, reads_back_what_was_written)
{
    struct synth s = synth_subject(9);
    orc_trace *t = synth_trace(&s);
    const char *const *features = NULL;
    cr_expect_eq(orc_trace_first_step(t), 1);
    cr_expect_eq(orc_trace_last_step(t), SYNTH_STEPS);
    cr_expect(orc_trace_ended(t));
    cr_expect_eq(orc_trace_fault_reached(t), 2);
    cr_expect_eq(orc_trace_site_reached(t, "a_site"), 4);
    cr_expect_eq(orc_trace_site_reached(t, "b_site"), -1);
    cr_expect_eq(orc_trace_site_reached(t, "unknown"), -1);
    cr_assert_eq(orc_trace_features(t, &features), 2);
    cr_expect_str_eq(features[0], "packed");
    cr_expect_str_eq(features[1], "eval");
    cr_expect(orc_trace_loss(t, 1) > 7.0 && orc_trace_loss(t, 1) < 8.0);
    cr_expect(isnan(orc_trace_loss(t, SYNTH_STEPS + 1)));
    cr_expect(isnan(orc_trace_eval_loss(t, 1)));
    cr_expect(orc_trace_eval_loss(t, SYNTH_EVAL_EVERY) > 6.0);
    orc_trace_free(t);
}

Test(trace, compressed_equals_plain_also_when_cut)
{
    struct synth s = synth_subject(9);
    char *text = synth_text(&s);
    struct orc_error error = {""};
    orc_trace *plain = NULL, *packed = NULL, *cut = NULL;
    const char *which = NULL;
    cr_assert_eq(read_text(text, &plain, &error), ORC_OK);
    cr_assert_eq(synth_read(text, strlen(text), ".jsonl.zst", &packed, &error), ORC_OK, "%s",
                 error.text);
    cr_expect_eq(orc_trace_first_difference(plain, packed, &which), 0);
    /* bytes that are no zstd frame, under a name that says they are */
    FILE *file = fopen("/tmp/orc_check_bad.zst", "wb");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
    cr_expect_eq(orc_trace_read("/tmp/orc_check_bad.zst", &cut, &error), ORC_EFORMAT);
    remove("/tmp/orc_check_bad.zst");
    orc_trace_free(plain);
    orc_trace_free(packed);
    free(text);
}

/* Cut anywhere: the complete steps before the cut are kept, nothing is invented. */
Test(trace, cut_anywhere_keeps_the_complete_steps)
{
    struct synth s = {.seed = 9, .bare = true, .hashes = true, .steps = 3};
    char *text = synth_text(&s);
    const size_t size = strlen(text), header_size = (size_t)(strchr(text, '\n') - text);
    size_t kept_all = 0;
    for (size_t cut = 1; cut <= size; cut++) {
        orc_trace *t = NULL;
        struct orc_error error = {""};
        const enum orc_status status = synth_read(text, cut, ".jsonl", &t, &error);
        cr_assert_eq(status, cut < header_size ? ORC_EFORMAT : ORC_OK, "cut %zu: %s", cut,
                     error.text);
        if (status != ORC_OK) {
            continue;
        }
        int lines = 0;
        for (size_t i = 0; i < cut; i++) {
            lines += text[i] == '\n';
        }
        /* A line is complete with its last brace, also when the line end is lost. */
        lines += text[cut - 1] == '}' && text[cut] == '\n';
        cr_assert_eq(orc_trace_last_step(t), lines - 1 > 3 ? 3 : lines - 1, "cut %zu", cut);
        cr_assert_eq(orc_trace_ended(t), lines == 5);
        kept_all += orc_trace_last_step(t) == 3;
        orc_trace_free(t);
    }
    cr_expect_gt(kept_all, 0);
    free(text);
}

Test(trace, bad_lines_are_named)
{
    static const struct {
        const char *line, *said;
    } bad[] = {
        {"garbage\n", "not one JSON object"},
        {"{\"type\":\"step\",\"step\":1} {}\n", "not one JSON object"},
        {"[1]\n", "not one JSON object"},
        {"\n", "not one JSON object"},
        {"{\"step\":1}\n", "without a \"type\""},
        {"{\"type\":\"other\"}\n", "unexpected"},
        {"{\"type\":\"header\",\"trace_version\":1}\n", "unexpected"},
        {"{\"type\":\"step\"}\n", "\"step\" is missing"},
        {"{\"type\":\"step\",\"step\":0}\n", "\"step\" is missing or not in"},
        {"{\"type\":\"step\",\"step\":2147483647}\n", "\"step\" is missing or not in"},
        {"{\"type\":\"step\",\"step\":1.5}\n", "integer"},
        {"{\"type\":\"step\",\"step\":1,\"loss\":[]}\n", "\"loss\" is not a number"},
        {"{\"type\":\"step\",\"step\":1,\"loss\":\"NaN\"}\n", "\"loss\" is not a number"},
        {"{\"type\":\"step\",\"step\":1,\"ids\":[\"00\"]}\n", "\"ids\""},
        {"{\"type\":\"step\",\"step\":1,\"ids\":[\"000000000000000G\"]}\n", "\"ids\""},
        {"{\"type\":\"step\",\"step\":1,\"records\":[{}]}\n", "\"id\""},
        {"{\"type\":\"step\",\"step\":1,\"records\":3}\n", "\"records\""},
        {"{\"type\":\"step\",\"step\":1,\"sketch\":{\"gradients\":{\"w\":[1,2]}}}\n", "sketch"},
        {"{\"type\":\"step\",\"step\":1,\"sketch\":{\"gradients\":{\"w\":[1,2,3,4,5,6,7,8,9,10,"
         "11]}}}\n",
         "sketch"},
        {"{\"type\":\"step\",\"step\":1,\"sketch\":[]}\n", "sketch"},
        {"{\"type\":\"step\",\"step\":1,\"ledger\":{\"live\":1}}\n", "ledger"},
        {"{\"type\":\"step\",\"step\":1,\"events\":[{}]}\n", "event"},
        {"{\"type\":\"step\",\"step\":1,\"races\":{}}\n", "\"races\""},
        {"{\"type\":\"step\",\"step\":1,\"hash\":{\"state\":\"x\"}}\n", "\"state\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[1024];
        orc_trace *t = NULL;
        struct orc_error error = {""};
        (void)snprintf(text, sizeof text, "%s%s{\"type\":\"step\",\"step\":9}\n", header,
                       bad[i].line);
        cr_expect_eq(read_text(text, &t, &error), ORC_EFORMAT, "%s", bad[i].line);
        cr_expect_null(t);
        cr_expect_not_null(strstr(error.text, ".jsonl:2: "), "%s", error.text);
        cr_expect_not_null(strstr(error.text, bad[i].said), "%s: %s", bad[i].line, error.text);
    }
}

Test(trace, wrong_beginnings_and_ends_are_refused)
{
    static const char *const bad[] = {
        "",
        "{\"type\":\"step\",\"step\":1}\n",
        "{\"type\":\"header\",\"trace_version\":2}\n",
        "{\"type\":\"header\"}\n",
        "{\"type\":\"header\",\"trace_version\":1,\"first_step\":0}\n",
        "{\"type\":\"header\",\"trace_version\":1,\"recipe_hash\":\"12\"}\n",
        "{\"type\":\"header\",\"trace_version\":1}\n{\"type\":\"end\"}\n{\"type\":\"end\"}\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        orc_trace *t = NULL;
        struct orc_error error = {""};
        cr_expect_eq(read_text(bad[i], &t, &error), ORC_EFORMAT, "%s", bad[i]);
        cr_expect(error.text[0] != '\0');
    }
    orc_trace *t = NULL;
    struct orc_error error = {""};
    cr_expect_eq(orc_trace_read("/nonexistent/trace.jsonl", &t, &error), ORC_EIO);
    cr_expect_not_null(strstr(error.text, "/nonexistent/trace.jsonl"));
    cr_expect_eq(orc_trace_read("/tmp", &t, &error), ORC_EIO);
    cr_expect_eq(orc_trace_read(NULL, &t, &error), ORC_EARG);
}

Test(trace, null_and_unknown_members_say_nothing)
{
    char text[512];
    orc_trace *t = NULL;
    struct orc_error error = {""};
    (void)snprintf(
        text, sizeof text,
        "%s{\"type\":\"step\",\"step\":1,\"loss\":null,\"new\":{\"x\":1},\"records\":null,"
        "\"lr\":\"inf\",\"grad_norm\":\"-inf\",\"clip\":\"nan\"}\r\n",
        header);
    cr_assert_eq(read_text(text, &t, &error), ORC_OK, "%s", error.text);
    cr_expect_eq(orc_trace_last_step(t), 1);
    cr_expect(isnan(orc_trace_loss(t, 1)));
    cr_expect_not(orc_trace_ended(t));
    cr_expect_eq(orc_trace_fault_reached(t), -1);
    orc_trace_free(t);
}

Test(trace, end_with_another_status_is_a_refusal)
{
    char text[512];
    orc_trace *t = NULL;
    struct orc_error error = {""};
    (void)snprintf(text, sizeof text, "%s{\"type\":\"end\",\"status\":\"out of memory\"}\n",
                   header);
    cr_assert_eq(read_text(text, &t, &error), ORC_OK, "%s", error.text);
    cr_expect_not(orc_trace_ended(t));
    cr_expect_eq(orc_trace_last_step(t), 0);
    orc_trace_free(t);
}

Test(trace, first_difference_is_named)
{
    static const struct {
        enum synth_plant plant;
        const char *which;
        int step;
    } cases[] = {
        {SYNTH_none, "", 0},
        {SYNTH_hash_input, "input", SYNTH_PLANT_STEP},
        {SYNTH_hash_state, "state", SYNTH_PLANT_STEP},
        {SYNTH_hash_output, "output", SYNTH_PLANT_STEP},
        {SYNTH_hash_ledger, "ledger", SYNTH_PLANT_STEP},
        {SYNTH_eval_supervised, "output", SYNTH_EVAL_EVERY},
        {SYNTH_loss_nan, "output", SYNTH_PLANT_STEP},
        {SYNTH_step_missing, "length", SYNTH_PLANT_STEP},
    };
    struct synth s = synth_subject(9);
    orc_trace *healthy = synth_trace(&s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *which = NULL;
        s.plant = cases[i].plant;
        orc_trace *t = synth_trace(&s);
        cr_expect_eq(orc_trace_first_difference(healthy, t, &which), cases[i].step);
        cr_expect_str_eq(which, cases[i].which);
        cr_expect_eq(orc_trace_first_difference(t, t, NULL), 0);
        orc_trace_free(t);
    }
    const char *which = NULL;
    s.plant = SYNTH_none;
    s.steps = 7;
    orc_trace *shorter = synth_trace(&s);
    cr_expect_eq(orc_trace_first_difference(healthy, shorter, &which), 8);
    cr_expect_str_eq(which, "length");
    s.first_step = 4;
    s.steps = 0;
    orc_trace *resumed = synth_trace(&s);
    cr_expect_eq(orc_trace_first_difference(healthy, resumed, &which), 0);
    orc_trace_free(shorter);
    orc_trace_free(resumed);
    orc_trace_free(healthy);
}

/* A run that stopped in step 1: the end record alone tells why. %d: spurious refusals. */
static const char stopped[] =
    "{\"type\":\"end\",\"steps\":0,\"status\":\"device memory\",\"unfinished\":{\"step\":1,"
    "\"ledger\":{\"budget\":100,\"live\":60,\"cached\":30,\"pending\":0,\"deferred\":0,\"free\":10,"
    "\"peak\":60,\"host\":0,\"mallocs\":5,\"frees\":2,\"ooms\":1,\"spurious_ooms\":%d,"
    "\"reclaims\":0},\"races\":[],\"race_count\":0,\"events\":[]}}\n";

static struct orc_verdict memory_of_stopped(int spurious)
{
    char text[1024];
    struct orc_error error = {""};
    struct orc_verdict verdicts[ORC_CHECK_COUNT];
    orc_trace *t = NULL;
    const int head = snprintf(text, sizeof text, "%s", header);
    snprintf(text + head, sizeof text - (size_t)head, stopped, spurious);
    cr_assert_eq(read_text(text, &t, &error), ORC_OK, "%s", error.text);
    cr_assert_not(orc_trace_ended(t));
    const struct orc_case c = {.subject = t};
    cr_assert_eq(orc_judge(&c, NULL, verdicts, &error), ORC_OK, "%s", error.text);
    orc_trace_free(t);
    return verdicts[ORC_CHECK_memory];
}

Test(trace, a_step_that_did_not_finish_is_judged_by_memory)
{
    const struct orc_verdict spurious = memory_of_stopped(1);
    cr_expect(spurious.applicable && spurious.fired);
    cr_expect_eq(spurious.step, 1);
    const struct orc_verdict honest = memory_of_stopped(0);
    cr_expect(honest.applicable);
    cr_expect_not(honest.fired);
}
