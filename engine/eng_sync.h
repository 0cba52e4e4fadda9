/* What must outlive the machine. Called by engine/train after it has written files; must not know
 * what is in them. */
#pragma once

#include "eng_status.h"

/* Waits until a file's contents, or a folder's entries, are on the disk. */
ENG_CHECKED enum eng_status eng_sync(const char *path, struct eng_error *error);
