/* Status of fallible harness functions, their process exit codes, and the caller-owned error text.
 * Used by every harness module; must not know any of them. */
#pragma once

#include <stddef.h>

/* name, exit code of the faultline program, meaning; from the highest precedence to the lowest */
#define HAR_STATUS(X)                                                                              \
    X(EINTERRUPTED, 130, "interrupted; what was finished is stored")                               \
    X(EINTERNAL, 70, "internal error")                                                             \
    X(EMEMORY, 70, "host memory exhausted")                                                        \
    X(EIO, 74, "input/output")                                                                     \
    X(EUSAGE, 1, "usage or configuration")                                                         \
    X(EMISMATCH, 6, "stored results belong to another plan")                                       \
    X(ECONTROL, 5, "a control failed; the harness cannot be trusted")                              \
    X(EALARM, 4, "a healthy run raised an alarm")                                                  \
    X(EINCOMPLETE, 3, "incomplete, or a run without verdict")                                      \
    X(EGATE, 2, "below the gate")                                                                  \
    X(EDIFFER, 2, "the traces differ (diff)")

enum har_status {
    HAR_OK,
#define HAR_ROW_(name, exit_code, text) HAR_##name,
    HAR_STATUS(HAR_ROW_)
#undef HAR_ROW_
};
#define HAR_CHECKED __attribute__((warn_unused_result))

/* Why a call failed: one sentence that names file, line and cause where they exist. */
struct har_error {
    char text[1024];
};

/* Formats into error (may be NULL) and returns status, so that callers can `return har_fail(...)`.
 */
enum har_status har_fail(struct har_error *error, enum har_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int har_status_exit_code(enum har_status status);
const char *har_status_text(enum har_status status);
/* The one of two that decides the exit code. */
enum har_status har_status_worse(enum har_status a, enum har_status b);
