/* Status names, exit codes and their precedence.
 * Called by every harness module; must not know any of them. */
#include "har_status.h"

#include <stdarg.h>
#include <stdio.h>

enum har_status har_fail(struct har_error *error, enum har_status status, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
    }
    return status;
}

int har_status_exit_code(enum har_status status)
{
    switch (status) {
#define HAR_ROW_(name, exit_code, text)                                                            \
    case HAR_##name:                                                                               \
        return exit_code;
        HAR_STATUS(HAR_ROW_)
#undef HAR_ROW_
    case HAR_OK:
        break;
    }
    return 0;
}

const char *har_status_text(enum har_status status)
{
    switch (status) {
#define HAR_ROW_(name, exit_code, text)                                                            \
    case HAR_##name:                                                                               \
        return text;
        HAR_STATUS(HAR_ROW_)
#undef HAR_ROW_
    case HAR_OK:
        break;
    }
    return "ok";
}

enum har_status har_status_worse(enum har_status a, enum har_status b)
{
    if (a == HAR_OK || b == HAR_OK) {
        return a == HAR_OK ? b : a;
    }
    return a < b ? a : b; /* the list runs from the highest precedence to the lowest */
}
