/* Training files: plain, gzip and zstd; lines in order and one by one; damaged files. */
#include <criterion/criterion.h>
#include <isa-l/igzip_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "data_files.h"
#include "eng_text_fixture.h"

struct bytes {
    char *at;
    size_t size;
};

static char *write_file(struct bytes b)
{
    char *const path = fixture_file("");
    FILE *const file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(b.at, 1, b.size, file), b.size);
    cr_assert_eq(fclose(file), 0);
    return path;
}

static struct bytes text(const char *s)
{
    return (struct bytes){strdup(s), strlen(s)};
}

static struct bytes append(struct bytes a, struct bytes b)
{
    char *const at = realloc(a.at, a.size + b.size + 1);
    memcpy(at + a.size, b.at, b.size);
    free(b.at);
    return (struct bytes){at, a.size + b.size};
}

static struct bytes gzip(struct bytes plain)
{
    struct isal_zstream stream;
    struct bytes out = {malloc(plain.size + 1000), plain.size + 1000};
    isal_deflate_stateless_init(&stream);
    stream.gzip_flag = IGZIP_GZIP;
    stream.next_in = (uint8_t *)plain.at;
    stream.avail_in = (uint32_t)plain.size;
    stream.next_out = (uint8_t *)out.at;
    stream.avail_out = (uint32_t)out.size;
    stream.end_of_stream = 1;
    cr_assert_eq(isal_deflate_stateless(&stream), COMP_OK);
    out.size -= stream.avail_out;
    free(plain.at);
    return out;
}

static struct bytes zstd(struct bytes plain)
{
    ZSTD_CCtx *const context = ZSTD_createCCtx();
    struct bytes out = {malloc(ZSTD_compressBound(plain.size)), ZSTD_compressBound(plain.size)};
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    out.size = ZSTD_compress2(context, out.at, out.size, plain.at, plain.size);
    cr_assert(!ZSTD_isError(out.size));
    ZSTD_freeCCtx(context);
    free(plain.at);
    return out;
}

/* Lines as the scan shows them, joined by '|'. */
static enum eng_status collect(const struct eng_line *line, void *context, struct eng_error *error)
{
    char *const out = context;
    (void)error;
    sprintf(out + strlen(out), "%zu:%.*s|", line->number, (int)line->size, line->bytes);
    return ENG_OK;
}

static void expect_lines(struct bytes file, const char *wanted)
{
    char *const path = write_file(file);
    const char *const paths[] = {path};
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    char found[1000] = "";
    char again[1000] = "";
    cr_assert_eq(eng_data_files_open(&files, paths, NULL, 1, &error), ENG_OK, "%s", error.text);
    cr_assert_eq(eng_data_files_scan(&files, collect, found, &error), ENG_OK, "%s", error.text);
    cr_assert_str_eq(found, wanted);
    for (size_t i = 0; i < files.record_count; i++) {
        struct eng_line line;
        cr_assert_eq(eng_data_files_line(&files, i, &line, &error), ENG_OK);
        cr_assert_eq(collect(&line, again, NULL), ENG_OK);
    }
    cr_assert_str_eq(again, wanted);
    eng_data_files_close(&files);
    fixture_remove(path);
    free(file.at);
}

Test(eng_data_files, a_last_line_end_is_optional_and_carriage_returns_are_dropped)
{
    expect_lines(text("a\nbc\r\n\nd"), "1:a|2:bc|3:|4:d|");
    expect_lines(text("a\r\r\nb\r"), "1:a\r|2:b\r|");
    expect_lines(text(""), "");
    expect_lines(text("\n"), "1:|");
}

Test(eng_data_files, all_members_and_frames_are_read_and_lines_cross_their_borders)
{
    expect_lines(gzip(text("a\nb\n")), "1:a|2:b|");
    expect_lines(append(gzip(text("a\nb")), append(gzip(text("")), gzip(text("c\nd\n")))),
                 "1:a|2:bc|3:d|");
    expect_lines(zstd(text("a\nb\n")), "1:a|2:b|");
    expect_lines(append(zstd(text("a\nb")), zstd(text("c\nd"))), "1:a|2:bc|3:d|");
    expect_lines(gzip(text("")), "");
}

/* Content larger than every buffer, of small and of hardly compressible text. */
Test(eng_data_files, large_files_are_unpacked_to_the_last_byte)
{
    enum { LINES = 60000 };
    for (int kind = 0; kind < 4; kind++) {
        struct bytes plain = {malloc(LINES * 20), 0};
        uint64_t state = 1;
        for (size_t i = 0; i < LINES; i++) {
            const uint64_t drawn = kind % 2 == 0 ? 7 : fixture_draw(&state);
            plain.size += (size_t)sprintf(plain.at + plain.size, "%zx%08lx\n", i & 15, drawn >> 32);
        }
        struct bytes copy = {memcpy(malloc(plain.size), plain.at, plain.size), plain.size};
        struct bytes packed = kind < 2 ? gzip(copy) : zstd(copy);
        char *const path = write_file(packed);
        const char *const paths[] = {path};
        struct eng_data_files files = {0};
        cr_assert_eq(eng_data_files_open(&files, paths, NULL, 1, NULL), ENG_OK);
        cr_assert_eq(files.files[0].size, plain.size);
        char *const content = malloc(plain.size);
        cr_assert_eq(pread(files.files[0].descriptor, content, plain.size, 0), (ssize_t)plain.size);
        cr_assert_arr_eq(content, plain.at, plain.size);
        free(content);
        eng_data_files_close(&files);
        fixture_remove(path);
        free(packed.at);
        free(plain.at);
    }
}

static void expect_damage(struct bytes file, const char *cause)
{
    char *const path = write_file(file);
    const char *const paths[] = {path};
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    cr_assert_eq(eng_data_files_open(&files, paths, NULL, 1, &error), ENG_EINPUT, "%s: not refused",
                 cause);
    cr_assert_eq(strncmp(error.text, path, strlen(path)), 0, "%s", error.text);
    cr_assert_neq(strstr(error.text, cause), NULL, "'%s' is not in '%s'", cause, error.text);
    eng_data_files_close(&files);
    fixture_remove(path);
    free(file.at);
}

Test(eng_data_files, damaged_files_are_refused_with_their_name_and_cause)
{
    struct bytes wrong = gzip(text("some text that is packed"));
    wrong.at[wrong.size - 6] ^= 1;
    expect_damage(wrong, "wrong checksum");
    expect_damage(append(gzip(text("a\n")), text("b\n")), "something else than a member");
    struct bytes zeros = gzip(text("a\n"));
    zeros = append(zeros, (struct bytes){calloc(512, 1), 512});
    expect_damage(zeros, "something else than a member");
    for (unsigned flag = 0x20; flag <= 0x80; flag *= 2) {
        wrong = append(gzip(text("a\n")), gzip(text("b\n")));
        wrong.at[wrong.size / 2 + 3] |= (char)flag;
        expect_damage(wrong, "a reserved flag is set");
    }
    wrong = zstd(text("some text that is packed"));
    wrong.at[wrong.size - 2] ^= 1;
    expect_damage(wrong, "checksum");
    expect_damage(append(zstd(text("a\n")), text("b\n")), "byte");
}

/* With a name longer than what is read at once, behind a member and in front of one. */
Test(eng_data_files, a_header_of_a_member_may_have_any_length)
{
    enum { NAME = 300000, HEADER = 10, HAS_NAME = 8 };
    const struct bytes plain = gzip(text("b\n"));
    struct bytes named = {malloc(plain.size + NAME + 1), plain.size + NAME + 1};
    memcpy(named.at, plain.at, HEADER);
    named.at[3] |= HAS_NAME;
    memset(named.at + HEADER, 'n', NAME);
    named.at[HEADER + NAME] = '\0';
    memcpy(named.at + HEADER + NAME + 1, plain.at + HEADER, plain.size - HEADER);
    expect_lines(append(append(gzip(text("a\n")), named), gzip(text("c\n"))), "1:a|2:b|3:c|");
    free(plain.at);
}

/* Nobody writes into the pipe. */
Test(eng_data_files, a_pipe_is_refused_and_not_waited_for, .timeout = 10)
{
    char folder[] = "/tmp/eng_data_files_XXXXXX";
    char path[64];
    cr_assert_neq(mkdtemp(folder), NULL);
    snprintf(path, sizeof path, "%s/pipe", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    const char *const paths[] = {path};
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    cr_assert_eq(eng_data_files_open(&files, paths, NULL, 1, &error), ENG_EIO);
    cr_assert_neq(strstr(error.text, "pipe: not a regular file"), NULL, "%s", error.text);
    eng_data_files_close(&files);
    unlink(path);
    rmdir(folder);
}

/* Every beginning of a packed file but the whole ones is damaged. */
Test(eng_data_files, a_file_cut_anywhere_is_refused)
{
    for (int kind = 0; kind < 2; kind++) {
        const struct bytes plain = text("{\"a\": 1}\n{\"b\": 2}\n");
        const struct bytes packed = kind == 0 ? gzip(plain) : zstd(plain);
        const size_t magic = kind == 0 ? 2 : 4;
        for (size_t cut = magic; cut < packed.size; cut++) {
            expect_damage((struct bytes){memcpy(malloc(cut), packed.at, cut), cut}, "");
        }
        free(packed.at);
    }
}

/* More lines than the index has marks, and lines longer than the windows. */
Test(eng_data_files, lines_are_found_again_whatever_their_number_and_length)
{
    enum { LINES = 70000, LONG = 700000 };
    struct bytes plain = {malloc(LINES * 16 + 3 * LONG), 0};
    size_t *const starts = calloc(LINES + 1, sizeof *starts);
    for (size_t i = 0; i < LINES; i++) {
        starts[i] = plain.size;
        plain.size += (size_t)sprintf(plain.at + plain.size, "%zu", i * 7919 % LINES);
        if (i % 30000 == 11) {
            memset(plain.at + plain.size, 'x', LONG);
            plain.size += LONG;
        }
        plain.at[plain.size++] = '\n';
    }
    starts[LINES] = plain.size;
    char *const path = write_file(plain);
    const char *const paths[] = {path};
    struct eng_data_files files = {0};
    cr_assert_eq(eng_data_files_open(&files, paths, NULL, 1, NULL), ENG_OK);
    size_t shown = 0;
    cr_assert_eq(eng_data_files_scan(&files, fixture_count_line, &shown, NULL), ENG_OK);
    cr_assert_eq(shown, LINES);
    cr_assert_leq(files.files[0].mark_count, 1 << 14);
    cr_assert_gt(files.files[0].stride, 1);
    uint64_t state = 5;
    for (size_t n = 0; n < 3000; n++) {
        const size_t i = n < 3 ? n * 30000 + 11 : (size_t)(fixture_draw(&state) % LINES);
        struct eng_line line;
        cr_assert_eq(eng_data_files_line(&files, i, &line, NULL), ENG_OK);
        cr_assert_eq(line.number, i + 1);
        cr_assert_eq(line.size, starts[i + 1] - starts[i] - 1);
        cr_assert_arr_eq(line.bytes, plain.at + starts[i], line.size);
    }
    eng_data_files_close(&files);
    fixture_remove(path);
    free(plain.at);
    free(starts);
}

Test(eng_data_files, weights_repeat_the_records_of_a_file)
{
    char *const a = fixture_file("1\n2\n");
    char *const b = fixture_file("3\n4\n5\n");
    const char *const paths[] = {a, b};
    static const unsigned weights[] = {3, 2};
    static const size_t wanted[] = {0, 1, 0, 1, 0, 1, 2, 3, 4, 2, 3, 4};
    struct eng_data_files files = {0};
    size_t shown = 0;
    cr_assert_eq(eng_data_files_open(&files, paths, weights, 2, NULL), ENG_OK);
    cr_assert_eq(eng_data_files_scan(&files, fixture_count_line, &shown, NULL), ENG_OK);
    cr_assert_eq(files.record_count, 5);
    cr_assert_eq(files.item_count, 12);
    for (size_t i = 0; i < 12; i++) {
        cr_assert_eq(eng_data_files_record(&files, i), wanted[i]);
    }
    eng_data_files_close(&files);
    fixture_remove(a);
    fixture_remove(b);
}

Test(eng_data_files, a_file_that_shrinks_is_an_error_and_no_crash)
{
    char *const path = fixture_file("");
    const char *const paths[] = {path};
    struct eng_data_files files = {0};
    struct eng_error error = {""};
    struct eng_line line;
    size_t shown = 0;
    FILE *const file = fopen(path, "w");
    for (int i = 0; i < 100000; i++) {
        fprintf(file, "%d\n", i);
    }
    fclose(file);
    cr_assert_eq(eng_data_files_open(&files, paths, NULL, 1, NULL), ENG_OK);
    cr_assert_eq(eng_data_files_scan(&files, fixture_count_line, &shown, NULL), ENG_OK);
    cr_assert_eq(truncate(path, 100), 0);
    cr_assert_eq(eng_data_files_line(&files, 50000, &line, &error), ENG_EIO);
    cr_assert_neq(strstr(error.text, "shorter"), NULL, "%s", error.text);
    eng_data_files_close(&files);
    fixture_remove(path);
}
