/* The database file behind the store. Used by har_store.c and har_store_file.c alone; must not know
 * what is stored. */
#pragma once

#include <limits.h>
#include <sqlite3.h>

#include "har_store.h"

struct har_store {
    sqlite3 *db;
    int lock_fd; /* -1 when reading only */
    char path[PATH_MAX];
};

/* The sentence of SQLite's last error. */
enum har_status har_store_fail(har_store *store, struct har_error *error);
/* Statements without arguments or rows. */
HAR_CHECKED enum har_status har_store_exec(har_store *store, const char *sql,
                                           struct har_error *error);
