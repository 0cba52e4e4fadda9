/* Logs of fuzzers read, runs stored and found again, sums of a cell. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_fuzz.h"

#define ARMED "fuzz: armed x.y\nfuzz: judges x\n"
#define STATS "stat::number_of_executed_units: 1234\nstat::average_exec_per_sec: 0\n"

static struct har_fuzz_run read_log(const char *log, int code, int signal)
{
    const struct har_exit last = {.end = code == 0 ? HAR_END_done : HAR_END_crashed,
                                  .code = code,
                                  .signal = signal,
                                  .seconds = 2.5};
    struct har_fuzz_run run;
    cr_assert(har_fuzz_read_log(log, &last, &run));
    cr_assert_eq(run.seconds, 2.5);
    return run;
}

Test(har_fuzz, a_requirement_that_does_not_hold_is_a_finding)
{
    const struct har_fuzz_run run =
        read_log(ARMED "fuzz: reached x\n/a/b/fuzz_bpe.c:77: does not hold: count == wanted\n"
                       "==1== ERROR: libFuzzer: deadly signal\n" STATS,
                 77, 0);
    cr_assert_eq(run.end, HAR_FUZZ_found);
    cr_assert_eq(run.executions, 1234.0);
    cr_assert(run.reached);
    cr_assert_str_eq(run.by, "fuzz_bpe.c:77: count == wanted");
}

Test(har_fuzz, a_sanitizer_is_a_crash_and_no_finding)
{
    const struct har_fuzz_run run =
        read_log(ARMED "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1\n"
                       "SUMMARY: AddressSanitizer: heap-buffer-overflow (f+0x1)\n" STATS,
                 1, 0);
    cr_assert_eq(run.end, HAR_FUZZ_crashed);
    cr_assert_str_eq(run.by, "SUMMARY: AddressSanitizer: heap-buffer-overflow (f+0x1)");
    cr_assert_eq(read_log(ARMED, -1, 9).end, HAR_FUZZ_crashed);
    cr_assert_eq(read_log(ARMED "f: assertion failed: a > b\n", 9, 0).end, HAR_FUZZ_crashed);
}

Test(har_fuzz, tells_quiet_hung_and_unknown_ends_apart)
{
    cr_assert_eq(read_log(ARMED STATS, 0, 0).end, HAR_FUZZ_quiet);
    cr_assert_eq(read_log(ARMED STATS, 70, 0).end, HAR_FUZZ_hung);
    cr_assert_eq(read_log(ARMED, 0, 0).end, HAR_FUZZ_no_verdict, "no count of executions");
    const struct har_exit late = {.end = HAR_END_timed_out, .code = -1, .signal = 9};
    struct har_fuzz_run run;
    cr_assert(har_fuzz_read_log(ARMED STATS, &late, &run));
    cr_assert_eq(run.end, HAR_FUZZ_no_verdict);
}

Test(har_fuzz, what_cannot_be_armed_is_no_run)
{
    const struct har_exit last = {.end = HAR_END_rejected, .code = 2};
    struct har_fuzz_run run;
    cr_assert_not(har_fuzz_read_log("fuzz: FAULTLINE_FAULT=x: unknown fault 'x'\n", &last, &run));
    cr_assert(strstr(run.by, "unknown fault") != NULL);
}

/* A folder with a store, one target and one cell of four repeats. */
static struct har_fuzz_target target = {.name = (char *)"bpe", .seed_count = 9, .hash = 0xABC};
static struct har_fuzz_run runs[4];
static struct har_fuzz_cell cell = {.target = &target, .spec = (char *)"x.y", .runs = runs};
static char folder[] = "/tmp/har_fuzz_XXXXXX";

static struct har_fuzz make_fuzz(void)
{
    const struct har_fuzz fuzz = {.runs_max = 1000.0,
                                  .seconds_max = 5,
                                  .repeats = 4,
                                  .seed = 1,
                                  .from_seeds = true,
                                  .out = folder,
                                  .store = -1,
                                  .cells = &cell,
                                  .cell_count = 1};
    for (int r = 0; r < 4; r++) {
        runs[r] = (struct har_fuzz_run){.seed = (uint64_t)r + 1};
    }
    return fuzz;
}

static void fill_runs(void)
{
    const double executions[] = {8.0, 100.0, 400.0, 200.0};
    for (int r = 0; r < 4; r++) {
        runs[r].done = runs[r].reached = true;
        runs[r].executions = executions[r];
        runs[r].seconds = r + 1.0;
        runs[r].end = r < 3 ? HAR_FUZZ_found : HAR_FUZZ_quiet;
        snprintf(runs[r].by, sizeof runs[r].by, "%s", r < 3 ? "a \"quoted\" cause" : "");
    }
}

Test(har_fuzz, sums_censor_what_found_nothing)
{
    const struct har_fuzz fuzz = make_fuzz();
    struct har_fuzz_sum sum;
    fill_runs();
    cr_assert(har_fuzz_sum(&fuzz, &cell, &sum));
    cr_assert_eq(sum.done, 4);
    cr_assert_eq(sum.found, 3);
    cr_assert_eq(sum.in_seeds, 1);
    cr_assert_eq(sum.median, 100.0);
    cr_assert_eq(sum.horizon, 400.0);
    cr_assert_eq(sum.mean, 8.0 + 92.0 * 0.75 + 300.0 * 0.5); /* nobody is lost at 200 */
    cr_assert_eq(sum.survival[0], 0.75);
    cr_assert_eq(sum.survival[1], 0.5);
    cr_assert_eq(sum.survival[2], 0.0);
    cr_assert_eq(sum.median_seconds, 2.0);
    cr_assert_str_eq(sum.by, "a \"quoted\" cause");
}

Test(har_fuzz, stored_runs_are_found_again_and_a_torn_line_is_not)
{
    struct har_error error = {{0}};
    struct har_fuzz fuzz = make_fuzz();
    cr_assert(mkdtemp(folder) != NULL);
    cr_assert_eq(har_fuzz_store_open(&fuzz, &error), HAR_OK, "%s", error.text);
    fill_runs();
    for (int r = 0; r < 3; r++) {
        cr_assert_eq(har_fuzz_store_add(&fuzz, &cell, &runs[r], &error), HAR_OK);
    }
    cr_assert_eq(write(fuzz.store, "{\"target\":\"b", 12), 12);
    const int store = fuzz.store;
    fuzz = make_fuzz();
    fuzz.store = store;
    cr_assert_eq(har_fuzz_store_load(&fuzz, &error), HAR_OK, "%s", error.text);
    for (int r = 0; r < 4; r++) {
        cr_assert_eq(runs[r].done, r < 3);
    }
    cr_assert_eq(runs[1].executions, 100.0);
    cr_assert_str_eq(runs[1].by, "a \"quoted\" cause");

    /* The torn line is gone, so the next one is whole. */
    cr_assert_eq(har_fuzz_store_add(&fuzz, &cell, &runs[1], &error), HAR_OK);
    cr_assert_eq(har_fuzz_store_load(&fuzz, &error), HAR_OK, "%s", error.text);

    /* Another budget or another program is another experiment. */
    fuzz = make_fuzz();
    fuzz.store = store;
    fuzz.seconds_max = 6;
    cr_assert_eq(har_fuzz_store_load(&fuzz, &error), HAR_OK);
    cr_assert_not(runs[0].done);
    fuzz.seconds_max = 5;
    target.hash++;
    cr_assert_eq(har_fuzz_store_load(&fuzz, &error), HAR_OK);
    cr_assert_not(runs[0].done);

    /* Anything else in the file is an error with its line. */
    cr_assert_eq(write(fuzz.store, "no JSON\n", 8), 8);
    cr_assert_eq(har_fuzz_store_load(&fuzz, &error), HAR_EIO);
    cr_assert(strstr(error.text, "fuzz.jsonl:5:") != NULL, "%s", error.text);
    close(store);
    char path[64];
    snprintf(path, sizeof path, "%s/fuzz.jsonl", folder);
    unlink(path);
    rmdir(folder);
}
