/* Tests of what a gate compares with: known misses, baselines, GitHub's commands; of shards' names
 * and of the words that give a command its options again. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_github.h"
#include "har_options.h"
#include "har_select.h"

static char empty[] = "";
static char passed[] = "passed: all";

enum { ENTRIES = 3 };

/* norm_rstd.eps_outside detected, adamw_root.eps_inside as asked, the third as asked. */
static struct har_results results_of(struct har_result *entries, enum har_outcome second,
                                     enum har_outcome third)
{
    static const char *const ids[ENTRIES] = {"norm_rstd.eps_outside", "adamw_root.eps_inside",
                                             "sched_lr.scaled:0.001"};
    static const char *const faults[ENTRIES] = {"norm_rstd.eps_outside", "adamw_root.eps_inside",
                                                "sched_lr.scaled"};
    const enum har_outcome outcomes[ENTRIES] = {HAR_OUTCOME_detected, second, third};
    struct har_results r = {.entries = entries,
                            .count = ENTRIES,
                            .name = (char *)"demo",
                            .provenance = empty,
                            .plan_hash = empty,
                            .planted = empty,
                            .controls = passed,
                            .finished = passed,
                            .shard = empty,
                            .selection = empty,
                            .mode = empty};
    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = (struct har_result){.id = (char *)ids[i],
                                         .fault = (char *)faults[i],
                                         .recipe = (char *)"pico",
                                         .schedule = empty,
                                         .driver = empty,
                                         .reason = empty,
                                         .detail = empty,
                                         .reproduce = empty,
                                         .dose = (double)NAN,
                                         .outcome = outcomes[i],
                                         .run = true,
                                         .first_check = -1};
        snprintf(entries[i].expectation, sizeof entries[i].expectation, "KILL");
        r.summary.outcomes[outcomes[i]]++;
    }
    r.summary.entries = r.summary.kill = r.summary.rate_below = ENTRIES;
    r.summary.rate = (double)r.summary.outcomes[HAR_OUTCOME_detected] / ENTRIES;
    r.summary.healthy_runs = 20;
    return r;
}

static struct har_limits no_limits(void)
{
    struct har_limits limits = {
        .fail_under = -1.0, .max_median_steps = -1.0, .max_false_alarms = -1, .max_no_verdict = -1};
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        limits.family_under[i] = -1.0;
    }
    return limits;
}

static int judge(const struct har_results *r, const struct har_limits *limits, const char *says)
{
    struct har_text findings = {0};
    const enum har_status status = har_gate_judge(r, limits, &findings);
    cr_expect_not_null(strstr(har_text_get(&findings), says), "'%s' lacks '%s'",
                       har_text_get(&findings), says);
    har_text_fini(&findings);
    return har_status_exit_code(status);
}

static void write_text(char *path, const char *text)
{
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static enum har_status load_known(const char *text, struct har_known *out, struct har_error *error)
{
    char path[] = "/tmp/har_known_XXXXXX";
    write_text(path, text);
    const enum har_status status = har_known_load(path, out, error);
    unlink(path);
    return status;
}

static const char known_text[] = "known:\n"
                                 "  - fault: adamw_root.eps_inside\n"
                                 "    reason: below rounding\n"
                                 "    expires: 2026-12-31\n"
                                 "  - fault: 'sched_lr.*'\n"
                                 "    reason: too small\n"
                                 "    expires: 2027-01-01\n";

Test(har_gate_known, a_miss_is_known_to_its_last_day)
{
    struct har_result entries[ENTRIES];
    struct har_known known;
    struct har_error error = {{0}};
    struct har_limits limits = no_limits();
    const struct har_results r = results_of(entries, HAR_OUTCOME_missed, HAR_OUTCOME_missed);
    cr_assert_eq(load_known(known_text, &known, &error), HAR_OK, "%s", error.text);
    limits.known = &known;
    cr_assert(har_known_day("2026-12-31", &limits.today));
    cr_expect_eq(judge(&r, &limits, "known until 2026-12-31: below rounding"), 0);
    limits.today++;
    cr_expect_eq(judge(&r, &limits, "it was known until 2026-12-31"), 2);
    cr_expect_eq(har_gate_place(&entries[1], &limits), HAR_GATE_expired);
    cr_expect_eq(har_gate_place(&entries[2], &limits), HAR_GATE_known);
    har_known_fini(&known);
}

Test(har_gate_known, a_miss_nobody_knows_fails_and_a_known_one_that_is_found_is_told)
{
    struct har_result entries[ENTRIES];
    struct har_known known;
    struct har_error error = {{0}};
    struct har_limits limits = no_limits();
    struct har_results r = results_of(entries, HAR_OUTCOME_detected, HAR_OUTCOME_flaky);
    cr_assert_eq(
        load_known("known:\n  - {fault: adamw_root.eps_inside, reason: x, expires: "
                   "2030-01-01}\n  - {fault: other.fault, reason: y, expires: 2030-01-01}\n",
                   &known, &error),
        HAR_OK, "%s", error.text);
    limits.known = &known;
    cr_expect_eq(judge(&r, &limits, "sched_lr.scaled:0.001 is flaky and no known miss"), 2);
    r = results_of(entries, HAR_OUTCOME_detected, HAR_OUTCOME_detected);
    cr_expect_eq(judge(&r, &limits, "adamw_root.eps_inside is a known miss and is detected"), 0);
    cr_expect_eq(judge(&r, &limits, "known miss other.fault: no fault of this plan"), 0);
    har_known_fini(&known);
}

Test(har_gate_known, every_mistake_in_the_file_is_named)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"known:\n  - {fault: a, reason: b}\n", "expires"},
        {"known:\n  - {fault: a, reason: ' ', expires: 2030-01-01}\n", "reason is empty"},
        {"known:\n  - {fault: a, reason: b, expires: 2030-02-30}\n", "2030-02-30"},
        {"known:\n  - {fault: a, reason: b, expires: 2030-1-1}\n", "2030-1-1"},
        {"known:\n  - {fault: a, reason: b, expires: soon}\n", "soon"},
        {"known:\n  - {fault: a, reason: b, expires: 2030-01-01, who: me}\n", "who"},
        {"misses: []\n", "misses"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct har_known known;
        struct har_error error = {{0}};
        cr_expect_eq(load_known(rows[i].text, &known, &error), HAR_EUSAGE, "%s", rows[i].text);
        cr_expect_not_null(strstr(error.text, rows[i].says), "'%s' lacks '%s'", error.text,
                           rows[i].says);
    }
}

static enum har_status load_baseline(const char *text, struct har_baseline *out,
                                     struct har_error *error)
{
    char path[] = "/tmp/har_baseline_XXXXXX";
    write_text(path, text);
    const enum har_status status = har_baseline_load(path, out, error);
    unlink(path);
    return status;
}

#define BASELINE(campaign, id, outcome)                                                            \
    "{\"schema_version\":1,\"campaign\":\"" campaign "\",\"faults\":[{\"id\":\"" id                \
    "\",\"outcome\":\"" outcome "\"},{\"id\":\"gone.fault\",\"outcome\":\"detected\"}]}"

Test(har_gate_baseline, newly_missed_fails_even_when_the_rate_holds_and_the_miss_is_known)
{
    struct har_result entries[ENTRIES];
    struct har_known known;
    struct har_baseline baseline;
    struct har_error error = {{0}};
    struct har_limits limits = no_limits();
    const struct har_results r = results_of(entries, HAR_OUTCOME_missed, HAR_OUTCOME_missed);
    limits.fail_under = 30.0;
    cr_expect_eq(judge(&r, &limits, ""), 0);
    cr_assert_eq(load_known(known_text, &known, &error), HAR_OK, "%s", error.text);
    limits.known = &known;
    cr_assert_eq(
        load_baseline(BASELINE("demo", "adamw_root.eps_inside", "detected"), &baseline, &error),
        HAR_OK, "%s", error.text);
    limits.baseline = &baseline;
    cr_expect_eq(judge(&r, &limits, "adamw_root.eps_inside is missed; "), 2);
    cr_expect_eq(judge(&r, &limits, "1 faults of"), 2);
    har_baseline_fini(&baseline);
    cr_assert_eq(
        load_baseline(BASELINE("demo", "adamw_root.eps_inside", "missed"), &baseline, &error),
        HAR_OK, "%s", error.text);
    cr_expect_eq(judge(&r, &limits, "known until"), 0, "what was missed before may be missed");
    har_baseline_fini(&baseline);
    har_known_fini(&known);
}

Test(har_gate_baseline, another_campaign_is_no_baseline)
{
    struct har_result entries[ENTRIES];
    struct har_baseline baseline;
    struct har_error error = {{0}};
    struct har_limits limits = no_limits();
    const struct har_results r = results_of(entries, HAR_OUTCOME_missed, HAR_OUTCOME_missed);
    const char *const texts[] = {BASELINE("other", "adamw_root.eps_inside", "detected"),
                                 BASELINE("demo", "no.such", "detected")};
    limits.baseline = &baseline;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_assert_eq(load_baseline(texts[i], &baseline, &error), HAR_OK, "%s", error.text);
        cr_expect_eq(judge(&r, &limits, "is of campaign"), 6);
        har_baseline_fini(&baseline);
    }
    cr_expect_eq(load_baseline("{\"schema_version\":2,\"campaign\":\"demo\",\"faults\":[]}",
                               &baseline, &error),
                 HAR_EMISMATCH);
    cr_expect_eq(load_baseline("{\"schema_version\":1,\"campaign\":\"demo\",\"faults\":[{}]}",
                               &baseline, &error),
                 HAR_EMISMATCH);
    cr_expect_eq(load_baseline("{", &baseline, &error), HAR_EUSAGE);
    cr_expect_eq(har_baseline_load("/nonexistent/r.json", &baseline, &error), HAR_EUSAGE);
}

Test(har_gate, a_shard_alone_is_incomplete_and_nothing_to_run_passes)
{
    struct har_result entries[ENTRIES];
    struct har_limits limits = no_limits();
    struct har_results r = results_of(entries, HAR_OUTCOME_detected, HAR_OUTCOME_detected);
    r.shard = (char *)"2/3";
    cr_expect_eq(judge(&r, &limits, "only shard 2/3"), 3);
    r.shard = empty;
    r.count = 0;
    limits.fail_under = 90.0;
    r.selection = (char *)"0 of 9 faults stand in files changed since main";
    cr_expect_eq(judge(&r, &limits, "no fault to run: 0 of 9"), 0);
    r.selection = empty;
    cr_expect_eq(judge(&r, &limits, "the stored plan is empty"), 3);
}

Test(har_github, annotations_stand_at_the_site_and_are_escaped)
{
    struct har_result entries[ENTRIES];
    struct har_text text = {0};
    const struct har_limits limits = no_limits();
    const struct har_results r = results_of(entries, HAR_OUTCOME_missed, HAR_OUTCOME_crashed);
    entries[2].id = (char *)"sched_lr.scaled:50%\n";
    har_github_annotations(&r, &limits, &text);
    const char *const out = har_text_get(&text);
    cr_expect_not_null(strstr(out, "::error file=kernels/optimizer.cu,line="), "%s", out);
    cr_expect_not_null(
        strstr(out, "title=fault not detected::adamw_root.eps_inside on pico is missed"), "%s",
        out);
    cr_expect_not_null(strstr(out, "::sched_lr.scaled:50%25%0A on pico is crashed"), "%s", out);
    cr_expect_null(strstr(out, "norm_rstd"));
    har_text_fini(&text);
}

Test(har_github, the_summary_is_appended)
{
    struct har_result entries[ENTRIES];
    char path[] = "/tmp/har_github_XXXXXX";
    char text[4096] = "";
    struct har_error error = {{0}};
    const struct har_results r = results_of(entries, HAR_OUTCOME_missed, HAR_OUTCOME_missed);
    write_text(path, "before\n");
    cr_assert_eq(har_github_summary(&r, HAR_EGATE, "a finding\n", path, &error), HAR_OK);
    FILE *const file = fopen(path, "r");
    cr_assert_gt(fread(text, 1, sizeof text - 1, file), 0);
    fclose(file);
    unlink(path);
    cr_expect_eq(strncmp(text, "before\n### Gate: below the gate", 30), 0, "%s", text);
    cr_expect_not_null(strstr(text, "a finding"));
    cr_expect_not_null(strstr(text, "adamw_root.eps_inside"));
    cr_expect_eq(har_github_summary(&r, HAR_OK, "", "/nonexistent/s.md", &error), HAR_EIO);
}

Test(har_select, shards_are_named_from_one)
{
    static const char *const bad[] = {"0/3",  "4/3", "1/0", "-1/3",  "1",
                                      "1/3x", "a/b", "",    "1/1001"};
    struct har_error error = {{0}};
    int k = 0;
    int n = 0;
    cr_assert_eq(har_select_parse_shard("2/3", &k, &n, &error), HAR_OK);
    cr_expect(k == 2 && n == 3);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(har_select_parse_shard(bad[i], &k, &n, &error), HAR_EUSAGE, "%s", bad[i]);
        cr_expect_not_null(strstr(error.text, "K from 1 to N"), "%s", error.text);
    }
}

Test(har_select, shards_part_the_plan)
{
    enum { COUNT = 11, SHARDS = 4, BENCHES = 3 };
    int seen[COUNT] = {0};
    int owners[BENCHES] = {0};
    for (int k = 1; k <= SHARDS; k++) {
        struct har_bench benches[BENCHES] = {{.steps = 1}};
        struct har_lab lab = {.benches = benches, .bench_count = BENCHES};
        struct har_error error = {{0}};
        lab.campaign.shard = k;
        lab.campaign.shards = SHARDS;
        lab.plan.entries = calloc(COUNT, sizeof *lab.plan.entries);
        lab.plan.count = COUNT;
        for (size_t i = 0; i < COUNT; i++) {
            lab.plan.entries[i].position = i;
            lab.plan.entries[i].place = (int)(i % 2) - 1; /* -1 and 0: bench 2 and 1 have none */
            lab.plan.entries[i].id = strdup("x");
        }
        cr_assert_eq(har_select_shard(&lab, &error), HAR_OK, "%s", error.text);
        cr_expect_eq(lab.entry_total, COUNT);
        cr_expect(lab.plan.count == COUNT / SHARDS || lab.plan.count == COUNT / SHARDS + 1);
        for (size_t i = 0; i < lab.plan.count; i++) {
            seen[lab.plan.entries[i].position]++;
        }
        for (int b = 0; b < BENCHES; b++) {
            owners[b] += benches[b].owned;
        }
        har_plan_fini(&lab.plan);
        cr_expect_eq(har_select_shard(&lab, &error), HAR_EUSAGE, "more shards than entries");
    }
    for (int i = 0; i < COUNT; i++) {
        cr_expect_eq(seen[i], 1, "entry %d stands in %d shards", i, seen[i]);
    }
    for (int b = 0; b < BENCHES; b++) {
        cr_expect_eq(owners[b], 1, "bench %d has %d owners", b, owners[b]);
    }
}

Test(har_options, words_read_back_as_the_same_options)
{
    const char *const given[] = {"run",       "-c",       "a b.yaml",  "-F",         "x*",
                                 "--fault=y", "--family", "loss",      "--seed=3",   "--repeats",
                                 "2",         "-j4",      "--quiet",   "--dose",     "usual,0.5",
                                 "--shard",   "1/2",      "--iterate", "--baseline", "r.json",
                                 "--train",   "/t"};
    enum { GIVEN = sizeof given / sizeof given[0] };
    char *argv[GIVEN];
    struct har_options first, second;
    struct har_args words = {0}, again = {0};
    struct har_error error = {{0}};
    for (int i = 0; i < GIVEN; i++) {
        argv[i] = (char *)given[i];
    }
    cr_assert_eq(har_options_parse(HAR_SUBCOMMAND_run, GIVEN, argv, &first, &error), HAR_OK, "%s",
                 error.text);
    har_options_words(HAR_SUBCOMMAND_run, &first, &words);
    cr_assert_eq(
        har_options_parse(HAR_SUBCOMMAND_run, (int)words.count, words.items, &second, &error),
        HAR_OK, "%s", error.text);
    har_options_words(HAR_SUBCOMMAND_run, &second, &again);
    cr_assert_gt(words.count, 10);
    cr_assert_eq(words.count, again.count);
    for (size_t i = 0; i < words.count; i++) {
        cr_expect_str_eq(words.items[i], again.items[i]);
    }
    cr_expect_str_eq(second.campaign, "a b.yaml");
    cr_expect_eq(second.faults.count, 2);
    cr_expect(second.iterate && second.quiet && !second.dry_run);
    har_args_fini(&words);
    har_args_fini(&again);
}
