/* faultline report: from the database alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_cmd.h"
#include "har_compare.h"
#include "har_report.h"

enum har_status har_cmd_load(const struct har_options *options, struct har_results *results,
                             struct har_error *error)
{
    har_store *store = NULL;
    const char *const dir = options->out != NULL ? options->out : "faultline.out";
    enum har_status status = har_store_open(dir, &store, error);
    if (status == HAR_OK) {
        status = har_results_load(store, results, error);
    }
    har_store_close(store);
    return status;
}

/* Both folders by their modes, or by their names where the modes are the same. */
static enum har_status compare(const struct har_options *options, const struct har_results *here,
                               struct har_error *error)
{
    struct har_results there;
    struct har_compare counts;
    struct har_text text = {0};
    struct har_options other = *options;
    other.out = options->against;
    enum har_status status = har_cmd_load(&other, &there, error);
    if (status != HAR_OK) {
        return status;
    }
    const struct har_results *const sides[HAR_SIDES] = {here, &there};
    const char *const modes[HAR_SIDES] = {here->mode[0] != '\0' ? here->mode : "free",
                                          there.mode[0] != '\0' ? there.mode : "free"};
    const char *const folders[HAR_SIDES] = {options->out != NULL ? options->out : "faultline.out",
                                            options->against};
    const bool same_mode = strcmp(modes[0], modes[1]) == 0;
    if (!har_compare_make(sides, &counts)) {
        status = har_fail(error, HAR_EMEMORY, "no memory for the comparison");
    } else if (counts.entries == 0) {
        status =
            har_fail(error, HAR_EMISMATCH, "%s and %s share no fault on the same recipe and seed",
                     folders[0], folders[1]);
    } else {
        har_compare_text(sides, &counts, same_mode ? folders : modes, &text);
        fputs(har_text_get(&text), stdout);
    }
    har_text_fini(&text);
    har_results_fini(&there);
    return status;
}

enum har_status har_cmd_report(const struct har_options *options, struct har_error *error)
{
    struct har_results results;
    struct har_text text = {0};
    const char *const no_colour = getenv("NO_COLOR");
    const bool colour = isatty(STDOUT_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0');
    const char *const format = options->format != NULL ? options->format
                               : options->json         ? "json"
                                                       : "text";
    enum har_status status = har_cmd_load(options, &results, error);
    if (status != HAR_OK) {
        return status;
    }
    if (options->against != NULL) {
        status = options->format != NULL || options->json
                     ? har_fail(error, HAR_EUSAGE, "--against prints text only")
                     : compare(options, &results, error);
        har_results_fini(&results);
        return status;
    }
    struct har_study study;
    if (!har_study_make(&results, &study)) {
        har_results_fini(&results);
        return har_fail(error, HAR_EMEMORY, "no memory for the statistics");
    }
    status = har_report_format(&results, &study, format, colour, &text, error);
    if (status == HAR_OK) {
        status = har_report_write_all(&results, &study,
                                      options->out != NULL ? options->out : "faultline.out", error);
        fputs(har_text_get(&text), stdout);
    }
    har_study_fini(&study);
    har_text_fini(&text);
    har_results_fini(&results);
    return status;
}
