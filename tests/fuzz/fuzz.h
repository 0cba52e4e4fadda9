/* What every fuzz target shares. Targets define LLVMFuzzerTestOneInput; libFuzzer or replay_main.c
 * calls it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

_Noreturn void fuzz_failed(const char *condition, const char *file, int line);
/* Called before a broken requirement ends the process; a fuzzer that can be armed has one. */
void fuzz_at_end(void) __attribute__((weak));
/* What must hold for every input: a broken one ends the process, so that the fuzzer keeps the
 * input. */
#define fuzz_require(condition)                                                                    \
    ((condition) ? (void)0 : fuzz_failed(#condition, __FILE__, __LINE__))

/* Memory that a program opens as a file, by path. */
struct fuzz_file {
    int descriptor;
    char path[40];
};
struct fuzz_file fuzz_file_open(const void *bytes, size_t size);
void fuzz_file_close(struct fuzz_file *file);
/* All bytes that were written through the path; the caller frees. */
char *fuzz_file_read(const struct fuzz_file *file, size_t *size);

/* A copy in a block of exactly that size, so that a sanitizer sees reads behind it; free() it. */
char *fuzz_exact(const void *bytes, size_t size);

/* Whether all of it is well-formed UTF-8, by decoding each code point and asking for its only form.
 */
bool fuzz_is_utf8(const char *bytes, size_t size);
/* The code point at bytes, which is well-formed; its length in *length. */
unsigned fuzz_code_point(const char *bytes, size_t *length);

/* Reads numbers off the front of an input; zeros when it is used up. */
struct fuzz_input {
    const uint8_t *at, *end;
};
unsigned fuzz_byte(struct fuzz_input *in);
/* low .. high from one byte. */
int fuzz_between(struct fuzz_input *in, int low, int high);
/* The bytes up to the next 0xFF, which no text holds, or to the end; false when nothing is left. */
bool fuzz_segment(struct fuzz_input *in, const char **bytes, size_t *size);
