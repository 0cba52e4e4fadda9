/* Replay: a stored command comes back word by word, and a race's sides are found in a timeline. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "har_replay.h"

Test(har_replay, a_command_line_is_split_into_the_words_it_was_made_of)
{
    static const char *const words[] = {
        "/bin/faultline-train", "--weights",   "a folder/w's file", "", "--fault",
        "norm_rstd.eps:1.1@3",  "back\\slash", "'quoted'"};
    enum { WORDS = sizeof words / sizeof words[0] };
    struct har_command command = {.timeout_s = 1.0};
    struct har_args back = {0};
    for (size_t i = 0; i < WORDS; i++) {
        har_args_add(&command.args, words[i]);
    }
    char *line = har_command_line(&command);
    cr_assert(har_args_split(line, &back), "%s", line);
    cr_assert_eq(back.count, WORDS, "%zu words from: %s", back.count, line);
    for (size_t i = 0; i < WORDS; i++) {
        cr_expect_str_eq(back.items[i], words[i]);
    }
    free(line);
    har_args_fini(&back);
    har_command_fini(&command);
}

Test(har_replay, a_line_that_is_no_command_is_refused)
{
    static const char *const lines[] = {"", "'open", "ends with \\"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct har_args args = {0};
        cr_expect_not(har_args_split(lines[i], &args), "%s", lines[i]);
        har_args_fini(&args);
    }
}

Test(har_replay, a_side_is_found_where_it_was_issued_and_where_it_ran)
{
    char copy[] = "copy";
    char host[] = "host";
    struct har_replay_moment moments[] = {
        {.ran = false, .op = 8, .stream = copy},
        {.ran = false, .op = 12, .stream = host},
        {.ran = true, .op = 8, .stream = copy},
    };
    const struct har_replay replay = {.moments = moments, .moment_count = 3};
    const struct har_replay_side on_copy = {.stream = copy, .op = 8};
    const struct har_replay_side on_host = {.stream = host, .op = 12};
    const struct har_replay_side absent = {.stream = copy, .op = 10};
    cr_expect_eq(har_replay_find(&replay, &on_copy).issued, 0);
    cr_expect_eq(har_replay_find(&replay, &on_copy).ran, 2);
    cr_expect_eq(har_replay_find(&replay, &on_host).ran, 1);
    cr_expect_eq(har_replay_find(&replay, &absent).ran, 3);
}
