/* SQLite behind the store's interface: write-ahead log, one transaction per case.
 * Called by the campaign and the reports; must not know how facts come about. */
#include "har_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "har_text.h"

struct har_store {
    sqlite3 *db;
    int lock_fd; /* -1 when reading only */
    char path[PATH_MAX];
};

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS entry(position INTEGER PRIMARY KEY, id TEXT UNIQUE, fault TEXT,"
    " number INTEGER, dose REAL, family TEXT, class TEXT, expectation TEXT, recipe TEXT,"
    " schedule TEXT, driver TEXT, reason TEXT, horizon INTEGER);"
    "CREATE TABLE IF NOT EXISTS cases(key TEXT PRIMARY KEY, kind TEXT, entry TEXT, recipe TEXT,"
    " seed INTEGER, outcome TEXT, reached INTEGER, infected INTEGER, detected INTEGER,"
    " first_check TEXT, detail TEXT, reproduce TEXT, seconds REAL,"
    " finished_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')));"
    "CREATE TABLE IF NOT EXISTS runs(id INTEGER PRIMARY KEY AUTOINCREMENT, case_key TEXT,"
    " recipe TEXT, role TEXT, command TEXT, log TEXT, ending TEXT, exit_code INTEGER,"
    " signal INTEGER, seconds REAL, peak_kb INTEGER, UNIQUE(case_key, role));"
    "CREATE TABLE IF NOT EXISTS verdicts(case_key TEXT, check_name TEXT, applicable INTEGER,"
    " fired INTEGER, step INTEGER, worst REAL, compared INTEGER, detail TEXT,"
    " PRIMARY KEY(case_key, check_name));"
    "CREATE TABLE IF NOT EXISTS bounds(recipe TEXT PRIMARY KEY, json TEXT, summary TEXT,"
    " runs INTEGER);"
    "CREATE TABLE IF NOT EXISTS null_cell(recipe TEXT, check_name TEXT, class TEXT, part TEXT,"
    " step INTEGER, is_level INTEGER, deviations TEXT,"
    " PRIMARY KEY(recipe, check_name, class, part, step));"
    "CREATE TABLE IF NOT EXISTS curve(case_key TEXT PRIMARY KEY, json TEXT);"
    "CREATE TABLE IF NOT EXISTS blame(case_key TEXT PRIMARY KEY, stage TEXT, step INTEGER,"
    " item TEXT);"
    "CREATE TABLE IF NOT EXISTS oracle_fault(id TEXT PRIMARY KEY, why TEXT, killed INTEGER,"
    " detail TEXT);"
    "CREATE TABLE IF NOT EXISTS session(id INTEGER PRIMARY KEY AUTOINCREMENT, started_at TEXT,"
    " seconds REAL);";

static enum har_status store_fail(har_store *store, struct har_error *error)
{
    const int code = sqlite3_errcode(store->db);
    const enum har_status status = code == SQLITE_NOMEM ? HAR_EMEMORY : HAR_EIO;
    return har_fail(error, status, "%s: %s", store->path, sqlite3_errmsg(store->db));
}

static enum har_status store_exec(har_store *store, const char *sql, struct har_error *error)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? HAR_OK
                                                                       : store_fail(store, error);
}

/* Runs one statement with arguments by a format: t text, i int64, d double (NaN = null). */
static enum har_status store_put(har_store *store, struct har_error *error, const char *sql,
                                 const char *format, ...)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return store_fail(store, error);
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
        result == SQLITE_DONE || result == SQLITE_ROW ? HAR_OK : store_fail(store, error);
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
        return store_fail(store, error);
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
        status = store_fail(store, error);
    }
    sqlite3_finalize(statement);
    return status;
}

static enum har_status open_database(const char *path, int flags, har_store **out,
                                     struct har_error *error)
{
    har_store *const store = calloc(1, sizeof *store);
    if (store == NULL) {
        return har_fail(error, HAR_EMEMORY, "no memory for the store");
    }
    store->lock_fd = -1;
    if (snprintf(store->path, sizeof store->path, "%s", path) >= (int)sizeof store->path) {
        free(store);
        return har_fail(error, HAR_EUSAGE, "%s: name is too long", path);
    }
    if (sqlite3_open_v2(store->path, &store->db, flags, NULL) != SQLITE_OK) {
        const enum har_status status = store_fail(store, error);
        har_store_close(store);
        return status;
    }
    sqlite3_busy_timeout(store->db, 10000);
    *out = store;
    return HAR_OK;
}

static enum har_status take_lock(const char *dir, int *fd, struct har_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", dir);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*fd < 0) {
        return har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        close(*fd);
        *fd = -1;
        return har_fail(error, HAR_EUSAGE, "%s: another faultline works in this folder", dir);
    }
    return HAR_OK;
}

/* Makes a folder and those above it. */
static enum har_status make_folders(const char *dir, struct har_error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path || dir[0] == '\0') {
        return har_fail(error, HAR_EUSAGE, "'%s' cannot be a folder name", dir);
    }
    for (char *p = path + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0755);
            *p = '/';
        }
    }
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return har_fail(error, HAR_EIO, "%s: %s", path, strerror(errno));
    }
    return HAR_OK;
}

enum har_status har_store_create(const char *dir, har_store **out, struct har_error *error)
{
    int lock_fd = -1;
    char path[PATH_MAX];
    enum har_status status = make_folders(dir, error);
    if (status == HAR_OK) {
        status = take_lock(dir, &lock_fd, error);
    }
    if (status != HAR_OK) {
        return status;
    }
    snprintf(path, sizeof path, "%s/results.sqlite", dir);
    status = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, out, error);
    if (status != HAR_OK) {
        close(lock_fd);
        return status;
    }
    (*out)->lock_fd = lock_fd;
    status = store_exec(*out, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", error);
    if (status == HAR_OK) {
        status = store_exec(*out, tables, error);
    }
    if (status != HAR_OK) {
        har_store_close(*out);
        *out = NULL;
    }
    return status;
}

/* A damaged file is an input/output error, a sound one without our tables is another file. */
static enum har_status try_database(har_store *store, struct har_error *error)
{
    const enum har_status status = store_exec(store, "SELECT count(*) FROM cases", error);
    return status != HAR_OK && sqlite3_errcode(store->db) == SQLITE_ERROR ? HAR_EUSAGE : status;
}

/* Whether a database that cannot be read is whole and merely lies where nothing can be written: a
 * reader of a write-ahead log wants to write its index beside it. */
static bool only_unwritable(const har_store *store)
{
    char path[PATH_MAX + 8];
    struct stat facts;
    const int code = sqlite3_errcode(store->db);
    snprintf(path, sizeof path, "%s-wal", store->path);
    return (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) &&
           (stat(path, &facts) != 0 || facts.st_size == 0);
}

/* Opens a database that nobody can change, without any file beside it. */
static enum har_status open_unwritable(const char *path, har_store **out, struct har_error *error)
{
    char uri[3 * PATH_MAX] = "file:";
    size_t used = strlen(uri);
    for (const char *p = path; *p != '\0'; p++) {
        const bool plain = strchr("?#%", *p) == NULL;
        used += (size_t)snprintf(uri + used, sizeof uri - used, plain ? "%c" : "%%%02X",
                                 (unsigned char)*p);
    }
    snprintf(uri + used, sizeof uri - used, "?immutable=1");
    const enum har_status status =
        open_database(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, out, error);
    return status == HAR_OK ? try_database(*out, error) : status;
}

enum har_status har_store_open(const char *dir, har_store **out, struct har_error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/results.sqlite", dir);
    if (access(path, R_OK) != 0) {
        return har_fail(error, HAR_EUSAGE, "%s: no stored results (%s); faultline run makes them",
                        path, strerror(errno));
    }
    /* Read and write: a write-ahead log left by a killed harness is recovered by its reader. */
    enum har_status status = open_database(path, SQLITE_OPEN_READWRITE, out, error);
    if (status == HAR_OK) {
        status = try_database(*out, error);
        if (status != HAR_OK && only_unwritable(*out)) {
            har_store_close(*out);
            status = open_unwritable(path, out, error);
        }
        if (status != HAR_OK) {
            har_store_close(*out);
            *out = NULL;
        }
    }
    return status;
}

void har_store_close(har_store *store)
{
    if (store != NULL) {
        sqlite3_close(store->db);
        if (store->lock_fd >= 0) {
            close(store->lock_fd);
        }
        free(store);
    }
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
        status = store_exec(store, "COMMIT", error);
    }
    if (status != HAR_OK) {
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return status;
}

enum har_status har_store_put_plan(har_store *store, const struct har_entry_record *entries,
                                   size_t count, struct har_error *error)
{
    enum har_status status = store_exec(store, "BEGIN IMMEDIATE; DELETE FROM entry;", error);
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
    w.status = store_exec(store, "BEGIN IMMEDIATE", error);
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
    enum har_status status = store_exec(store, "BEGIN IMMEDIATE", error);
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

enum har_status har_store_add_session(har_store *store, const char *started_at, double seconds,
                                      struct har_error *error)
{
    return store_put(store, error, "INSERT INTO session(started_at, seconds) VALUES(?,?)", "td",
                     started_at, seconds);
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
        "INSERT INTO session(started_at, seconds) SELECT started_at, seconds FROM part.session;";
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
        status = store_exec(store, copies, error);
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
        store_exec(store, "DETACH DATABASE part", status == HAR_OK ? error : NULL);
    return status == HAR_OK ? detached : status;
}

enum har_status har_store_settle(har_store *store, struct har_error *error)
{
    return store_exec(store, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;",
                      error);
}

enum har_status har_store_query(har_store *store, const char *sql, har_store_row *row,
                                void *context, struct har_error *error)
{
    enum { COLUMNS_MAX = 32 };
    char nothing[] = "";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return store_fail(store, error);
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
    const enum har_status status = result == SQLITE_DONE ? HAR_OK : store_fail(store, error);
    sqlite3_finalize(statement);
    return status;
}
