/* Tests of campaign files and the command line: what is refused, and what the sentence says. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_campaign.h"
#include "har_recipe.h"

static void write_file(char *path, const char *text)
{
    const int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* Loads a campaign of this text and applies these options; the error text is left in error. */
static enum har_status load(const char *text, const struct har_options *options,
                            struct har_campaign *campaign, struct har_error *error)
{
    char path[] = "/tmp/har_campaign_XXXXXX";
    write_file(path, text);
    enum har_status status = har_campaign_load(path, campaign, error);
    if (status == HAR_OK) {
        status = har_campaign_apply(campaign, options, error);
        if (status != HAR_OK) {
            har_campaign_fini(campaign);
        }
    }
    unlink(path);
    return status;
}

static struct har_options no_options(void)
{
    struct har_options options;
    struct har_error error;
    char *argv[] = {(char *)"run", NULL};
    cr_assert_eq(har_options_parse(HAR_SUBCOMMAND_run, 1, argv, &options, &error), HAR_OK);
    return options;
}

struct bad_campaign {
    const char *text;
    const char *says[3]; /* parts of the sentence */
};

static const struct bad_campaign bad_campaigns[] = {
    {"name: x\nrecipes: [a.yaml]\n\nrepeets: 3\n", {":4:", "unknown key", "repeets"}},
    {"name: x\nrecipes: [a.yaml]\nrepeats: many\n", {":3:", "repeats", "many"}},
    {"recipes: [a.yaml]\n", {":1:", "name", NULL}},
    {"name: x\nrecipes: [a.yaml\n", {":", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nschedules:\n  - {family: stream, schedul: pct}\n",
     {":4:", "schedul", NULL}},
    {"name: x\nrecipes: [a.yaml]\nschedules: [{family: streams, schedule: pct}]\n",
     {"streams", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nschedules: [{family: stream, schedule: random}]\n",
     {"random", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nfamilies: [numerik]\n", {"numerik", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nchecks: [losss]\n", {"losss", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\ndoses: [tiny]\n", {"doses: 'tiny'", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\ndoses: [0.1x]\n", {"doses: '0.1x'", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nrepeats: 0\n", {"repeats", "[1, 999]", NULL}},
    {"name: x\nrecipes: [a.yaml]\ncalibration: 1\n", {"calibration", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nmode: lock\n", {"mode", "lock", "free, lockstep"}},
    {"name: x\nrecipes: [a.yaml]\nplanted: no.fault\n", {"planted", "no.fault", NULL}},
    {"name: x\nrecipes: [a.yaml]\nexternal: no-such-oracle --strict\n",
     {"external", "no-such-oracle", NULL}},
    {"name: x\nrecipes: [a.yaml]\nexternal: \"'open\"\n", {"external", "no command", NULL}},
    {"name: x\nrecipes: [a.yaml]\nchecks: [external]\n", {"external", "needs a command", NULL}},
    {"name: x\nrecipes: [a.yaml]\ntrainer: no-such-trainer\nhorizon: 3\n",
     {"trainer", "no-such-trainer", NULL}},
    {"name: x\nrecipes: [a.yaml]\nreference: no-such-trainer\n",
     {"reference", "no-such-trainer", NULL}},
    {"name: x\nrecipes: [a.yaml]\ntrainer: sh\n", {"horizon", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nmode: lockstep\nreference: none\n", {"lockstep", NULL, NULL}},
    {"name: x\nrecipes: [a.yaml]\nexternal: sh\nexternal_timeout: 0\n",
     {"external_timeout", NULL, NULL}},
};

Test(har_campaign, every_mistake_is_named)
{
    const struct har_options options = no_options();
    size_t compared = 0;
    for (size_t i = 0; i < sizeof bad_campaigns / sizeof bad_campaigns[0]; i++) {
        struct har_campaign campaign;
        struct har_error error = {{0}};
        cr_expect_eq(load(bad_campaigns[i].text, &options, &campaign, &error), HAR_EUSAGE, "%s",
                     bad_campaigns[i].text);
        for (size_t k = 0; k < 3 && bad_campaigns[i].says[k] != NULL; k++) {
            cr_expect_not_null(strstr(error.text, bad_campaigns[i].says[k]), "'%s' lacks '%s'",
                               error.text, bad_campaigns[i].says[k]);
            compared++;
        }
    }
    cr_assert_gt(compared, 0);
}

Test(har_campaign, a_missing_file_is_named)
{
    struct har_campaign campaign;
    struct har_error error = {{0}};
    cr_expect_eq(har_campaign_load("/nonexistent/c.yaml", &campaign, &error), HAR_EUSAGE);
    cr_expect_not_null(strstr(error.text, "/nonexistent/c.yaml"));
}

static const char whole[] = "name: x\nrecipes: [a.yaml, /b.yaml]\nfaults: ['adamw_*']\nrepeats: 4\n"
                            "seed: 7\ndoses: [largest]\nfamilies: [stream, host]\n"
                            "schedules: [{family: stream, schedule: lazy}]\n";

Test(har_campaign, own_commands_say_who_makes_the_reference)
{
    static const struct {
        const char *text;
        enum har_reference_kind reference;
        bool own;
    } rows[] = {
        {"", HAR_REFERENCE_faultline, false},
        {"reference: none\n", HAR_REFERENCE_none, false},
        {"reference: sh second\n", HAR_REFERENCE_command, false},
        {"trainer: sh mine\nhorizon: 3\n", HAR_REFERENCE_none, true},
        {"trainer: sh mine\nhorizon: 3\nreference: sh second\n", HAR_REFERENCE_command, true},
        {"trainer: sh mine\nreference: faultline-ref\nplanted: mine.too\n", HAR_REFERENCE_faultline,
         false},
    };
    const struct har_options options = no_options();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        struct har_campaign c;
        struct har_error error = {{0}};
        snprintf(text, sizeof text, "name: x\nrecipes: [a.yaml]\n%s", rows[i].text);
        cr_assert_eq(load(text, &options, &c, &error), HAR_OK, "%s: %s", rows[i].text, error.text);
        cr_expect_eq(c.reference, rows[i].reference, "%s", rows[i].text);
        cr_expect_eq(har_campaign_is_own(&c), rows[i].own, "%s", rows[i].text);
        cr_expect_eq(c.second.words.count, rows[i].reference == HAR_REFERENCE_command ? 2 : 0);
        har_campaign_fini(&c);
    }
}

Test(har_campaign, values_arrive_and_paths_are_relative_to_the_file)
{
    const struct har_options options = no_options();
    struct har_campaign c;
    struct har_error error = {{0}};
    cr_assert_eq(load(whole, &options, &c, &error), HAR_OK, "%s", error.text);
    cr_expect_str_eq(c.recipes[0], "/tmp/a.yaml");
    cr_expect_str_eq(c.recipes[1], "/b.yaml");
    cr_expect_eq(c.repeats, 4);
    cr_expect_eq(c.seed, 7);
    cr_expect(c.dose_largest && !c.dose_usual && !c.dose_smallest);
    cr_expect(c.families[MUT_FAMILY_HOST] && !c.families[MUT_FAMILY_LOSS]);
    cr_expect_eq(c.schedules[MUT_FAMILY_STREAM], HAR_SCHEDULE_lazy);
    cr_expect_eq(c.schedules[MUT_FAMILY_HOST], HAR_SCHEDULE_fifo);
    cr_expect_eq(c.mode, HAR_MODE_free);
    har_campaign_fini(&c);
    cr_assert_eq(load("name: x\nrecipes: [a.yaml]\nmode: lockstep\n", &options, &c, &error), HAR_OK,
                 "%s", error.text);
    cr_expect_eq(c.mode, HAR_MODE_lockstep);
    har_campaign_fini(&c);
}

Test(har_campaign, the_command_line_wins)
{
    struct har_options options;
    struct har_campaign c;
    struct har_error error = {{0}};
    char *argv[] = {(char *)"run",       (char *)"--repeats",  (char *)"2",
                    (char *)"--seed=11", (char *)"-F",         (char *)"loss_*",
                    (char *)"--family",  (char *)"loss",       (char *)"-j3",
                    (char *)"--checks",  (char *)"loss,curve", (char *)"--mode",
                    (char *)"lockstep"};
    cr_assert_eq(har_options_parse(HAR_SUBCOMMAND_run, 13, argv, &options, &error), HAR_OK, "%s",
                 error.text);
    cr_assert_eq(load(whole, &options, &c, &error), HAR_OK, "%s", error.text);
    cr_expect_eq(c.repeats, 2);
    cr_expect_eq(c.seed, 11);
    cr_expect_eq(c.jobs, 3);
    cr_expect_eq(c.mode, HAR_MODE_lockstep);
    cr_expect_str_eq(c.faults[0], "loss_*");
    cr_expect(c.families[MUT_FAMILY_LOSS] && !c.families[MUT_FAMILY_HOST]);
    cr_expect_eq(c.check_count, 2);
    har_campaign_fini(&c);
}

Test(har_campaign, seeds_of_the_three_kinds_never_meet)
{
    const struct har_campaign c = {.seed = 5};
    const size_t last = HAR_SEED_GAP / HAR_SEED_BLOCK - 2;
    cr_expect_lt(har_campaign_fault_seed(&c, HAR_SEED_BLOCK - 1),
                 har_campaign_calibration_seed(&c, 0, 0));
    cr_expect_lt(har_campaign_calibration_seed(&c, 3, HAR_SEED_BLOCK - 2),
                 har_campaign_calibration_seed(&c, 4, 0));
    cr_expect_lt(har_campaign_calibration_seed(&c, last, HAR_SEED_BLOCK - 1),
                 har_campaign_alarm_seed(&c, 0, 0));
}

Test(har_campaign, doses_are_words_and_numbers_in_the_file_as_on_the_command_line)
{
    struct har_options options = no_options();
    struct har_campaign c;
    struct har_error error = {{0}};
    const char *const text = "name: x\nrecipes: [a.yaml]\ndoses: [smallest, 0.03, 10]\n";
    cr_assert_eq(load(text, &options, &c, &error), HAR_OK, "%s", error.text);
    cr_expect(c.dose_smallest && !c.dose_usual && !c.dose_largest);
    cr_assert_eq(c.dose_count, 2);
    cr_expect_eq(c.doses[0], 0.03f);
    cr_expect_eq(c.doses[1], 10.0f);
    har_campaign_fini(&c);
    options.doses = "usual,3";
    cr_assert_eq(load(text, &options, &c, &error), HAR_OK, "%s", error.text);
    cr_expect(c.dose_usual && !c.dose_smallest, "the command line wins");
    cr_assert_eq(c.dose_count, 1);
    cr_expect_eq(c.doses[0], 3.0f);
    har_campaign_fini(&c);
}

static void expect_refused(enum har_subcommand command, int argc, const char *const *words,
                           const char *says)
{
    char *argv[8];
    struct har_options options;
    struct har_error error = {{0}};
    for (int i = 0; i < argc; i++) {
        argv[i] = (char *)words[i];
    }
    cr_expect_eq(har_options_parse(command, argc, argv, &options, &error), HAR_EUSAGE, "%s", says);
    cr_expect_not_null(strstr(error.text, says), "'%s' lacks '%s'", error.text, says);
}

Test(har_options, wrong_command_lines_are_named)
{
    expect_refused(HAR_SUBCOMMAND_run, 2, (const char *const[]){"run", "--bogus"}, "--bogus");
    expect_refused(HAR_SUBCOMMAND_run, 2, (const char *const[]){"run", "--out"}, "--out");
    expect_refused(HAR_SUBCOMMAND_run, 3, (const char *const[]){"run", "--repeats", "x"},
                   "repeats");
    expect_refused(HAR_SUBCOMMAND_run, 3, (const char *const[]){"run", "-j", "-2"}, "jobs");
    expect_refused(HAR_SUBCOMMAND_run, 2, (const char *const[]){"run", "word"}, "word");
    expect_refused(HAR_SUBCOMMAND_explain, 1, (const char *const[]){"explain"}, "FAULT");
    expect_refused(HAR_SUBCOMMAND_diff, 2, (const char *const[]){"diff", "a"}, "TRACE");
    expect_refused(HAR_SUBCOMMAND_gate, 3, (const char *const[]){"gate", "--fail-under", "nan"},
                   "fail-under");
    expect_refused(HAR_SUBCOMMAND_gate, 3,
                   (const char *const[]){"gate", "--fail-under-family", "lost=3"}, "lost=3");
    expect_refused(HAR_SUBCOMMAND_list, 2, (const char *const[]){"list", "--repeats"}, "--repeats");
}

Test(har_options, family_limits_arrive)
{
    char *argv[] = {(char *)"gate", (char *)"--fail-under-family", (char *)"stream=80",
                    (char *)"--fail-under=90.5"};
    struct har_options options;
    struct har_error error = {{0}};
    cr_assert_eq(har_options_parse(HAR_SUBCOMMAND_gate, 4, argv, &options, &error), HAR_OK);
    cr_expect_eq(options.family_under[MUT_FAMILY_STREAM], 80.0);
    cr_expect_lt(options.family_under[MUT_FAMILY_LOSS], 0.0);
    cr_expect_eq(options.fail_under, 90.5);
}

static uint64_t hash_of(const char *recipe)
{
    struct har_recipe loaded;
    struct har_error error = {{0}};
    cr_assert_eq(har_recipe_load(recipe, &loaded, &error), HAR_OK, "%s", error.text);
    const uint64_t hash = loaded.inputs_hash;
    har_recipe_fini(&loaded);
    return hash;
}

static void put_text(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

/* Cached references are found by this hash: a file that changed must not find the old ones. */
Test(har_recipe, every_file_a_recipe_names_is_part_of_its_hash)
{
    static const char *const named[] = {"tokenizer.json", "train.jsonl", "eval.jsonl",
                                        "own.jinja",      "extra.json",  "r.yaml"};
    enum { NAMED = sizeof named / sizeof named[0] };
    char folder[] = "/tmp/har_recipe_XXXXXX";
    char recipe[64];
    cr_assert_not_null(mkdtemp(folder));
    for (int i = 0; i < NAMED - 1; i++) {
        put_text(folder, named[i], "before");
    }
    put_text(
        folder, "r.yaml",
        "name: r\nmodel: {layers: 1, width: 2, ffn: 3, context: 4, vocab: 5}\n"
        "text: {tokenizer: tokenizer.json, template: own.jinja, mask: all, extra: extra.json}\n"
        "data: {train: [train.jsonl], eval: [eval.jsonl]}\n"
        "train: {steps: 1, rows: 1, grad_accum: 1}\n");
    snprintf(recipe, sizeof recipe, "%s/r.yaml", folder);
    uint64_t before = hash_of(recipe);
    cr_expect_eq(hash_of(recipe), before);
    for (int i = 0; i < NAMED - 1; i++) {
        put_text(folder, named[i], "after");
        const uint64_t after = hash_of(recipe);
        cr_expect_neq(after, before, "%s", named[i]);
        before = after;
    }
    for (int i = 0; i < NAMED; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, named[i]);
        unlink(path);
    }
    rmdir(folder);
}

Test(har_recipe, the_resumed_run_starts_near_the_middle)
{
    cr_expect_eq(har_recipe_middle_checkpoint(8, 16), 8);
    cr_expect_eq(har_recipe_middle_checkpoint(8, 64), 32);
    cr_expect_eq(har_recipe_middle_checkpoint(10, 16), 10);
    cr_expect_eq(har_recipe_middle_checkpoint(16, 16), 0);
    cr_expect_eq(har_recipe_middle_checkpoint(0, 16), 0);
}
