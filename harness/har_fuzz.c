/* Which fault runs in which fuzzer, and the runs. Called by cmd_fuzz.c; must not know output. */
#include "har_fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "har_lab.h"

enum { RUNS = 200000, SECONDS = 30, REPEATS = 10, INPUT_SECONDS = 20, GRACE_SECONDS = 60 };
static const char default_out[] = "faultline.out";

static enum har_status take_options(const struct har_options *options, struct har_fuzz *fuzz,
                                    struct har_error *error)
{
    fuzz->runs_max = options->runs >= 0 ? (double)options->runs : RUNS;
    fuzz->seconds_max = options->seconds >= 0 ? options->seconds : SECONDS;
    fuzz->repeats = options->repeats >= 0 ? options->repeats : REPEATS;
    fuzz->seed = options->seed >= 0 ? (uint64_t)options->seed : 1;
    fuzz->from_seeds = !options->no_seeds;
    fuzz->store = -1;
    fuzz->pool.signal_fd = -1;
    if (fuzz->runs_max < 1.0 || fuzz->seconds_max < 1 || fuzz->repeats < 1 || fuzz->seed < 1 ||
        fuzz->seed + (uint64_t)fuzz->repeats > UINT32_MAX) {
        return har_fail(error, HAR_EUSAGE,
                        "--runs, --seconds, --repeats and --seed must be at least 1, and seeds "
                        "stay below 2^32");
    }
    if (!options->all && options->targets.count == 0 && options->faults.count == 0) {
        return har_fail(error, HAR_EUSAGE, "which? --target, --fault or --all");
    }
    fuzz->out = strdup(options->out != NULL ? options->out : default_out);
    return fuzz->out != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "no memory");
}

static enum har_status make_folders(const struct har_fuzz *fuzz, struct har_error *error)
{
    static const char *const parts[] = {"logs", "inputs", "runs"};
    enum har_status status = HAR_OK;
    for (size_t i = 0; status == HAR_OK && i < sizeof parts / sizeof parts[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", fuzz->out, parts[i]);
        status = har_lab_make_folder(path, error);
    }
    return status;
}

/* ---- the plan */

static enum har_status add_cell(struct har_fuzz *fuzz, const struct har_fuzz_target *target,
                                const struct mut_fault *fault, const char *spec,
                                struct har_error *error)
{
    struct har_fuzz_cell *const cells =
        realloc(fuzz->cells, (fuzz->cell_count + 1) * sizeof *cells);
    if (cells == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a plan");
    }
    fuzz->cells = cells;
    struct har_fuzz_cell *const cell = &cells[fuzz->cell_count++];
    *cell = (struct har_fuzz_cell){.target = target,
                                   .fault = fault,
                                   .spec = strdup(spec),
                                   .runs = calloc((size_t)fuzz->repeats, sizeof *cell->runs)};
    for (int r = 0; cell->runs != NULL && r < fuzz->repeats; r++) {
        cell->runs[r].seed = fuzz->seed + (uint64_t)r;
    }
    return cell->spec != NULL && cell->runs != NULL
               ? HAR_OK
               : har_fail(error, HAR_EMEMORY, "no memory for a plan");
}

/* What is to be armed for a fault, NULL when it is not asked for: its id, or what an option says
 * with a dose. --all means the families of text and data. */
static const char *spec_of(const struct har_options *options, const struct mut_fault *fault)
{
    for (size_t i = 0; i < options->faults.count; i++) {
        const char *const item = options->faults.items[i];
        const size_t length = strcspn(item, ":");
        if (item[length] == ':' && strlen(fault->id) == length &&
            strncmp(item, fault->id, length) == 0) {
            return item;
        }
        if (har_text_matches(item, fault->id)) {
            return fault->id;
        }
    }
    const bool text = fault->family == MUT_FAMILY_TEMPLATE ||
                      fault->family == MUT_FAMILY_TOKENIZER || fault->family == MUT_FAMILY_MASK ||
                      fault->family == MUT_FAMILY_DATA;
    return options->faults.count == 0 && text ? fault->id : NULL;
}

static enum har_status add_unjudged(struct har_fuzz *fuzz, const struct mut_fault *fault,
                                    const char *reached_in, struct har_error *error)
{
    struct har_fuzz_unjudged *const list =
        realloc(fuzz->unjudged, (fuzz->unjudged_count + 1) * sizeof *list);
    if (list == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for a plan");
    }
    fuzz->unjudged = list;
    list[fuzz->unjudged_count++] = (struct har_fuzz_unjudged){fault, reached_in};
    return HAR_OK;
}

/* The targets that reach the fault's site and judge it; where fault and target are both named,
 * whatever they say of themselves. */
static enum har_status plan_fault(const struct har_options *options, struct har_fuzz *fuzz,
                                  const struct mut_fault *fault, const char *spec,
                                  struct har_error *error)
{
    const bool named = options->targets.count > 0 && options->faults.count > 0;
    const char *reached_in = NULL;
    bool judged = false;
    enum har_status status = HAR_OK;
    for (size_t t = 0; status == HAR_OK && t < fuzz->target_count; t++) {
        const struct har_fuzz_target *const target = &fuzz->targets[t];
        const bool reached = har_fuzz_reaches(target, fault);
        reached_in = reached ? target->name : reached_in;
        if (target->armable && (named || (reached && har_fuzz_judges(target, fault)))) {
            judged = true;
            status = add_cell(fuzz, target, fault, spec, error);
        }
    }
    return status == HAR_OK && !judged ? add_unjudged(fuzz, fault, reached_in, error) : status;
}

static enum har_status plan(const struct har_options *options, struct har_fuzz *fuzz,
                            struct har_error *error)
{
    enum har_status status = HAR_OK;
    bool any = false;
    for (size_t t = 0; status == HAR_OK && t < fuzz->target_count; t++) {
        if (fuzz->targets[t].armable && fuzz->targets[t].judges[0] != '\0') {
            status = add_cell(fuzz, &fuzz->targets[t], NULL, "none", error);
        }
    }
    for (size_t i = 0; status == HAR_OK && i < mut_fault_count(); i++) {
        const struct mut_fault *const fault = mut_fault_at(i);
        const char *const spec = spec_of(options, fault);
        if (spec != NULL) {
            any = true;
            status = plan_fault(options, fuzz, fault, spec, error);
        }
    }
    if (status == HAR_OK && !any) {
        status = har_fail(error, HAR_EUSAGE, "no fault '%s' (faultline list shows all)",
                          options->faults.items[0]);
    }
    if (status == HAR_OK && options->targets.count > 0 && fuzz->cell_count == 0) {
        status =
            har_fail(error, HAR_EUSAGE, "target %s has no fault sites", options->targets.items[0]);
    }
    return status;
}

enum har_status har_fuzz_open(const struct har_options *options, struct har_fuzz *out,
                              struct har_error *error)
{
    memset(out, 0, sizeof *out);
    enum har_status status = take_options(options, out, error);
    if (status == HAR_OK) {
        status = make_folders(out, error);
    }
    if (status == HAR_OK) {
        status = har_fuzz_store_open(out, error);
    }
    if (status == HAR_OK) {
        status = har_pool_open(options->jobs, !options->quiet, &out->pool, error);
    }
    if (status == HAR_OK) {
        status = har_fuzz_find_targets(options, out, error);
    }
    if (status == HAR_OK) {
        status = plan(options, out, error);
    }
    return status == HAR_OK ? har_fuzz_store_load(out, error) : status;
}

void har_fuzz_close(struct har_fuzz *fuzz)
{
    for (size_t i = 0; i < fuzz->cell_count; i++) {
        free(fuzz->cells[i].spec);
        free(fuzz->cells[i].runs);
    }
    for (size_t i = 0; i < fuzz->target_count; i++) {
        har_fuzz_target_fini(&fuzz->targets[i]);
    }
    if (fuzz->store >= 0) {
        close(fuzz->store);
    }
    har_pool_close(&fuzz->pool);
    free(fuzz->cells);
    free(fuzz->targets);
    free(fuzz->unjudged);
    free(fuzz->out);
}

/* ---- the runs */

struct job {
    struct har_fuzz *fuzz;
    struct har_fuzz_cell *cell;
    struct har_fuzz_run *run;
    char corpus[4096], log[4096];
};

static void fill_command(const struct job *job, struct har_command *command)
{
    const struct har_fuzz *const fuzz = job->fuzz;
    const struct har_fuzz_target *const target = job->cell->target;
    struct har_args *const args = &command->args;
    har_args_add(args, "/usr/bin/env");
    har_args_addf(args, "FAULTLINE_FAULT=%s", job->cell->spec);
    /* Names of functions are not needed, and looking for them takes longer than most findings. */
    har_args_add(args, "ASAN_OPTIONS=symbolize=0");
    har_args_add(args, "UBSAN_OPTIONS=symbolize=0");
    har_args_add(args, target->program);
    har_args_addf(args, "-seed=%" PRIu64, job->run->seed);
    har_args_addf(args, "-runs=%.0f", fuzz->runs_max);
    har_args_addf(args, "-max_total_time=%d", fuzz->seconds_max);
    har_args_addf(args, "-timeout=%d", INPUT_SECONDS);
    har_args_add(args, "-print_final_stats=1");
    har_args_add(args, "-verbosity=0");
    har_args_addf(args, "-artifact_prefix=%s/inputs/%s-%s-%" PRIu64 "-", fuzz->out, target->name,
                  job->cell->spec, job->run->seed);
    if (target->words != NULL) {
        har_args_addf(args, "-dict=%s", target->words);
    }
    har_args_add(args, job->corpus);
    if (fuzz->from_seeds) {
        har_args_add(args, target->seeds);
    }
    command->timeout_s = fuzz->seconds_max + INPUT_SECONDS + GRACE_SECONDS;
    command->log_path = strdup(job->log);
}

static enum har_status finish(struct job *job, const struct har_exit *last, struct har_error *error)
{
    char *const text = har_fuzz_log_text(job->log);
    har_lab_remove(job->fuzz->out, job->corpus);
    if (text == NULL) {
        return har_fail(error, HAR_EIO, "%s: cannot be read", job->log);
    }
    const bool armed = har_fuzz_read_log(text, last, job->run);
    free(text);
    if (!armed) {
        return har_fail(error, HAR_EMISMATCH, "%s: %s; was it built from this tree?",
                        job->cell->target->program, job->run->by);
    }
    /* Nothing is believed of a fault whose site did not run. */
    if (job->cell->fault != NULL && job->run->end == HAR_FUZZ_found && !job->run->reached) {
        job->run->end = HAR_FUZZ_no_verdict;
    }
    job->run->done = true;
    return har_fuzz_store_add(job->fuzz, job->cell, job->run, error);
}

static enum har_status next(void *context, const struct har_exit *last, struct har_command *command,
                            bool *more, struct har_error *error)
{
    struct job *const job = context;
    *more = last == NULL;
    if (last != NULL) {
        return finish(job, last, error);
    }
    char name[512];
    snprintf(name, sizeof name, "%s-%s-%" PRIu64, job->cell->target->name, job->cell->spec,
             job->run->seed);
    snprintf(job->corpus, sizeof job->corpus, "%s/runs/%s", job->fuzz->out, name);
    snprintf(job->log, sizeof job->log, "%s/logs/%s.log", job->fuzz->out, name);
    har_lab_remove(job->fuzz->out, job->corpus);
    const enum har_status status = har_lab_make_folder(job->corpus, error);
    if (status == HAR_OK) {
        fill_command(job, command);
    }
    return status;
}

/* Repeat by repeat, so that an interrupted table has something of every fault. */
enum har_status har_fuzz_run_all(struct har_fuzz *fuzz, struct har_error *error)
{
    const size_t most = fuzz->cell_count * (size_t)fuzz->repeats;
    struct job *const jobs = calloc(most + 1, sizeof *jobs);
    void **const list = calloc(most + 1, sizeof *list);
    size_t count = 0;
    enum har_status status = HAR_OK;
    if (jobs == NULL || list == NULL) {
        status = har_fail(error, HAR_EMEMORY, "no memory for %zu runs", most);
    }
    for (int r = 0; status == HAR_OK && r < fuzz->repeats; r++) {
        for (size_t c = 0; c < fuzz->cell_count; c++) {
            struct har_fuzz_cell *const cell = &fuzz->cells[c];
            if (!cell->runs[r].done) {
                jobs[count] = (struct job){.fuzz = fuzz, .cell = cell, .run = &cell->runs[r]};
                list[count] = &jobs[count];
                count++;
            }
        }
    }
    if (status == HAR_OK) {
        status = har_pool_run(&fuzz->pool, list, count, next, "fuzzing", error);
    }
    free(list);
    free(jobs);
    return status;
}
