/* Order, truncation, packing and labels of the second stack on examples small enough to do by
 * hand; sketch and hash check values; the trace writer. */
#include "ref_file.h"
#include "ref_rows.h"
#include "ref_sketch.h"
#include "ref_trace.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int32_t a_ids[] = {10, 11, 12, 13, 14}, b_ids[] = {20, 21}, c_ids[] = {30, 31, 32};
static uint8_t a_marks[] = {0, 0, 1, 0, 1}, b_marks[] = {1, 0}, c_marks[] = {0, 1, 1};
static struct orc_ref_document three[] = {{"a", 1, a_ids, a_marks, 5, 0, 0, 1, false},
                                          {"b", 2, b_ids, b_marks, 2, 0, 0, 2, false},
                                          {"c", 3, c_ids, c_marks, 3, 0, 1, 1, false}};
static const struct orc_ref_documents documents = {three, 3};

/* Fills row `row` of a batch alone. */
static enum orc_ref_status fill_row(struct orc_ref_stream *stream, struct orc_ref_batch *batch,
                                    struct orc_ref_row_log *log, bool *filled,
                                    struct orc_ref_error *error)
{
    size_t rows = 0;
    const struct orc_ref_place place = {batch, 0};
    const enum orc_ref_status status =
        orc_ref_stream_step(stream, &place, 1, log, &rows, error);
    *filled = rows == 1;
    return status;
}

/* Fills one row and compares; every array is compared whole. */
static void expect_row(struct orc_ref_stream *stream, size_t context, struct orc_ref_row_log *log,
                       const int32_t *ids, const int32_t *labels, const int32_t *positions,
                       const int32_t *segments)
{
    struct orc_ref_batch batch;
    bool filled = false;
    cr_assert(orc_ref_batch_init(&batch, 1, context));
    cr_assert_eq(fill_row(stream, &batch, log, &filled, NULL), ORC_REF_OK);
    cr_assert(filled);
    cr_assert_arr_eq(batch.ids, ids, context * sizeof *ids);
    cr_assert_arr_eq(batch.labels, labels, context * sizeof *ids);
    cr_assert_arr_eq(batch.positions, positions, context * sizeof *ids);
    cr_assert_arr_eq(batch.segments, segments, context * sizeof *ids);
    orc_ref_batch_fini(&batch);
}

static struct orc_ref_stream *in_file_order(size_t context, enum orc_ref_packing packing,
                                            enum orc_ref_truncate truncate)
{
    const struct orc_ref_rows_rule rule = {.context = context, .packing = packing,
                                           .truncate = truncate, .pad = 9};
    return orc_ref_stream_create(&documents, &rule);
}

Test(ref_rows, a_packed_row_holds_what_fits_and_padding)
{
    struct orc_ref_row_log log = {0};
    struct orc_ref_stream *const stream = in_file_order(10, ORC_REF_NEXT_FIT, ORC_REF_KEEP_START);
    /* b has only its first token supervised and is skipped. */
    expect_row(stream, 10, &log, (int32_t[]){10, 11, 12, 13, 14, 30, 31, 32, 9, 9},
               (int32_t[]){-100, 12, -100, 14, -100, 31, 32, -100, -100, -100},
               (int32_t[]){0, 1, 2, 3, 4, 0, 1, 2, 0, 1},
               (int32_t[]){0, 0, 0, 0, 0, 1, 1, 1, 2, 2});
    cr_assert_eq(log.placed_count, 2);
    cr_assert_str_eq(log.placed[0].document->id, "a");
    cr_assert_str_eq(log.placed[1].document->id, "c");
    cr_assert_eq(log.skipped_count, 1);
    cr_assert_str_eq(log.skipped[0].document->id, "b");
    cr_assert_eq(log.skipped[0].reason, ORC_REF_UNLEARNED);
    cr_assert_eq(log.skips[ORC_REF_UNLEARNED], 1);
    cr_assert_eq(log.packed_rows, 1);
    cr_assert_eq(log.padded_rows, 1);
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_fini(&log);
}

Test(ref_rows, what_does_not_fit_starts_the_next_row)
{
    struct orc_ref_row_log log = {0};
    struct orc_ref_stream *const stream = in_file_order(7, ORC_REF_NEXT_FIT, ORC_REF_KEEP_START);
    expect_row(stream, 7, &log, (int32_t[]){10, 11, 12, 13, 14, 9, 9},
               (int32_t[]){-100, 12, -100, 14, -100, -100, -100},
               (int32_t[]){0, 1, 2, 3, 4, 0, 1}, (int32_t[]){0, 0, 0, 0, 0, 1, 1});
    orc_ref_row_log_clear(&log);
    expect_row(stream, 7, &log, (int32_t[]){30, 31, 32, 9, 9, 9, 9},
               (int32_t[]){31, 32, -100, -100, -100, -100, -100},
               (int32_t[]){0, 1, 2, 0, 1, 2, 3}, (int32_t[]){0, 0, 0, 1, 1, 1, 1});
    cr_assert_eq(log.placed_count, 1);
    struct orc_ref_batch batch;
    bool filled = true;
    cr_assert(orc_ref_batch_init(&batch, 1, 7));
    cr_assert_eq(fill_row(stream, &batch, &log, &filled, NULL), ORC_REF_OK);
    cr_assert(!filled, "file order has one epoch");
    orc_ref_batch_fini(&batch);
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_fini(&log);
}

Test(ref_rows, without_packing_each_row_has_one_document)
{
    struct orc_ref_row_log log = {0};
    struct orc_ref_stream *const stream = in_file_order(12, ORC_REF_ONE_A_ROW, ORC_REF_KEEP_START);
    int32_t ids[12] = {10, 11, 12, 13, 14, 9, 9, 9, 9, 9, 9, 9}, labels[12], positions[12];
    int32_t segments[12];
    for (int32_t i = 0; i < 12; i++) {
        labels[i] = i == 1 ? 12 : i == 3 ? 14 : -100;
        positions[i] = i < 5 ? i : i - 5;
        segments[i] = i >= 5;
    }
    expect_row(stream, 12, &log, ids, labels, positions, segments);
    cr_assert_eq(log.placed_count, 1);
    cr_assert_eq(log.skipped_count, 0, "nothing is read ahead");
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_fini(&log);
}

Test(ref_rows, truncation_keeps_the_start_the_end_or_nothing)
{
    struct orc_ref_row_log log = {0};
    struct orc_ref_stream *stream = in_file_order(3, ORC_REF_NEXT_FIT, ORC_REF_KEEP_START);
    expect_row(stream, 3, &log, (int32_t[]){10, 11, 12}, (int32_t[]){-100, 12, -100},
               (int32_t[]){0, 1, 2}, (int32_t[]){0, 0, 0});
    cr_assert_eq(log.padded_rows, 0);
    orc_ref_stream_destroy(stream);
    stream = in_file_order(3, ORC_REF_NEXT_FIT, ORC_REF_KEEP_END);
    expect_row(stream, 3, &log, (int32_t[]){12, 13, 14}, (int32_t[]){-100, 14, -100},
               (int32_t[]){0, 1, 2}, (int32_t[]){0, 0, 0});
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_clear(&log);
    stream = in_file_order(3, ORC_REF_NEXT_FIT, ORC_REF_DROP);
    expect_row(stream, 3, &log, (int32_t[]){30, 31, 32}, (int32_t[]){31, 32, -100},
               (int32_t[]){0, 1, 2}, (int32_t[]){0, 0, 0});
    cr_assert_eq(log.skipped_count, 2);
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_fini(&log);
}

Test(ref_rows, data_without_anything_to_learn_is_an_error)
{
    struct orc_ref_row_log log = {0};
    struct orc_ref_batch batch;
    struct orc_ref_error error;
    bool filled;
    const struct orc_ref_documents only_b = {&three[1], 1}, none = {three, 0};
    const struct orc_ref_rows_rule rule = {.context = 4, .packing = ORC_REF_NEXT_FIT, .shuffle = true};
    cr_assert(orc_ref_batch_init(&batch, 1, 4));
    struct orc_ref_stream *stream = orc_ref_stream_create(&only_b, &rule);
    cr_assert_eq(fill_row(stream, &batch, &log, &filled, &error), ORC_REF_BAD);
    orc_ref_stream_destroy(stream);
    stream = orc_ref_stream_create(&none, &rule);
    cr_assert_eq(fill_row(stream, &batch, &log, &filled, &error), ORC_REF_BAD);
    orc_ref_stream_destroy(stream);
    orc_ref_batch_fini(&batch);
    orc_ref_row_log_fini(&log);
}

/* SplitMix64 from state 0 gives e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f,
 * f88bb8a8724c81ec (published test values of its author's code). For four records and seed 0:
 * e220a8397b1dcdaf mod 4 = 3, 6e789e6aa1b965f4 mod 3 = 2, 06c45d188009454f mod 2 = 1. */
Test(ref_rows, the_order_follows_split_mix)
{
    size_t p[4];
    const uint64_t first = UINT64_C(0xe220a8397b1dcdaf), second = UINT64_C(0x6e789e6aa1b965f4);
    const uint64_t third = UINT64_C(0x06c45d188009454f);
    size_t want[4] = {0, 1, 2, 3};
    const size_t with[3] = {(size_t)(first % 4), (size_t)(second % 3), (size_t)(third % 2)};
    for (size_t n = 0; n < 3; n++) {
        const size_t i = 3 - n, kept = want[i];
        want[i] = want[with[n]];
        want[with[n]] = kept;
    }
    orc_ref_order_epoch(0, 0, 4, p);
    cr_assert_arr_eq(p, want, sizeof p);
}

Test(ref_rows, each_epoch_is_a_permutation_of_its_own)
{
    enum { COUNT = 50 };
    size_t first[COUNT], second[COUNT], other[COUNT];
    orc_ref_order_epoch(7, 0, COUNT, first);
    orc_ref_order_epoch(7, 1, COUNT, second);
    orc_ref_order_epoch(8, 0, COUNT, other);
    unsigned char seen[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_lt(second[i], COUNT);
        cr_assert_eq(seen[second[i]]++, 0);
    }
    cr_assert_arr_neq(first, second, sizeof first);
    cr_assert_arr_neq(first, other, sizeof first);
}

Test(ref_rows, epochs_follow_one_another)
{
    struct orc_ref_row_log log = {0};
    struct orc_ref_batch batch;
    bool filled;
    size_t order[2][3];
    const struct orc_ref_rows_rule rule = {.context = 10, .packing = ORC_REF_ONE_A_ROW, .shuffle = true,
                                           .seed = 5};
    for (uint64_t epoch = 0; epoch < 2; epoch++)
        orc_ref_order_epoch(5, epoch, 3, order[epoch]);
    cr_assert(orc_ref_batch_init(&batch, 1, 10));
    struct orc_ref_stream *const stream = orc_ref_stream_create(&documents, &rule);
    for (size_t row = 0; row < 4; row++)
        cr_assert_eq(fill_row(stream, &batch, &log, &filled, NULL), ORC_REF_OK);
    cr_assert_eq(log.placed_count, 4);
    size_t at = 0;
    for (size_t epoch = 0; epoch < 2; epoch++)
        for (size_t i = 0; i < 3; i++) {
            const struct orc_ref_document *const document = &three[order[epoch][i]];
            if (document == &three[1])
                continue;
            cr_assert_eq(log.placed[at].document, document);
            cr_assert_eq(log.placed[at].epoch, epoch);
            at++;
        }
    cr_assert_eq(at, 4);
    orc_ref_stream_destroy(stream);
    orc_ref_batch_fini(&batch);
    orc_ref_row_log_fini(&log);
}

/* ---- sketch, hash ---- */

Test(ref_sketch, signs_have_the_documented_check_values)
{
    static const struct {
        size_t index;
        unsigned hash;
    } values[] = {{0, 0},   {1, 10},  {2, 130}, {3, 211},   {4, 160},
                  {5, 100}, {6, 244}, {7, 192}, {4096, 54}, {1000003, 151}};
    double *const x = calloc(1000004, sizeof *x);
    cr_assert_not_null(x);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        x[values[i].index] = 3.0;
        struct orc_ref_sketch sketch = {.data = x, .count = values[i].index + 1};
        orc_ref_sketch_compute(&sketch);
        x[values[i].index] = 0.0;
        cr_assert(sketch.result[0] == 3.0);
        for (unsigned j = 0; j < 8; j++)
            cr_assert(sketch.result[1 + j] == (values[i].hash >> j & 1U ? 3.0 : -3.0));
        cr_assert(sketch.result[9] == 0.0);
    }
    free(x);
}

Test(ref_sketch, counts_what_is_not_finite)
{
    const double x[] = {1.0, NAN, -INFINITY, 2.0, INFINITY, -0.0};
    struct orc_ref_sketch sketch = {.data = x, .count = 6};
    orc_ref_sketch_compute(&sketch);
    cr_assert(sketch.result[9] == 3.0);
    cr_assert(isnan(sketch.result[0]));
    sketch.count = 1;
    orc_ref_sketch_compute(&sketch);
    cr_assert(sketch.result[9] == 0.0);
    sketch.count = 0;
    orc_ref_sketch_compute(&sketch);
    cr_assert(sketch.result[0] == 0.0 && sketch.result[1] == 0.0);
}

/* Published values of FNV-1a 64: "", "a", "foobar". */
Test(ref_hash, matches_published_values)
{
    cr_assert_eq(orc_ref_hash(ORC_REF_HASH_START, "", 0), UINT64_C(0xcbf29ce484222325));
    cr_assert_eq(orc_ref_hash(ORC_REF_HASH_START, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
    cr_assert_eq(orc_ref_hash(ORC_REF_HASH_START, "foobar", 6), UINT64_C(0x85944171f73967e8));
    const int32_t words[] = {-100, 0x61626364};
    cr_assert_eq(orc_ref_hash_ints(words, 2),
                 orc_ref_hash(ORC_REF_HASH_START, "\x9c\xff\xff\xff\x64\x63\x62\x61", 8));
}

/* ---- trace writer ---- */

Test(ref_trace, writes_json_lines)
{
    char path[] = "/tmp/orc_ref_trace_XXXXXX";
    struct orc_ref_trace *trace = NULL;
    char *text = NULL;
    size_t bytes = 0;
    (void)close(mkstemp(path));
    cr_assert_eq(orc_ref_trace_open(path, &trace, NULL), ORC_REF_OK);
    orc_ref_trace_open_object(trace, NULL);
    orc_ref_trace_text(trace, "a\"\n\\", "\x01\xc3\xa9");
    orc_ref_trace_open_array(trace, "b");
    orc_ref_trace_number(trace, NULL, NAN);
    orc_ref_trace_number(trace, NULL, -INFINITY);
    orc_ref_trace_number(trace, NULL, 0.1);
    orc_ref_trace_integer(trace, NULL, -100);
    orc_ref_trace_hash(trace, NULL, 0xAB);
    orc_ref_trace_close_array(trace);
    orc_ref_trace_null(trace, "c");
    orc_ref_trace_close_object(trace);
    cr_assert_eq(orc_ref_trace_write(trace, NULL), ORC_REF_OK);
    cr_assert_eq(orc_ref_trace_close(trace, NULL), ORC_REF_OK);
    cr_assert_eq(orc_ref_file_read(path, &text, &bytes, NULL), ORC_REF_OK);
    cr_assert_str_eq(text, "{\"a\\\"\\u000a\\\\\":\"\\u0001\xc3\xa9\",\"b\":[\"nan\",\"-inf\","
                           "0.10000000000000001,-100,\"00000000000000ab\"],\"c\":null}\n");
    free(text);
    (void)unlink(path);
}

Test(ref_trace, reports_what_cannot_be_written)
{
    struct orc_ref_trace *trace = NULL;
    struct orc_ref_error error = {""};
    cr_assert_eq(orc_ref_trace_open("/nonexistent/x", &trace, &error), ORC_REF_IO);
    cr_assert(strstr(error.text, "/nonexistent/x") != NULL);
    cr_assert_eq(orc_ref_trace_open("/dev/full", &trace, &error), ORC_REF_OK);
    orc_ref_trace_open_object(trace, NULL);
    orc_ref_trace_close_object(trace);
    cr_assert_eq(orc_ref_trace_write(trace, &error), ORC_REF_IO);
    cr_assert_eq(orc_ref_trace_close(trace, NULL), ORC_REF_OK);
}

/* Two rows filled as one step. */
static void expect_step(enum orc_ref_packing packing, const size_t *weights, const int32_t *ids,
                        const int32_t *labels, size_t placed)
{
    enum { CONTEXT = 5 };
    const char *const files[] = {"one", "two"};
    const struct orc_ref_rows_rule rule = {.context = CONTEXT, .packing = packing, .pad = 9,
                                           .files = files, .weights = weights, .file_count = 2};
    struct orc_ref_stream *const stream = orc_ref_stream_create(&documents, &rule);
    struct orc_ref_row_log log = {0};
    struct orc_ref_batch batch;
    size_t filled = 0;
    cr_assert(orc_ref_batch_init(&batch, 2, CONTEXT));
    const struct orc_ref_place rows[] = {{&batch, 0}, {&batch, 1}};
    cr_assert_eq(orc_ref_stream_step(stream, rows, 2, &log, &filled, NULL), ORC_REF_OK);
    cr_assert_eq(filled, 2);
    cr_assert_eq(log.placed_count, placed);
    cr_assert_arr_eq(batch.ids, ids, 2 * CONTEXT * sizeof *ids);
    cr_assert_arr_eq(batch.labels, labels, 2 * CONTEXT * sizeof *ids);
    orc_ref_batch_fini(&batch);
    orc_ref_row_log_fini(&log);
    orc_ref_stream_destroy(stream);
}

Test(ref_rows, first_fit_fills_the_rows_of_a_step_together)
{
    expect_step(ORC_REF_FIRST_FIT, NULL, (int32_t[]){10, 11, 12, 13, 14, 30, 31, 32, 9, 9},
                (int32_t[]){-100, 12, -100, 14, -100, 31, 32, -100, -100, -100}, 2);
}

Test(ref_rows, wrapped_rows_split_a_document_and_keep_its_label)
{
    /* a fills the first row; b is skipped; c follows. In a context of 4 a is split. */
    const struct orc_ref_rows_rule rule = {.context = 4, .packing = ORC_REF_WRAPPED, .pad = 9};
    struct orc_ref_stream *const stream = orc_ref_stream_create(&documents, &rule);
    struct orc_ref_row_log log = {0};
    expect_row(stream, 4, &log, (int32_t[]){10, 11, 12, 13}, (int32_t[]){-100, 12, -100, 14},
               (int32_t[]){0, 1, 2, 3}, (int32_t[]){0, 0, 0, 0});
    expect_row(stream, 4, &log, (int32_t[]){14, 30, 31, 32}, (int32_t[]){-100, 31, 32, -100},
               (int32_t[]){0, 0, 1, 2}, (int32_t[]){0, 1, 1, 1});
    cr_assert_eq(log.placed_count, 3);
    cr_assert_eq(log.placed[1].document, &three[0]);
    cr_assert_eq(log.placed[1].count, 1);
    cr_assert_eq(log.split, 1);
    orc_ref_stream_destroy(stream);
    orc_ref_row_log_fini(&log);
}

Test(ref_rows, a_weight_repeats_the_documents_of_its_file)
{
    const char *const files[] = {"one", "two"};
    const size_t weights[] = {1, 3};
    const struct orc_ref_rows_rule rule = {.context = 10, .packing = ORC_REF_ONE_A_ROW, .files = files,
                                           .weights = weights, .file_count = 2, .shuffle = true};
    struct orc_ref_stream *const stream = orc_ref_stream_create(&documents, &rule);
    struct orc_ref_row_log log = {0};
    struct orc_ref_batch batch;
    size_t of_c = 0;
    bool filled;
    cr_assert(orc_ref_batch_init(&batch, 1, 10));
    for (size_t row = 0; row < 4; row++)
        cr_assert_eq(fill_row(stream, &batch, &log, &filled, NULL), ORC_REF_OK);
    for (size_t i = 0; i < log.placed_count; i++)
        of_c += log.placed[i].document == &three[2] && log.placed[i].epoch == 0;
    cr_assert_eq(of_c, 3);
    orc_ref_stream_destroy(stream);
    orc_ref_batch_fini(&batch);
    orc_ref_row_log_fini(&log);
}

Test(ref_rows, the_cipher_is_a_permutation_of_every_size)
{
    enum { LARGEST = 70 };
    for (size_t count = 1; count <= LARGEST; count++) {
        size_t p[LARGEST];
        unsigned char seen[LARGEST] = {0};
        orc_ref_order_cipher(7, 1, count, p);
        for (size_t n = 0; n < count; n++) {
            cr_assert_lt(p[n], count);
            cr_assert_eq(seen[p[n]]++, 0);
        }
    }
}

Test(ref_rows, rules_that_ask_for_an_error_name_file_and_line)
{
    struct orc_ref_document broken = three[0];
    const struct orc_ref_documents only = {&broken, 1}, unlearned = {&three[1], 1};
    const char *const files[] = {"data.jsonl"};
    struct orc_ref_rows_rule rule = {.context = 10, .packing = ORC_REF_NEXT_FIT, .files = files,
                                     .file_count = 1, .on_unlearned = ORC_REF_REFUSE_UNLEARNED,
                                     .on_prefix = ORC_REF_REFUSE_PREFIX};
    const struct orc_ref_documents *const cases[] = {&only, &unlearned};
    static const char *const wanted[] = {"data.jsonl:1: its prompt", "data.jsonl:2: no token"};
    broken.no_prefix = true;
    for (size_t i = 0; i < 2; i++) {
        struct orc_ref_stream *const stream = orc_ref_stream_create(cases[i], &rule);
        struct orc_ref_row_log log = {0};
        struct orc_ref_batch batch;
        struct orc_ref_error error = {""};
        bool filled;
        cr_assert(orc_ref_batch_init(&batch, 1, 10));
        cr_assert_eq(fill_row(stream, &batch, &log, &filled, &error), ORC_REF_BAD);
        cr_assert_eq(strncmp(error.text, wanted[i], strlen(wanted[i])), 0, "%s", error.text);
        orc_ref_batch_fini(&batch);
        orc_ref_row_log_fini(&log);
        orc_ref_stream_destroy(stream);
    }
}
