/* Tests of the database: what is put is found, transactions are whole, other plans are refused. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "har_results.h"
#include "har_store.h"

static char folder[] = "/tmp/har_store_XXXXXX";

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(har_store, .init = make_folder, .fini = remove_folder);

static har_store *open_store(void)
{
    har_store *store = NULL;
    struct har_error error = {{0}};
    cr_assert_eq(har_store_create(folder, &store, &error), HAR_OK, "%s", error.text);
    return store;
}

static void put(har_store *store, const char *key, const char *kind, const char *entry,
                enum har_outcome outcome, int step)
{
    static struct orc_verdict verdicts[ORC_CHECK_COUNT];
    struct har_error error = {{0}};
    memset(verdicts, 0, sizeof verdicts);
    if (outcome == HAR_OUTCOME_detected) {
        verdicts[ORC_CHECK_loss] = (struct orc_verdict){
            .applicable = true, .fired = true, .step = step, .worst = HUGE_VAL, .compared = 3};
    }
    const struct har_run_record run = {.role = "subject",
                                       .command = "x",
                                       .log = "y",
                                       .end = {.end = HAR_END_done, .seconds = 0.5}};
    const struct har_case_record record = {
        .key = key,
        .kind = kind,
        .entry = entry,
        .recipe = "pico",
        .seed = 1,
        .outcome = strcmp(kind, "alarm") == 0 ? "quiet" : har_outcome_name(outcome),
        .first_check = outcome == HAR_OUTCOME_detected ? "loss" : "",
        .detail = "why",
        .reproduce = "how",
        .reached = 1,
        .infected = 1,
        .detected = step,
        .runs = &run,
        .run_count = 1,
        .verdicts = verdicts};
    cr_assert_eq(har_store_put_case(store, &record, &error), HAR_OK, "%s", error.text);
}

static void put_plan(har_store *store)
{
    static const struct har_entry_record entries[] = {
        {"a.x", "a.x", "loss", "loss", "KILL", "pico", "fifo", "single", "", 1, (double)NAN, 16, 0},
        {"b.y:0.5", "b.y", "stream", "order", "KILL", "pico", "pct", "single", "", 2, 0.5, 16, 1},
        {"c.z", "c.z", "loss", "loss", "KILL", "", "fifo", "single", "no recipe", 3, (double)NAN, 0,
         2},
        {"d.w", "d.w", "loss", "loss", "EQUIVALENT", "pico", "fifo", "single", "", 4, (double)NAN,
         16, 3},
    };
    struct har_error error = {{0}};
    cr_assert_eq(har_store_put_plan(store, entries, 4, &error), HAR_OK, "%s", error.text);
}

Test(har_store, what_is_put_is_found_by_the_next_harness)
{
    struct har_error error = {{0}};
    har_store *store = open_store();
    put(store, "k1", "fault", "a.x", HAR_OUTCOME_missed, 0);
    cr_assert_eq(har_store_put_text(store, "plan_hash", "abc", &error), HAR_OK);
    har_store_close(store);
    store = open_store();
    bool found = false;
    char *text = NULL;
    cr_assert_eq(har_store_find_case(store, "k1", &found, &text, &error), HAR_OK);
    cr_expect(found);
    cr_expect_str_eq(text, "missed");
    free(text);
    cr_assert_eq(har_store_find_case(store, "k2", &found, NULL, &error), HAR_OK);
    cr_expect_not(found);
    cr_assert_eq(har_store_get_text(store, "plan_hash", &text, &error), HAR_OK);
    cr_expect_str_eq(text, "abc");
    free(text);
    cr_assert_eq(har_store_get_text(store, "nothing", &text, &error), HAR_OK);
    cr_expect_null(text);
    double seconds = 0.0;
    cr_assert_eq(har_store_longest_run(store, "pico", "subject", &seconds, &error), HAR_OK);
    cr_expect_eq(seconds, 0.5);
    size_t count = 0;
    cr_assert_eq(har_store_count_runs(store, "pico", "fault/subject", &count, &error), HAR_OK);
    cr_expect_eq(count, 1);
    cr_assert_eq(har_store_count_runs(store, "pico", "alarm/subject", &count, &error), HAR_OK);
    cr_expect_eq(count, 0);
    cr_assert_eq(har_store_longest_run(store, "other", "subject", &seconds, &error), HAR_OK);
    cr_expect_eq(seconds, 0.0);
    har_store_close(store);
}

Test(har_store, a_folder_has_one_harness_at_a_time)
{
    har_store *first = open_store();
    har_store *second = NULL;
    struct har_error error = {{0}};
    cr_expect_eq(har_store_create(folder, &second, &error), HAR_EUSAGE);
    cr_expect_not_null(strstr(error.text, "another"));
    har_store_close(first);
    second = open_store();
    har_store_close(second);
}

Test(har_store, a_killed_harness_leaves_its_finished_cases)
{
    const pid_t child = fork();
    if (child == 0) {
        har_store *const store = open_store();
        put_plan(store);
        put(store, "k1", "fault", "a.x", HAR_OUTCOME_detected, 2);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
    har_store *const store = open_store();
    struct har_error error = {{0}};
    bool found = false;
    cr_assert_eq(har_store_find_case(store, "k1", &found, NULL, &error), HAR_OK);
    cr_expect(found);
    har_store_close(store);
}

Test(har_store, no_folder_and_no_database_are_named)
{
    har_store *store = NULL;
    struct har_error error = {{0}};
    cr_expect_eq(har_store_open(folder, &store, &error), HAR_EUSAGE);
    cr_expect_not_null(strstr(error.text, "results.sqlite"));
    cr_expect_eq(har_store_create("/proc/none/here", &store, &error), HAR_EIO);
}

Test(har_store, results_join_repeats_and_count)
{
    har_store *const store = open_store();
    struct har_results results;
    struct har_error error = {{0}};
    put_plan(store);
    put(store, "f1", "fault", "a.x", HAR_OUTCOME_detected, 4);
    put(store, "f2", "fault", "a.x", HAR_OUTCOME_detected, 2);
    put(store, "f3", "fault", "b.y:0.5", HAR_OUTCOME_detected, 3);
    put(store, "f4", "fault", "b.y:0.5", HAR_OUTCOME_missed, 0);
    put(store, "f5", "fault", "d.w", HAR_OUTCOME_not_infected, 0);
    put(store, "h1", "alarm", "none", HAR_OUTCOME_missed, 0);
    cr_assert_eq(har_results_load(store, &results, &error), HAR_OK, "%s", error.text);
    cr_assert_eq(results.count, 4);
    const struct har_summary *const s = &results.summary;
    cr_expect_eq(results.entries[0].outcome, HAR_OUTCOME_detected);
    cr_expect_eq(results.entries[0].detected, 3, "the median of 2 and 4");
    cr_expect_eq(results.entries[0].check_steps[ORC_CHECK_loss], 3);
    cr_expect_eq(results.entries[1].outcome, HAR_OUTCOME_flaky);
    cr_expect_eq(results.entries[1].detected_repeats, 1);
    cr_expect_eq(results.entries[1].check_steps[ORC_CHECK_loss], 0, "not in every repeat");
    cr_expect_eq(results.entries[2].outcome, HAR_OUTCOME_not_reached);
    cr_expect_eq(s->kill, 3);
    cr_expect_eq(s->equivalent, 1);
    cr_expect_eq(s->rate_below, 2);
    cr_expect_eq(s->rate, 0.5);
    cr_expect_eq(s->alone[ORC_CHECK_loss], 1);
    cr_expect_eq(s->healthy_runs, 1);
    cr_expect_eq(s->false_alarms, 0);
    cr_expect(isinf(s->median_steps), "half of the faults are beyond the horizon");
    cr_expect_eq(har_results_status(&results), HAR_OK);
    har_results_fini(&results);
    har_store_close(store);
}

static void count_text(void *context, int columns, char **values)
{
    size_t *const seen = context;
    for (int i = 0; i < columns; i++) {
        *seen += values[i] != NULL;
    }
}

Test(har_store, times_of_all_sessions_are_added)
{
    har_store *const store = open_store();
    struct har_results results;
    struct har_error error = {{0}};
    struct har_spent spent = {.cases = 30.0};
    spent.work_s[HAR_WORK_trainer] = 3.0;
    spent.work_s[HAR_WORK_idle] = 1.0;
    har_spent_stage(&spent, HAR_STAGE_plan, 2.0);
    har_spent_stage(&spent, HAR_STAGE_faults, 22.0);
    put_plan(store);
    cr_assert_eq(har_store_add_session(store, "then", 25.0, &spent, &error), HAR_OK, "%s",
                 error.text);
    cr_assert_eq(har_store_add_session(store, "now", 5.0, &spent, &error), HAR_OK);
    cr_assert_eq(har_results_load(store, &results, &error), HAR_OK, "%s", error.text);
    cr_expect_eq(results.summary.seconds, 30.0);
    cr_expect_eq(results.summary.spent.work_s[HAR_WORK_trainer], 6.0);
    cr_expect_eq(results.summary.spent.stage_s[HAR_STAGE_plan], 4.0);
    cr_expect_geq(results.summary.spent.stage_busy_s[HAR_STAGE_plan], 6.0, "the trainer's");
    cr_expect_lt(results.summary.spent.stage_busy_s[HAR_STAGE_faults], 6.0, "counted once");
    cr_expect_eq(har_spent_percent(&results.summary.spent, HAR_WORK_trainer), 75.0);
    cr_expect_eq(har_spent_per_minute(&results.summary.spent), 90.0);
    har_results_fini(&results);
    har_store_close(store);
}

Test(har_store, after_a_first_verdict_only_that_check_is_known)
{
    har_store *const store = open_store();
    struct har_results results;
    struct har_error error = {{0}};
    size_t seen = 0;
    put_plan(store);
    put(store, "f1", "fault", "a.x", HAR_OUTCOME_detected, 4);
    cr_assert_eq(har_store_query(store,
                                 "UPDATE verdicts SET applicable = 1, fired = 1, step = 9 WHERE "
                                 "check_name = 'curve'",
                                 count_text, &seen, &error),
                 HAR_OK, "%s", error.text);
    for (int stopped = 0; stopped < 2; stopped++) {
        cr_assert_eq(har_store_put_text(store, "stop", stopped ? "first verdict" : "", &error),
                     HAR_OK);
        cr_assert_eq(har_results_load(store, &results, &error), HAR_OK, "%s", error.text);
        cr_expect_eq(har_results_first_verdict(&results), stopped);
        cr_expect_eq(results.entries[0].check_steps[ORC_CHECK_loss], 4);
        cr_expect_eq(results.entries[0].check_steps[ORC_CHECK_curve], stopped ? 0 : 9);
        cr_expect_eq(results.cut, 1, "its losses are not stored");
        har_results_fini(&results);
    }
    har_store_close(store);
}

Test(har_store, a_planned_case_that_is_missing_has_no_verdict)
{
    har_store *const store = open_store();
    struct har_results results;
    struct har_error error = {{0}};
    put_plan(store);
    cr_assert_eq(har_results_load(store, &results, &error), HAR_OK);
    cr_expect_eq(results.entries[0].outcome, HAR_OUTCOME_no_verdict);
    cr_expect_eq(results.summary.missing, 2);
    cr_expect_eq(har_results_status(&results), HAR_EINCOMPLETE);
    har_results_fini(&results);
    har_store_close(store);
}

Test(har_store, a_missing_value_is_an_empty_text)
{
    har_store *const store = open_store();
    struct har_error error = {{0}};
    size_t seen = 0;
    cr_expect_eq(har_store_query(store, "SELECT NULL, 1, NULL", count_text, &seen, &error), HAR_OK);
    cr_expect_eq(seen, 3);
    har_store_close(store);
}
