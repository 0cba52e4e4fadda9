/* The results database: facts only, one transaction per case, safe against kill -9.
 * Called by the campaign and the reports; must not know how facts come about or what they mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "har_outcome.h"
#include "har_spawn.h"
#include "har_spent.h"
#include "har_status.h"

typedef struct har_store har_store;

/* Opens DIR/results.sqlite, makes DIR and the tables when missing, and takes DIR/lock so that only
 * one harness writes (HAR_EUSAGE when another one runs). */
HAR_CHECKED enum har_status har_store_create(const char *dir, har_store **out,
                                             struct har_error *error);
/* Opens an existing database for reading, also where nothing may be written. HAR_EUSAGE when there
 * is none or it is another program's, HAR_EIO when it is damaged. */
HAR_CHECKED enum har_status har_store_open(const char *dir, har_store **out,
                                           struct har_error *error);
void har_store_close(har_store *store); /* accepts NULL */

/* Named texts: plan hash, provenance. get: *value is NULL when missing; caller frees. */
HAR_CHECKED enum har_status har_store_put_text(har_store *store, const char *key, const char *value,
                                               struct har_error *error);
HAR_CHECKED enum har_status har_store_get_text(har_store *store, const char *key, char **value,
                                               struct har_error *error);

/* One row of the plan. */
struct har_entry_record {
    const char *id, *fault, *family, *class_, *expectation, *recipe, *schedule, *driver, *reason;
    unsigned number;
    double dose; /* NaN = none */
    int horizon;
    size_t position; /* in the whole plan */
};
/* Replaces the plan as a whole. */
HAR_CHECKED enum har_status har_store_put_plan(har_store *store,
                                               const struct har_entry_record *entries, size_t count,
                                               struct har_error *error);

struct har_run_record {
    const char *role; /* subject, repeat, resumed, reference, healthy, ... */
    const char *command;
    const char *log;
    struct har_exit end;
};
/* A judged case with its runs and verdicts. kind: fault, alarm, planted, identity, artifact. */
struct har_case_record {
    const char *key, *kind, *entry, *recipe;
    uint64_t seed;
    const char *outcome, *first_check, *detail, *reproduce;
    int reached, infected, detected;
    double seconds;
    const struct har_run_record *runs;
    size_t run_count;
    const struct orc_verdict *verdicts; /* ORC_CHECK_COUNT or NULL */
    const char *curve;                  /* losses as har_curve_json writes them, NULL = none */
    const struct orc_divergence *blame; /* subject against reference, NULL = not compared */
};
HAR_CHECKED enum har_status
har_store_put_case(har_store *store, const struct har_case_record *record, struct har_error *error);
/* Whether a case is stored; outcome (may be NULL) gets its outcome, caller frees. */
HAR_CHECKED enum har_status har_store_find_case(har_store *store, const char *key, bool *found,
                                                char **outcome, struct har_error *error);
/* Longest stored run of a role on a recipe, 0 when there is none. */
HAR_CHECKED enum har_status har_store_longest_run(har_store *store, const char *recipe,
                                                  const char *role, double *seconds,
                                                  struct har_error *error);

/* Stored runs of a recipe by what for and in which role: "fault/subject", "artifact/reference". */
HAR_CHECKED enum har_status har_store_count_runs(har_store *store, const char *recipe,
                                                 const char *what, size_t *count,
                                                 struct har_error *error);

HAR_CHECKED enum har_status har_store_put_bounds(har_store *store, const char *recipe,
                                                 const char *json, const char *summary, int runs,
                                                 struct har_error *error);
HAR_CHECKED enum har_status har_store_get_bounds(har_store *store, const char *recipe, char **json,
                                                 struct har_error *error);
HAR_CHECKED enum har_status har_store_put_oracle_fault(har_store *store, const char *id,
                                                       const char *why, bool killed,
                                                       const char *detail, struct har_error *error);
/* The null distribution of one recipe, per check, tensor class and step; replaces what was there.
 * The calibration is finished. */
HAR_CHECKED enum har_status har_store_put_null(har_store *store, const char *recipe,
                                               const orc_calibration *calibration,
                                               struct har_error *error);
/* Losses of a run that is no case of its own, e.g. of calibration. */
HAR_CHECKED enum har_status har_store_put_curve(har_store *store, const char *key, const char *json,
                                                struct har_error *error);
/* Whether a table is there: databases of earlier versions lack some. */
HAR_CHECKED enum har_status har_store_has_table(har_store *store, const char *name, bool *has,
                                                struct har_error *error);
/* Adds to the wall time the campaign has taken so far, and to what it went into. */
HAR_CHECKED enum har_status har_store_add_session(har_store *store, const char *ended_at,
                                                  double seconds, const struct har_spent *spent,
                                                  struct har_error *error);

/* Adds what another folder's database holds: its part of the plan, cases with runs and verdicts,
 * sessions, texts that are not there yet. HAR_EMISMATCH when a recipe's bounds are other ones. */
HAR_CHECKED enum har_status har_store_add_shard(har_store *store, const char *dir,
                                                struct har_error *error);
/* Brings everything into the one file, so that it may be moved. */
HAR_CHECKED enum har_status har_store_settle(har_store *store, struct har_error *error);

/* Reading: calls `row` with the columns of each row of a query as text (NULL = SQL null). */
typedef void har_store_row(void *context, int columns, char **values);
HAR_CHECKED enum har_status har_store_query(har_store *store, const char *sql, har_store_row *row,
                                            void *context, struct har_error *error);
