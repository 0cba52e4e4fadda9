/* SQLite behind the store's interface: facts in and out, one transaction per case.
 * Called by the campaign and the reports; must not know how facts come about. */
#include "har_store.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_store_file.h"

#include "har_text.h"

enum har_status har_store_fail(har_store *store, struct har_error *error)
{
    const int code = sqlite3_errcode(store->db);
    const enum har_status status = code == SQLITE_NOMEM ? HAR_EMEMORY : HAR_EIO;
    return har_fail(error, status, "%s: %s", store->path, sqlite3_errmsg(store->db));
}

enum har_status har_store_exec(har_store *store, const char *sql, struct har_error *error)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? HAR_OK
               : har_store_fail(store, error);
}

/* Runs one statement with arguments by a format: t text, i int64, d double (NaN = null). */
static enum har_status store_put(har_store *store, struct har_error *error, const char *sql,
                                 const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return har_store_fail(store, error);
    }
    va_list args;
    va_start(args, format);
    int result = SQLITE_OK;
    for (int i = 0; format[i] != '\0' && result == SQLITE_OK; i++) {
        if (format[i] == 't') {
            result = sqlite3_bind_text(statement, i + 1, va_arg(args, const char *), -1,
                                       SQLITE_TRANSIENT);
        } else if (format[i] == 'i') {
            result = sqlite3_bind_int64(statement, i + 1, va_arg(args, int64_t));
        } else {
            result = sqlite3_bind_double(statement, i + 1, va_arg(args, double));
        }
    }
    va_end(args);
    if (result == SQLITE_OK) {
        result = sqlite3_step(statement);
    }
    const enum har_status status =
        result == SQLITE_DONE || result == SQLITE_ROW ? HAR_OK : har_store_fail(store, error);
    sqlite3_finalize(statement);
    return status;
}

/* First column of the first row; *value NULL when there is no row. */
static enum har_status store_get(har_store *store, const char *sql, const char *first,
                                 const char *second, char **value, struct har_error *error)
{
    sqlite3_stmt *statement = NULL;
    *value = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return har_store_fail(store, error);
    }
    enum har_status status = HAR_OK;
    sqlite3_bind_text(statement, 1, first, -1, SQLITE_TRANSIENT);
    if (second != NULL) {
        sqlite3_bind_text(statement, 2, second, -1, SQLITE_TRANSIENT);
    }
    const int result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        const char *const text = (const char *)sqlite3_column_text(statement, 0);
        *value = strdup(text != NULL ? text : "");
        status = *value != NULL ? HAR_OK : har_fail(error, HAR_EMEMORY, "no memory");
    } else if (result != SQLITE_DONE) {
        status = har_store_fail(store, error);
    }
    sqlite3_finalize(statement);
    return status;
}

enum har_status har_store_put_text(har_store *store, const char *key, const char *value,
                                   struct har_error *error)
{
    return store_put(store, error, "INSERT OR REPLACE INTO meta VALUES(?, ?)", "tt", key, value);
}

enum har_status har_store_get_text(har_store *store, const char *key, char **value,
                                   struct har_error *error)
{
    return store_get(store, "SELECT value FROM meta WHERE key = ?", key, NULL, value, error);
}

/* Ends a transaction: commits when all went well. */
static enum har_status store_end(har_store *store, enum har_status status, struct har_error *error)
{
    if (status == HAR_OK) {
        status = har_store_exec(store, "COMMIT", error);
    }
    if (status != HAR_OK) {
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

enum har_status har_store_put_plan(har_store *store, const struct har_entry_record *entries,
                                   size_t count, struct har_error *error)
{
    enum har_status status = har_store_exec(store, "BEGIN IMMEDIATE; DELETE FROM entry;", error);
    for (size_t i = 0; status == HAR_OK && i < count; i++) {
        const struct har_entry_record *const e = &entries[i];
        status = store_put(store, error, "INSERT INTO entry VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
                           "ittidttttttti", (int64_t)e->position, e->id, e->fault,
                           (int64_t)e->number, e->dose, e->family, e->class_, e->expectation,
                           e->recipe, e->schedule, e->driver, e->reason, (int64_t)e->horizon);
    }
    return store_end(store, status, error);
}

static enum har_status put_run(har_store *store, const struct har_case_record *record,
                               const struct har_run_record *run, struct har_error *error)
{
    return store_put(store, error,
                     "INSERT OR REPLACE INTO runs(case_key, recipe, role, command, log, ending,"
                     " exit_code, signal, seconds, peak_kb) VALUES(?,?,?,?,?,?,?,?,?,?)",
                     "ttttttiidi", record->key, record->recipe, run->role, run->command, run->log,
                     har_end_name(run->end.end), (int64_t)run->end.code, (int64_t)run->end.signal,
                     run->end.seconds, (int64_t)run->end.peak_kb);
}

static enum har_status put_verdict(har_store *store, const char *key, enum orc_check_id id,
                                   const struct orc_verdict *verdict, struct har_error *error)
{
    char detail[sizeof verdict->detail];
    snprintf(detail, sizeof detail, "%s", verdict->detail);
    har_text_clean(detail);
    return store_put(store, error, "INSERT INTO verdicts VALUES(?,?,?,?,?,?,?,?)", "ttiiidit", key,
                     orc_check_name(id), (int64_t)verdict->applicable, (int64_t)verdict->fired,
                     (int64_t)verdict->step, verdict->worst, (int64_t)verdict->compared, detail);
}

/* One cell at a time, until one fails. */
struct null_writing {
    har_store *store;
    const char *recipe;
    enum har_status status;
    struct har_error *error;
};

static void put_null_cell(void *context, const struct orc_null *cell)
{
    struct null_writing *const w = context;
    struct har_text values = {0};
    char name[300];
    if (w->status != HAR_OK) {
        return;
    }
    snprintf(name, sizeof name, "%s%s%s", cell->group, cell->group[0] != '\0' ? " " : "",
             cell->class_name);
    for (size_t i = 0; i < cell->count; i++) {
        har_text_addf(&values, "%s%.9g", i == 0 ? "[" : ",", cell->values[i]);
    }
    har_text_add(&values, cell->count > 0 ? "]" : "[]");
    w->status = values.failed
                    ? har_fail(w->error, HAR_EMEMORY, "no memory for the null distribution")
                    : store_put(w->store, w->error,
                                "INSERT OR REPLACE INTO null_cell VALUES(?,?,?,?,?,?,?)", "ttttiit",
                                w->recipe, orc_check_name(cell->check), name, cell->part,
                                (int64_t)cell->step, (int64_t)cell->level, har_text_get(&values));
    har_text_fini(&values);
}

enum har_status har_store_put_null(har_store *store, const char *recipe,
                                   const orc_calibration *calibration, struct har_error *error)
{
    struct null_writing w = {store, recipe, HAR_OK, error};
    struct orc_error cause;
    w.status = har_store_exec(store, "BEGIN IMMEDIATE", error);
    if (w.status != HAR_OK) {
        return w.status;
    }
    w.status = store_put(store, error, "DELETE FROM null_cell WHERE recipe = ?", "t", recipe);
    if (w.status == HAR_OK &&
        orc_calibration_visit(calibration, put_null_cell, &w, &cause) != ORC_OK) {
        w.status = har_fail(error, HAR_EMEMORY, "no memory for the null distribution");
    }
    return store_end(store, w.status, error);
}

enum har_status har_store_put_curve(har_store *store, const char *key, const char *json,
                                    struct har_error *error)
{
    return store_put(store, error, "INSERT OR REPLACE INTO curve VALUES(?,?)", "tt", key, json);
}

static enum har_status put_blame(har_store *store, const char *key, const struct orc_divergence *d,
                                 struct har_error *error)
{
    char item[sizeof d->item];
    snprintf(item, sizeof item, "%s", d->item);
    har_text_clean(item);
    return store_put(store, error, "INSERT OR REPLACE INTO blame VALUES(?,?,?,?)", "ttit", key,
                     d->found ? d->stage : "", (int64_t)d->step, d->found ? item : "");
}

enum har_status har_store_put_case(har_store *store, const struct har_case_record *r,
                                   struct har_error *error)
{
    enum har_status status = har_store_exec(store, "BEGIN IMMEDIATE", error);
    if (status == HAR_OK) {
        status =
            store_put(store, error,
                      "INSERT OR REPLACE INTO cases(key, kind, entry, recipe, seed, outcome,"
                      " reached, infected, detected, first_check, detail, reproduce, seconds)"
                      " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
                      "ttttitiiitttd", r->key, r->kind, r->entry, r->recipe, (int64_t)r->seed,
                      r->outcome, (int64_t)r->reached, (int64_t)r->infected, (int64_t)r->detected,
                      r->first_check, r->detail, r->reproduce, r->seconds);
    }
    if (status == HAR_OK) {
        status = store_put(store, error, "DELETE FROM verdicts WHERE case_key = ?", "t", r->key);
    }
    for (size_t i = 0; status == HAR_OK && i < r->run_count; i++) {
        status = put_run(store, r, &r->runs[i], error);
    }
    for (int i = 0; status == HAR_OK && r->verdicts != NULL && i < ORC_CHECK_COUNT; i++) {
        status = put_verdict(store, r->key, (enum orc_check_id)i, &r->verdicts[i], error);
    }
    if (status == HAR_OK && r->curve != NULL) {
        status = har_store_put_curve(store, r->key, r->curve, error);
    }
    if (status == HAR_OK && r->blame != NULL) {
        status = put_blame(store, r->key, r->blame, error);
    }
    return store_end(store, status, error);
}

enum har_status har_store_has_table(har_store *store, const char *name, bool *has,
                                    struct har_error *error)
{
    char *text = NULL;
    const enum har_status status =
        store_get(store, "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?", name,
                  NULL, &text, error);
    *has = text != NULL;
    free(text);
    return status;
}

enum har_status har_store_find_case(har_store *store, const char *key, bool *found, char **outcome,
                                    struct har_error *error)
{
    char *text = NULL;
    const enum har_status status =
        store_get(store, "SELECT outcome FROM cases WHERE key = ?", key, NULL, &text, error);
    *found = text != NULL;
    if (outcome != NULL) {
        *outcome = text;
    } else {
        free(text);
    }
    return status;
}

enum har_status har_store_longest_run(har_store *store, const char *recipe, const char *role,
                                      double *seconds, struct har_error *error)
{
    char *text = NULL;
    const enum har_status status =
        store_get(store, "SELECT max(seconds) FROM runs WHERE recipe = ? AND role = ?", recipe,
                  role, &text, error);
    *seconds = text != NULL ? strtod(text, NULL) : 0.0;
    free(text);
    return status;
}

enum har_status har_store_count_runs(har_store *store, const char *recipe, const char *what,
                                     size_t *count, struct har_error *error)
{
    char *text = NULL;
    const enum har_status status = store_get(store,
                                             "SELECT count(*) FROM runs JOIN cases ON key = "
                                             "case_key WHERE runs.recipe = ? AND kind || '/' || "
                                             "role = ?",
                                             recipe, what, &text, error);
    *count = text != NULL ? (size_t)strtoull(text, NULL, 10) : 0;
    free(text);
    return status;
}

enum har_status har_store_put_bounds(har_store *store, const char *recipe, const char *json,
                                     const char *summary, int runs, struct har_error *error)
{
    return store_put(store, error, "INSERT OR REPLACE INTO bounds VALUES(?,?,?,?)", "ttti", recipe,
                     json, summary, (int64_t)runs);
}

enum har_status har_store_get_bounds(har_store *store, const char *recipe, char **json,
                                     struct har_error *error)
{
    return store_get(store, "SELECT json FROM bounds WHERE recipe = ?", recipe, NULL, json, error);
}

enum har_status har_store_put_oracle_fault(har_store *store, const char *id, const char *why,
                                           bool killed, const char *detail, struct har_error *error)
{
    return store_put(store, error, "INSERT OR REPLACE INTO oracle_fault VALUES(?,?,?,?)", "ttit",
                     id, why, (int64_t)killed, detail);
}

static enum har_status put_spent(har_store *store, const char *what, const char *name,
                                 double amount, struct har_error *error)
{
    return store_put(store, error, "INSERT INTO spent VALUES(?,?,?)", "ttd", what, name, amount);
}

enum har_status har_store_add_session(har_store *store, const char *ended_at, double seconds,
                                      const struct har_spent *spent, struct har_error *error)
{
    enum har_status status = har_store_exec(store, "BEGIN IMMEDIATE", error);
    if (status == HAR_OK) {
        status = store_put(store, error, "INSERT INTO session(started_at, seconds) VALUES(?,?)",
                           "td", ended_at, seconds);
    }
    for (int i = 0; status == HAR_OK && i < HAR_WORK_COUNT; i++) {
        status = put_spent(store, "work", har_work_name((enum har_work)i), spent->work_s[i], error);
    }
    for (int i = 0; status == HAR_OK && i < HAR_STAGE_COUNT; i++) {
        const char *const name = har_stage_name((enum har_stage)i);
        status = put_spent(store, "stage", name, spent->stage_s[i], error);
        if (status == HAR_OK) {
            status = put_spent(store, "stage_busy", name, spent->stage_busy_s[i], error);
        }
    }
    if (status == HAR_OK) {
        status = put_spent(store, "cases", "fault", spent->cases, error);
    }
    return store_end(store, status, error);
}

static void take_name(void *context, int columns, char **values)
{
    (void)columns;
    snprintf(context, NAME_MAX, "%s", values[0]);
}

static enum har_status copy_shard(har_store *store, const char *dir, struct har_error *error)
{
    static const char copies[] =
        "BEGIN IMMEDIATE;"
        "INSERT INTO entry SELECT * FROM part.entry;"
        "INSERT OR IGNORE INTO meta SELECT * FROM part.meta;"
        "INSERT OR IGNORE INTO runs(case_key, recipe, role, command, log, ending, exit_code, "
        "signal,"
        " seconds, peak_kb) SELECT case_key, recipe, role, command, log, ending, exit_code, signal,"
        " seconds, peak_kb FROM part.runs ORDER BY id;"
        "INSERT OR IGNORE INTO cases SELECT * FROM part.cases;"
        "INSERT OR IGNORE INTO verdicts SELECT * FROM part.verdicts;"
        "INSERT OR IGNORE INTO curve SELECT * FROM part.curve;"
        "INSERT OR IGNORE INTO blame SELECT * FROM part.blame;"
        "INSERT OR IGNORE INTO null_cell SELECT * FROM part.null_cell;"
        "INSERT OR IGNORE INTO bounds SELECT * FROM part.bounds;"
        "INSERT OR IGNORE INTO oracle_fault SELECT * FROM part.oracle_fault;"
        "INSERT INTO session(started_at, seconds) SELECT started_at, seconds FROM part.session;"
        "INSERT INTO spent SELECT * FROM part.spent;";
    char recipe[NAME_MAX] = "";
    enum har_status status = har_store_query(
        store,
        "SELECT a.recipe FROM bounds a JOIN part.bounds b ON a.recipe = b.recipe AND a.json <> "
        "b.json LIMIT 1",
        take_name, recipe, error);
    if (status == HAR_OK && recipe[0] != '\0') {
        return har_fail(error, HAR_EMISMATCH,
                        "%s: its bounds of recipe %s are not those of the other shards", dir,
                        recipe);
    }
    if (status == HAR_OK) {
        status = har_store_exec(store, copies, error);
        if (status != HAR_OK && sqlite3_errcode(store->db) == SQLITE_CONSTRAINT) {
            status = HAR_EMISMATCH; /* an entry of the plan stands in two shards */
        }
        status = store_end(store, status, error);
    }
    return status;
}

enum har_status har_store_add_shard(har_store *store, const char *dir, struct har_error *error)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/results.sqlite", dir);
    enum har_status status =
        store_put(store, error, "ATTACH DATABASE ? AS part", "t", (const char *)path);
    if (status != HAR_OK) {
        return status;
    }
    status = copy_shard(store, dir, error);
    const enum har_status detached =
        har_store_exec(store, "DETACH DATABASE part", status == HAR_OK ? error : NULL);
    return status == HAR_OK ? detached : status;
}

enum har_status har_store_settle(har_store *store, struct har_error *error)
{
    return har_store_exec(store, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;",
                          error);
}

enum har_status har_store_query(har_store *store, const char *sql, har_store_row *row,
                                void *context, struct har_error *error)
{
    enum { COLUMNS_MAX = 32 };
    char nothing[] = "";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return har_store_fail(store, error);
    }
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
        char *values[COLUMNS_MAX];
        const int columns = sqlite3_column_count(statement);
        for (int i = 0; i < columns && i < COLUMNS_MAX; i++) {
            char *const text = (char *)sqlite3_column_text(statement, i);
            values[i] = text != NULL ? text : nothing;
        }
        row(context, columns, values);
    }
    const enum har_status status = result == SQLITE_DONE ? HAR_OK : har_store_fail(store, error);
    sqlite3_finalize(statement);
    return status;
}
