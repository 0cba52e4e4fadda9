/* Status and error text. See ref_error.h. */
#include "ref_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum orc_ref_status orc_ref_fail(struct orc_ref_error *error, enum orc_ref_status status,
                                 const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
    }
    return status;
}

const char *orc_ref_status_meaning(enum orc_ref_status status)
{
#define MEANING(name, exit_code, meaning)                                                          \
    case ORC_REF_##name:                                                                           \
        return meaning;
    switch (status) {
        ORC_REF_STATUSES(MEANING)
    }
#undef MEANING
    return "unknown";
}

_Noreturn void orc_ref_assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "faultline-ref: %s:%d: broken assumption: %s\n", file, line, condition);
    _exit(ORC_REF_INTERNAL);
}
