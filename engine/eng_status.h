/* Status of fallible engine functions and the caller-owned error text.
 * Used by every engine module above the device; must not know any of them. */
#pragma once

#include <stddef.h>

/* name, process exit code of the trainer, meaning */
#define ENG_STATUS(X)                                                                              \
    X(OK, 0, "ok")                                                                                 \
    X(EUSAGE, 1, "usage or configuration")                                                         \
    X(EINPUT, 1, "bad input")                                                                      \
    X(EDEVICEMEM, 8, "device memory refused")                                                      \
    X(EDEVICE, 70, "device error")                                                                 \
    X(EHOSTMEM, 70, "host memory exhausted")                                                       \
    X(EINTERNAL, 70, "internal error")                                                             \
    X(EIO, 74, "input/output")                                                                     \
    X(EINTERRUPTED, 130, "interrupted")
/* A failed own assertion exits with 9, see eng_assert.h; memory touched in guard mode with 10. */

enum eng_status {
#define ENG_ROW_(name, exit_code, text) ENG_##name,
    ENG_STATUS(ENG_ROW_)
#undef ENG_ROW_
};
#define ENG_CHECKED __attribute__((warn_unused_result))

/* Why a call failed: one sentence that names file, line and cause where they exist. */
struct eng_error {
    char text[512];
};

/* Formats into error (may be NULL) and returns status, so that callers can `return eng_fail(...)`.
 */
enum eng_status eng_fail(struct eng_error *error, enum eng_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int eng_status_exit_code(enum eng_status status);
const char *eng_status_text(enum eng_status status);
