/* Ranges of a campaign's values, and values that exclude each other.
 * Called by har_campaign.c; must not know where a value was given, but for the sentence. */
#include <unistd.h>

#include "har_campaign.h"
#include "orc_check.h"

static const char check_words[] =
#define ORC_ROW_(name, kind, text) " " #name
    ORC_CHECKS(ORC_ROW_);
#undef ORC_ROW_

/* A value is the option's when the command line gave it, else the file's; the sentence says whose.
 */
static enum har_status check_ranges(const struct har_campaign *c, const struct har_options *o,
                                    struct har_error *error)
{
    const struct {
        const char *key, *option; /* option NULL = none */
        bool given;               /* on the command line */
        int value, least, most;
    } ranges[] = {
        {"repeats", "--repeats", o->repeats >= 0, c->repeats, 1, HAR_SEED_BLOCK - 1},
        {"horizon", "--horizon", o->horizon >= 0, c->horizon, 0, 1000000},
        /* bounds need three runs */
        {"calibration", "--calibration", o->calibration >= 0, c->calibration, 3,
         HAR_SEED_BLOCK - 1},
        {"false_alarms", "--false-alarms", o->false_alarms >= 0, c->false_alarms, 0,
         HAR_SEED_BLOCK - 1},
        {"jobs", "--jobs", o->jobs >= 0, c->jobs, 0, 1024},
        {"timeout_factor", NULL, false, c->timeout_factor, 2, 1000},
        {"timeout_min", NULL, false, c->timeout_min_s, 1, 86400},
        {"reference_timeout", NULL, false, c->reference_timeout_s, 1, 7 * 86400},
        {"external_timeout", NULL, false, c->external_timeout_s, 1, 86400},
        {"memory_mb", NULL, false, c->memory_mb, 0, 1 << 24},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (ranges[i].value >= ranges[i].least && ranges[i].value <= ranges[i].most) {
            continue;
        }
        return har_fail(error, HAR_EUSAGE, "%s%s%s must lie in [%d, %d], not %d",
                        ranges[i].given ? "" : c->path, ranges[i].given ? "" : ": ",
                        ranges[i].given ? ranges[i].option : ranges[i].key, ranges[i].least,
                        ranges[i].most, ranges[i].value);
    }
    return HAR_OK;
}

enum har_status har_campaign_check(const struct har_campaign *c, const struct har_options *o,
                                   struct har_error *error)
{
    const enum har_status status = check_ranges(c, o, error);
    if (status != HAR_OK) {
        return status;
    }
    if (c->recipe_count >= HAR_SEED_GAP / HAR_SEED_BLOCK) {
        return har_fail(error, HAR_EUSAGE, "%s: more than %d recipes", c->path,
                        HAR_SEED_GAP / HAR_SEED_BLOCK - 1);
    }
    for (size_t i = 0; i < c->check_count; i++) {
        enum orc_check_id id;
        if (!orc_check_find(c->checks[i], &id)) {
            return har_fail(error, HAR_EUSAGE, "%s: unknown check '%s'; there are%s",
                            o->checks != NULL ? "--checks" : c->path, c->checks[i], check_words);
        }
        if (id == ORC_CHECK_external && c->external.words.count == 0) {
            return har_fail(error, HAR_EUSAGE,
                            "%s: check external needs a command: key external "
                            "or --external",
                            o->checks != NULL ? "--checks" : c->path);
        }
    }
    if (c->mode == HAR_MODE_lockstep &&
        (c->trainer.words.count > 0 || c->reference != HAR_REFERENCE_faultline)) {
        return har_fail(error, HAR_EUSAGE,
                        "%s: mode lockstep needs Faultline's own trainer and reference", c->path);
    }
    if (c->also_train != NULL && c->trainer.words.count > 0) {
        return har_fail(error, HAR_EUSAGE,
                        "%s: also_train is a build of Faultline's trainer, not of one of your own",
                        c->path);
    }
    if (c->also_train != NULL && access(c->also_train, X_OK) != 0) {
        return har_fail(error, HAR_EUSAGE, "%s: no such program (from %s)", c->also_train,
                        o->also_train != NULL ? "--also-train" : c->path);
    }
    if (har_campaign_is_own(c) && c->horizon == 0) {
        return har_fail(
            error, HAR_EUSAGE,
            "%s: a trainer of your own on a recipe of your own needs horizon, the steps "
            "of a run",
            c->path);
    }
    if (c->planted != NULL && c->trainer.words.count == 0 && mut_fault_find(c->planted) == NULL) {
        return har_fail(error, HAR_EUSAGE,
                        "%s: planted: unknown fault '%s' (faultline list shows all)", c->path,
                        c->planted);
    }
    return HAR_OK;
}
