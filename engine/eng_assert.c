/* The end of a process that found its own bug. */
#include "eng_assert.h"

#include <stdio.h>
#include <unistd.h>

void eng_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "faultline-train: %s:%d: assertion failed: %s\n", file, line, condition);
    _exit(9);
}
