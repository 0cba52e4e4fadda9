/* Texts and exit codes of the engine's statuses. Called everywhere in engine; knows no module. */
#include "eng_status.h"

#include <stdarg.h>
#include <stdio.h>

/* Names and texts of files stand in messages: no control character of theirs reaches a terminal. */
static void one_line(char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        *text = c < 0x20 || c == 0x7F ? ' ' : *text;
    }
}

enum eng_status eng_fail(struct eng_error *error, enum eng_status status, const char *format, ...)
{
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        one_line(error->text);
    }
    return status;
}

int eng_status_exit_code(enum eng_status status)
{
    static const int codes[] = {
#define ENG_ROW_(name, exit_code, text) exit_code,
        ENG_STATUS(ENG_ROW_)
#undef ENG_ROW_
    };
    return codes[status];
}

const char *eng_status_text(enum eng_status status)
{
    static const char *const texts[] = {
#define ENG_ROW_(name, exit_code, text) text,
        ENG_STATUS(ENG_ROW_)
#undef ENG_ROW_
    };
    return texts[status];
}
