/* Tests of commands of the user: words and files, and what an oracle answered. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "har_external.h"
#include "har_hash.h"
#include "har_user.h"

enum { LAST_STEP = 16 };

static const struct har_exit quiet = {.end = HAR_END_done, .code = 0};
static const struct har_exit fires = {.end = HAR_END_crashed, .code = 2};

static void write_file(const char *path, const char *text)
{
    FILE *const file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static struct orc_verdict answer(const struct har_exit *end, const char *text)
{
    char path[] = "/tmp/har_external_XXXXXX";
    struct orc_verdict verdict;
    struct har_error error;
    close(mkstemp(path));
    write_file(path, text);
    cr_assert_eq(har_external_read(end, path, LAST_STEP, &verdict, &error), HAR_OK);
    unlink(path);
    return verdict;
}

Test(har_external, an_alarm_has_a_step_and_a_message)
{
    struct orc_verdict v = answer(&fires, "looking at step 1\n"
                                          "{\"step\": 3, \"message\": \"too\\nlarge\"}\n"
                                          "a line after it\n");
    cr_expect(v.applicable && v.fired);
    cr_expect_eq(v.step, 3);
    cr_expect_eq(v.compared, 1);
    cr_expect_str_eq(v.detail, "too large");
    v = answer(&fires, "{\"step\": 1, \"message\": \"old\"}\n"
                       "{\"step\": 16, \"message\": \"new\", \"compared\": 40}");
    cr_expect_eq(v.step, LAST_STEP);
    cr_expect_eq(v.compared, 40);
    cr_expect_str_eq(v.detail, "new");
}

Test(har_external, silence_is_a_pass_and_needs_no_words)
{
    const char *const texts[] = {"", "nothing found\n", "{\"compared\": 7}\n",
                                 "{\"step\": 99, \"other\": [1]}\n",
                                 "{\"step\": 3, \"message\": \"m\"}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct orc_verdict v = answer(&quiet, texts[i]);
        cr_expect(v.applicable, "%s: %s", texts[i], v.detail);
        cr_expect_not(v.fired);
        cr_expect_eq(v.step, 0);
        cr_expect_gt(v.compared, 0);
    }
}

Test(har_external, what_breaks_the_protocol_is_no_verdict_and_says_why)
{
    static const struct har_exit killed = {.end = HAR_END_no_verdict, .code = -1, .signal = 9};
    static const struct har_exit late = {.end = HAR_END_timed_out, .code = -1, .signal = 9};
    static const struct har_exit half_killed = {.end = HAR_END_crashed, .code = 2, .signal = 9};
    static const struct har_exit shell_killed = {.end = HAR_END_crashed, .code = 137};
    static const char good[] = "{\"step\": 3, \"message\": \"m\"}";
    const struct {
        const struct har_exit *end;
        const char *text, *why;
    } rows[] = {
        {&killed, good, "signal 9"},
        {&late, good, "past its time"},
        {&shell_killed, good, "code 137"},
        {&half_killed, good, "signal 9"},
        {&fires, "", "without a line of JSON"},
        {&fires, "step 3\n", "without a line of JSON"},
        {&fires, "{\"step\": 3, \"message\": \"m\"", "no JSON"},
        {&fires, "{garbage}\n", "no JSON"},
        {&fires, "{\"step\": 3, \"step\": 3, \"message\": \"m\"}", "no JSON"},
        {&fires, "{\"message\": \"m\"}", "\"step\""},
        {&fires, "{\"step\": 0, \"message\": \"m\"}", "\"step\""},
        {&fires, "{\"step\": 17, \"message\": \"m\"}", "\"step\""},
        {&fires, "{\"step\": \"3\", \"message\": \"m\"}", "\"step\""},
        {&fires, "{\"step\": 3}", "\"message\""},
        {&fires, "{\"step\": 3, \"message\": 4}", "\"message\""},
        {&fires, "{\"step\": 3, \"message\": \"m\", \"compared\": 0}", "compared nothing"},
        {&quiet, "{\"compared\": 0}", "compared nothing"},
        {&quiet, "{\"compared\": -1}", "no count"},
        {&quiet, "{\"compared\": 1.5}", "no count"},
        {&quiet, "{broken", "no JSON"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct orc_verdict v = answer(rows[i].end, rows[i].text);
        cr_expect_not(v.applicable, "%s", rows[i].text);
        cr_expect_not(v.fired);
        cr_expect_not_null(strstr(v.detail, rows[i].why), "%s: %s", rows[i].text, v.detail);
    }
}

Test(har_external, an_answer_that_is_gone_is_an_alarm_without_words)
{
    struct orc_verdict verdict;
    struct har_error error;
    cr_assert_eq(har_external_read(&fires, "/nowhere/at/all", LAST_STEP, &verdict, &error), HAR_OK);
    cr_expect_not(verdict.applicable);
}

Test(har_external, only_traces_that_are_there_are_given)
{
    struct har_args args = {0};
    har_external_add(&args, "subject", "a.jsonl");
    har_external_add(&args, "reference", NULL);
    har_external_add(&args, "repeat", "b.jsonl");
    cr_assert_eq(args.count, 4);
    cr_expect_str_eq(args.items[0], "--subject");
    cr_expect_str_eq(args.items[2], "--repeat");
    cr_expect_str_eq(args.items[3], "b.jsonl");
    har_args_fini(&args);
}

Test(har_external, words_that_name_files_beside_the_campaign_stand_for_them)
{
    char dir[] = "/tmp/har_external_XXXXXX";
    char base[PATH_MAX];
    char script[PATH_MAX];
    struct har_error error;
    struct har_user user;
    cr_assert_not_null(mkdtemp(dir));
    snprintf(base, sizeof base, "%s/campaign.yaml", dir);
    snprintf(script, sizeof script, "%s/judge", dir);
    write_file(script, "#!/bin/sh\n");
    cr_assert_eq(har_user_parse("sh judge --level 'a b' \"it's\" x\\ y", base, "k", &user, &error),
                 HAR_OK, "%s", error.text);
    cr_assert_eq(user.words.count, 6);
    cr_expect_eq(user.words.items[0][0], '/');
    cr_expect_str_eq(user.words.items[1], script);
    cr_expect_str_eq(user.words.items[2], "--level");
    cr_expect_str_eq(user.words.items[3], "a b");
    cr_expect_str_eq(user.words.items[4], "it's");
    cr_expect_str_eq(user.words.items[5], "x y");

    uint64_t before = HAR_HASH_START;
    uint64_t after = HAR_HASH_START;
    cr_expect_eq(har_user_hash(&user, &before, &error), HAR_OK);
    write_file(script, "#!/bin/sh\nexit 2\n");
    cr_expect_eq(har_user_hash(&user, &after, &error), HAR_OK);
    cr_expect_neq(before, after, "an edited oracle is another plan");
    har_user_fini(&user);

    cr_expect_eq(har_user_parse("judge", base, "k", &user, &error), HAR_EUSAGE, "not executable");
    cr_assert_eq(chmod(script, 0755), 0);
    cr_assert_eq(har_user_parse("judge", base, "k", &user, &error), HAR_OK, "%s", error.text);
    cr_expect_str_eq(user.words.items[0], script);
    har_user_fini(&user);
    unlink(script);
    rmdir(dir);
}

Test(har_external, a_command_without_a_program_is_an_error_that_names_it)
{
    const char *const bad[] = {"", "  ", "'open", "no-such-program-anywhere x", "/no/such/file"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct har_user user;
        struct har_error error = {""};
        cr_expect_eq(har_user_parse(bad[i], NULL, "the key", &user, &error), HAR_EUSAGE, "%s",
                     bad[i]);
        cr_expect_not_null(strstr(error.text, "the key"), "%s", error.text);
        cr_expect_eq(user.words.count, 0);
    }
}
