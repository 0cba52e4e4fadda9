/* Descendants that outlive their child process: found and killed.
 * Used by har_spawn.c and har_pool.c; must not know what a child computes.
 *
 * A child's process group is killed with it. A descendant that left the group (setsid) is adopted
 * by this process when its parent dies, since this process is a subreaper, and known by a mark in
 * its environment. What cleared its environment is killed when no child runs any more. Limits: a
 * descendant of another user cannot be killed; a kernel without CONFIG_PROC_CHILDREN lists no
 * children, and then only the group is killed. */
#pragma once

#include <stddef.h>

enum { HAR_SWEEP_MARK_SIZE = 64 };

/* Makes orphans of this process's descendants its own children. */
void har_sweep_adopt(void);
/* A mark no other child has: "NAME=VALUE" for its environment. */
void har_sweep_mark(char mark[HAR_SWEEP_MARK_SIZE]);
/* The environment of this process with the mark; caller frees the array alone. NULL = no memory. */
char **har_sweep_environment(char *mark);
/* Kills and reaps the adopted children with this mark; NULL = every child of this process. */
void har_sweep_orphans(const char *mark);
