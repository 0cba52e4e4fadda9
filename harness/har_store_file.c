/* Opens and closes the database: write-ahead log, lock, recovery, folders that nobody may write.
 * Called through har_store.h; must not know what is stored. */
#include "har_store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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
    " seconds REAL);"
    "CREATE TABLE IF NOT EXISTS spent(what TEXT, name TEXT, amount REAL);";

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
        const enum har_status status = har_store_fail(store, error);
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
    status = har_store_exec(*out, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;", error);
    if (status == HAR_OK) {
        status = har_store_exec(*out, tables, error);
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
    const enum har_status status = har_store_exec(store, "SELECT count(*) FROM cases", error);
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
