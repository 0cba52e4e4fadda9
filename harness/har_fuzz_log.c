/* What a fuzzer printed, read. Called by har_fuzz.c; must not know targets or files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_fuzz.h"
#include "har_log.h"

enum { LIBFUZZER_TIMEOUT = 70, LIBFUZZER_MEMORY = 71 };

static const char *const end_names[] = {
#define HAR_ROW_(name, text) #name,
    HAR_FUZZ_ENDS(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_fuzz_end_name(enum har_fuzz_end end)
{
    return end < HAR_FUZZ_END_COUNT ? end_names[end] : "?";
}

bool har_fuzz_end_find(const char *name, enum har_fuzz_end *out)
{
    for (int i = 0; i < HAR_FUZZ_END_COUNT; i++) {
        if (strcmp(end_names[i], name) == 0) {
            *out = (enum har_fuzz_end)i;
            return true;
        }
    }
    return false;
}

char *har_fuzz_log_text(const char *path)
{
    enum { BYTES_MAX = HAR_LOG_BYTES_MAX + 2 * HAR_LOG_TAIL };
    FILE *const file = fopen(path, "rbe");
    char *const text = malloc(BYTES_MAX + 1);
    size_t size = 0;
    if (file != NULL && text != NULL) {
        size = fread(text, 1, BYTES_MAX, file);
    }
    const bool failed = file == NULL || text == NULL || ferror(file);
    if (file != NULL) {
        fclose(file);
    }
    if (failed) {
        free(text);
        return NULL;
    }
    for (size_t i = 0; i < size; i++) {
        text[i] = text[i] == '\0' ? '?' : text[i];
    }
    text[size] = '\0';
    return text;
}

/* Copies the rest of the line. */
static void copy_line(const char *from, char *out)
{
    const size_t length = strcspn(from, "\n");
    snprintf(out, HAR_FUZZ_BY_SIZE, "%.*s", (int)length, from);
    har_text_clean(out);
}

/* A requirement as file:line: condition, without the folders. */
static bool read_requirement(const char *log, char *out)
{
    static const char mark[] = ": does not hold: ";
    const char *const found = strstr(log, mark);
    if (found == NULL) {
        return false;
    }
    const char *start = found;
    while (start > log && start[-1] != '/' && start[-1] != '\n') {
        start--;
    }
    char condition[HAR_FUZZ_BY_SIZE];
    copy_line(found + sizeof mark - 1, condition);
    snprintf(out, HAR_FUZZ_BY_SIZE, "%.*s: %.*s", (int)(found - start), start, 120, condition);
    return true;
}

static void read_cause(const char *log, const struct har_exit *last, char *out)
{
    static const char *const marks[] = {"SUMMARY: ", "assertion failed: ", "ERROR: "};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *const found = strstr(log, marks[i]);
        if (found != NULL) {
            copy_line(found, out);
            return;
        }
    }
    if (last->signal != 0) {
        snprintf(out, HAR_FUZZ_BY_SIZE, "signal %d", last->signal);
    } else {
        snprintf(out, HAR_FUZZ_BY_SIZE, "exit code %d", last->code);
    }
}

bool har_fuzz_read_log(const char *log, const struct har_exit *last, struct har_fuzz_run *out)
{
    static const char units[] = "stat::number_of_executed_units:";
    const char *const refused = strstr(log, "fuzz: FAULTLINE_FAULT=");
    const char *const counted = strstr(log, units);
    out->seconds = last->seconds;
    out->executions = counted == NULL ? 0.0 : strtod(counted + sizeof units - 1, NULL);
    out->reached = strstr(log, "fuzz: reached ") != NULL;
    out->by[0] = '\0';
    if (refused != NULL) {
        copy_line(refused, out->by);
        return false;
    }
    if (last->end == HAR_END_timed_out) {
        out->end = HAR_FUZZ_no_verdict;
        snprintf(out->by, sizeof out->by, "did not end after its budget and was killed");
    } else if (read_requirement(log, out->by)) {
        out->end = HAR_FUZZ_found;
    } else if (last->code == 0) {
        out->end = HAR_FUZZ_quiet;
    } else {
        const bool hung = last->code == LIBFUZZER_TIMEOUT || last->code == LIBFUZZER_MEMORY;
        out->end = hung ? HAR_FUZZ_hung : HAR_FUZZ_crashed;
        read_cause(log, last, out->by);
    }
    const bool counts = out->end == HAR_FUZZ_found || out->end == HAR_FUZZ_quiet;
    if (counts && counted == NULL) {
        out->end = HAR_FUZZ_no_verdict;
        snprintf(out->by, sizeof out->by, "printed no count of executions");
    }
    return true;
}
