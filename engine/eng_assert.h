/* eng_assert(condition): for our own bugs only, on in every build, an expression without side
 * effects. Prints where and exits with status 9, an outcome of its own: never credited to an
 * oracle. */
#pragma once

#include <stdbool.h>

_Noreturn void eng_assert_failed(const char *condition, const char *file, int line);
#define eng_assert(condition)                                                                      \
    ((condition) ? (void)0 : eng_assert_failed(#condition, __FILE__, __LINE__))
