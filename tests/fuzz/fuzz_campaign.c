/* Reader of campaigns and of the command line that may change them: a refusal says why, one of the
 * file names it; what is accepted is in range. The input is a file; the words of a first line
 * "# run WORD ..." are a command line. Called by libFuzzer and replay_main.c. */
#include <string.h>

#include "fuzz.h"
#include "har_campaign.h"
#include "har_yaml.h"
#include "orc_check.h"

enum { WORDS_MAX = 24, LINE_MAX_BYTES = 400 };

static void check_file_error(const char *text, const char *path)
{
    fuzz_require(strncmp(text, path, strlen(path)) == 0);
    fuzz_require(strlen(text) > strlen(path) + 2);
}

/* ---- the command line */

/* The words of the first line into argv, which point into `line`; 0 when it gives none. */
static int read_words(const uint8_t *data, size_t size, char line[LINE_MAX_BYTES],
                      char *argv[WORDS_MAX + 1])
{
    static const char mark[] = "# run";
    char *rest = NULL;
    int count = 0;
    const uint8_t *const end = memchr(data, '\n', size);
    const size_t length = end == NULL ? size : (size_t)(end - data);
    if (length >= LINE_MAX_BYTES || length < sizeof mark || memchr(data, '\0', length) != NULL ||
        memcmp(data, mark, sizeof mark - 1) != 0) {
        return 0;
    }
    memcpy(line, data, length);
    line[length] = '\0';
    for (char *word = strtok_r(line + 2, " ", &rest); word != NULL && count < WORDS_MAX;
         word = strtok_r(NULL, " ", &rest)) {
        argv[count++] = word;
    }
    argv[count] = NULL;
    return count;
}

/* Options of the words, or of none where they are refused. */
static void read_options(int count, char **argv, struct har_options *out)
{
    static const char command[] = "run";
    char *alone[] = {(char *)(uintptr_t)command, NULL};
    struct har_error error = {""};
    if (count > 0 && har_options_parse(HAR_SUBCOMMAND_run, count, argv, out, &error) == HAR_OK) {
        return;
    }
    fuzz_require(count == 0 || error.text[0] != '\0');
    fuzz_require(har_options_parse(HAR_SUBCOMMAND_run, 1, alone, out, &error) == HAR_OK);
}

/* ---- what was accepted */

static void check_ranges(const struct har_campaign *c)
{
    fuzz_require(c->repeats >= 1 && c->repeats < HAR_SEED_BLOCK);
    fuzz_require(c->calibration >= 3 && c->calibration < HAR_SEED_BLOCK);
    fuzz_require(c->false_alarms >= 0 && c->false_alarms < HAR_SEED_BLOCK);
    fuzz_require(c->horizon >= 0 && c->jobs >= 0 && c->memory_mb >= 0);
    fuzz_require(c->timeout_factor >= 2 && c->timeout_min_s >= 1);
    fuzz_require(c->reference_timeout_s >= 1 && c->external_timeout_s >= 1);
    fuzz_require(c->shard >= 0 && c->shard <= c->shards);
    fuzz_require(c->dose_count <= HAR_DOSES_ASKED_MAX);
    for (size_t i = 0; i < c->dose_count; i++) {
        fuzz_require(c->doses[i] >= 0.0f);
    }
    for (size_t i = 0; i < c->check_count; i++) {
        enum orc_check_id id;
        fuzz_require(orc_check_find(c->checks[i], &id));
    }
    fuzz_require(!har_campaign_is_own(c) || c->horizon > 0);
    fuzz_require(strcmp(har_mode_name(c->mode), "?") != 0);
}

static void check_names(const struct har_campaign *c)
{
    bool family = false;
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        enum har_schedule found = HAR_SCHEDULE_COUNT;
        fuzz_require(har_schedule_find(har_schedule_name(c->schedules[i]), &found));
        fuzz_require(found == c->schedules[i]);
        family = family || c->families[i];
    }
    fuzz_require(family);
    fuzz_require(c->recipe_count > 0 && c->fault_count > 0);
    for (size_t i = 0; i < c->recipe_count; i++) {
        fuzz_require(c->recipes[i][0] != '\0');
    }
    for (size_t i = 0; i < c->fault_count; i++) {
        fuzz_require(c->faults[i] != NULL);
    }
}

/* Seeds of the three kinds of runs rise in this order, so that no two share one. */
static void check_seeds(const struct har_campaign *c)
{
    const size_t last = c->recipe_count - 1;
    fuzz_require(har_campaign_fault_seed(c, c->repeats - 1) <
                 har_campaign_calibration_seed(c, 0, 0));
    fuzz_require(har_campaign_calibration_seed(c, last, c->calibration - 1) <
                 har_campaign_alarm_seed(c, 0, 0));
    for (size_t i = 1; i < c->recipe_count; i++) {
        fuzz_require(har_campaign_calibration_seed(c, i - 1, c->calibration - 1) <
                     har_campaign_calibration_seed(c, i, 0));
    }
}

static void check_of_recipe(const char *path)
{
    struct har_campaign c;
    struct har_error error = {""};
    fuzz_require(har_campaign_of_recipe(path, &c, &error) == HAR_OK);
    fuzz_require(c.recipe_count == 1 && strcmp(c.recipes[0], path) == 0);
    check_ranges(&c);
    check_names(&c);
    har_campaign_fini(&c);
}

/* ---- values one by one */

static enum har_status count_value(void *context, const char *value, struct har_error *error)
{
    size_t *const count = context;
    (void)error;
    fuzz_require(value != NULL);
    ++*count;
    return HAR_OK;
}

/* Each recipe and the name are values of the file. */
static void check_values(const char *path, const struct har_campaign *campaign)
{
    struct har_error error = {""};
    size_t count = 0;
    if (har_yaml_each_value(path, count_value, &count, &error) != HAR_OK) {
        check_file_error(error.text, path);
    } else if (campaign != NULL) {
        fuzz_require(count > campaign->recipe_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[LINE_MAX_BYTES];
    char *argv[WORDS_MAX + 1];
    struct har_options options;
    struct fuzz_file file = fuzz_file_open(data, size);
    struct har_campaign campaign = {0};
    struct har_error error = {""};
    read_options(size == 0 ? 0 : read_words(data, size, line, argv), argv, &options);
    enum har_status status = har_campaign_load(file.path, &campaign, &error);
    if (status == HAR_OK) {
        check_names(&campaign);
        check_values(file.path, &campaign);
        check_of_recipe(campaign.recipes[0]);
        status = har_campaign_apply(&campaign, &options, &error);
        fuzz_require(status == HAR_OK || status == HAR_EUSAGE);
        fuzz_require((status == HAR_OK) == (error.text[0] == '\0'));
    } else {
        fuzz_require(status == HAR_EUSAGE);
        check_file_error(error.text, file.path);
        check_values(file.path, NULL);
    }
    if (status == HAR_OK) {
        check_ranges(&campaign);
        check_names(&campaign);
        check_seeds(&campaign);
    }
    har_campaign_fini(&campaign);
    fuzz_file_close(&file);
    return 0;
}
