/* Traces that the harness keeps in memory: what was borrowed last stays. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "har_artifact.h"
#include "orc_check_synth.h"

static char *trace_file(const char *folder, int i)
{
    const struct synth run = synth_reference((uint64_t)i + 1);
    char *const text = synth_text(&run);
    char *path = NULL;
    cr_assert_gt(asprintf(&path, "%s/%d.jsonl", folder, i), 0);
    FILE *const file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
    free(text);
    return path;
}

static const orc_trace *borrow(struct har_lab *lab, const char *path)
{
    const struct har_bench bench = {.steps = 1};
    const orc_trace *trace = NULL;
    struct har_error error = {{0}};
    cr_assert_eq(har_artifact_borrow(lab, &bench, path, &trace, &error), HAR_OK, "%s", error.text);
    return trace;
}

/* A case borrows its reference and then its healthy run: the second must not make the first one's
 * room, also where the first was kept longest. */
Test(har_artifact, a_trace_that_was_just_asked_for_is_not_the_one_that_makes_room)
{
    enum { FILES = HAR_KEPT_TRACES + 1 };
    struct har_lab lab = {.out = NULL};
    char folder[] = "/tmp/har_artifact_XXXXXX";
    char *paths[FILES];
    cr_assert_not_null(mkdtemp(folder));
    for (int i = 0; i < FILES; i++) {
        paths[i] = trace_file(folder, i);
    }
    for (int i = 0; i < HAR_KEPT_TRACES; i++) {
        borrow(&lab, paths[i]);
    }
    const orc_trace *const first = borrow(&lab, paths[0]);
    borrow(&lab, paths[HAR_KEPT_TRACES]);
    cr_assert_eq(unlink(paths[0]), 0); /* it could not be read again */
    cr_assert_eq(borrow(&lab, paths[0]), first);
    cr_assert_gt(orc_trace_last_step(first), 0);
    for (int i = 0; i < FILES; i++) {
        unlink(paths[i]);
        free(paths[i]);
    }
    for (int i = 0; i < HAR_KEPT_TRACES; i++) {
        free(lab.kept[i].path);
        orc_trace_free(lab.kept[i].trace);
    }
    cr_assert_eq(rmdir(folder), 0);
}
