/* Status and error text of the second stack. Used by every file here; knows nothing of the
 * engine: its own status enum stands beside the engine's on purpose (README.md). */
#pragma once

#define ORC_REF_STATUSES(S)                                                                        \
    S(OK, 0, "done")                                                                               \
    S(BAD, 1, "usage, recipe, weights or data are wrong")                                          \
    S(INTERNAL, 70, "out of memory or a fault of this program")                                    \
    S(IO, 74, "input or output failed")                                                            \
    S(INTERRUPTED, 130, "interrupted")

#define ORC_REF_ENUM(name, exit_code, meaning) ORC_REF_##name = exit_code,

/* Value = exit code of the program. */
enum orc_ref_status { ORC_REF_STATUSES(ORC_REF_ENUM) };

#define ORC_REF_MUST_USE __attribute__((warn_unused_result))

/* Caller-owned text of the last failure: file, line where there is one, cause. */
struct orc_ref_error {
    char text[1024];
};

/* Writes the text and returns the status, so that `return orc_ref_fail(...)` reads well.
 * error may be NULL. */
enum orc_ref_status orc_ref_fail(struct orc_ref_error *error, enum orc_ref_status status,
                                 const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Meaning of a status, for --help. */
const char *orc_ref_status_meaning(enum orc_ref_status status);

/* For our own bugs only: on in every build, ends the process with 70 and the place. */
#define ORC_REF_ASSERT(condition)                                                                  \
    ((condition) ? (void)0 : orc_ref_assert_failed(#condition, __FILE__, __LINE__))

_Noreturn void orc_ref_assert_failed(const char *condition, const char *file, int line);
