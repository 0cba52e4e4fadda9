/* The seeds of the fuzzer of bounds are what their names say: good_* is accepted, all else is refused,
 * and only version_* for its version. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orc_check.h"

static char *read_seed(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", SEEDS, name);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    enum { LARGEST = 1 << 16 };
    char *const text = calloc(1, LARGEST);
    cr_assert_not_null(text);
    cr_assert_lt(fread(text, 1, LARGEST, f), LARGEST, "%s: too long for this test", name);
    fclose(f);
    return text;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

Test(orc_bounds, seeds_are_what_they_are_called)
{
    DIR *folder = opendir(SEEDS);
    cr_assert_not_null(folder, "%s", SEEDS);
    int accepted = 0;
    int refused = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *const text = read_seed(entry->d_name);
        struct orc_error error = {""};
        orc_bounds *bounds = NULL;
        const enum orc_status status = orc_bounds_parse(text, &bounds, &error);
        if (begins(entry->d_name, "good")) {
            cr_assert_eq(status, ORC_OK, "%s: %s", entry->d_name, error.text);
            accepted++;
        } else {
            cr_assert_neq(status, ORC_OK, "%s is accepted", entry->d_name);
            cr_assert(begins(entry->d_name, "version") ||
                          strstr(error.text, "schema_version") == NULL,
                      "%s: %s", entry->d_name, error.text);
            refused++;
        }
        orc_bounds_free(bounds);
        free(text);
    }
    closedir(folder);
    cr_assert_gt(accepted, 5);
    cr_assert_gt(refused, 20);
}
