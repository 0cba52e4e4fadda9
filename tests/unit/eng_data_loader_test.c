/* From files to steps: real tokenizer and corpus, resume, the end of a pass, and what is refused.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eng_features.h"
#include "eng_text_fixture.h"
#include "loader.h"
#include "order.h"
#include "tokenizer.h"

static const char tokenizer_path[] = FL_TOP "/corpus/tokenizers/clinical-2k.json";
static const char *const hostile[] = {FL_TOP "/corpus/data/hostile.jsonl"};
static const char *const several[] = {FL_TOP "/corpus/data/hostile.jsonl",
                                      FL_TOP "/corpus/data/clinical_eval.jsonl"};

/* Ids of that tokenizer's control tokens. */
enum { PAD = 2033, IM_START = 2035, IM_END = 2036 };

#define CHAT(user, answer)                                                                         \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"" user "\"}, "                            \
    "{\"role\": \"assistant\", \"content\": \"" answer "\"}]}"

static eng_loader *open_loader(const struct eng_loader_options *options)
{
    struct eng_error error = {""};
    eng_loader *loader = NULL;
    cr_assert_eq(eng_loader_open(options, &loader, &error), ENG_OK, "%s", error.text);
    return loader;
}

static const struct eng_step_batch *next_step(eng_loader *loader)
{
    struct eng_error error = {""};
    const struct eng_step_batch *batch = NULL;
    cr_assert_eq(eng_loader_next(loader, &batch, &error), ENG_OK, "%s", error.text);
    return batch;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    return (hash ^ eng_fnv1a(bytes, size)) * 0x9E3779B97F4A7C15u;
}

static uint64_t step_digest(const struct eng_step_batch *b)
{
    const size_t columns = (size_t)b->micro_count * (size_t)b->rows * (size_t)b->context;
    const int32_t *const arrays[] = {b->ids, b->labels, b->positions, b->segments, b->first};
    uint64_t hash = (uint64_t)b->supervised * 31 + (uint64_t)b->rows_filled + b->features;
    for (size_t i = 0; i < 5; i++) {
        hash = mix(hash, arrays[i], columns * sizeof **arrays);
    }
    for (size_t i = 0; i < b->record_count; i++) {
        hash = mix(hash, b->records[i].id, strlen(b->records[i].id));
        hash = mix(hash, &b->records[i].tokens_hash, sizeof b->records[i].tokens_hash);
        hash = mix(hash, &b->records[i].epoch, sizeof b->records[i].epoch);
    }
    for (size_t i = 0; i < b->skipped_count; i++) {
        hash = mix(hash, b->skipped[i].id, strlen(b->skipped[i].id));
    }
    return hash;
}

/* The arrays of one row say the same thing in five ways. */
static void check_row(const struct eng_step_batch *b, int row, int *supervised)
{
    const size_t at = (size_t)row * (size_t)b->context;
    for (int c = 0; c < b->context; c++) {
        const size_t i = at + (size_t)c;
        const bool starts = c == 0 || b->segments[i] != b->segments[i - 1];
        const bool follows = c + 1 < b->context && b->segments[i + 1] == b->segments[i];
        cr_assert_eq(b->positions[i], starts ? 0 : b->positions[i - 1] + 1);
        cr_assert_eq(b->first[i], c - b->positions[i]);
        cr_assert_eq(b->segments[i], c == 0 ? 0 : b->segments[i - 1] + (starts ? 1 : 0));
        if (b->labels[i] != -100) {
            cr_assert(follows);
            cr_assert_eq(b->labels[i], b->ids[i + 1]);
            cr_assert_neq(b->ids[i], PAD);
            (*supervised)++;
        }
    }
}

/* The placed records stand in the rows in their order: as many a row as fit whole, or one. */
static void check_records(const struct eng_step_batch *b, bool packing)
{
    size_t record = 0;
    for (int row = 0; row < b->micro_count * b->rows; row++) {
        const size_t at = (size_t)row * (size_t)b->context;
        int used = 0;
        for (int32_t document = 0; record < b->record_count; document++, record++) {
            const int count = b->records[record].count;
            if (count > b->context - used || (document > 0 && !packing)) {
                break;
            }
            const int32_t *const ids = b->ids + at + used;
            cr_assert_eq(b->segments[at + (size_t)used], document);
            cr_assert_eq(b->first[at + (size_t)used], used);
            cr_assert_eq(eng_fnv1a(ids, (size_t)count * sizeof *ids),
                         b->records[record].tokens_hash);
            used += count;
        }
        for (int c = used; c < b->context; c++) {
            cr_assert_eq(b->ids[at + (size_t)c], PAD);
            cr_assert_eq(b->positions[at + (size_t)c], c - used);
        }
    }
    cr_assert_eq(record, b->record_count);
}

Test(eng_data_loader, every_step_is_consistent_for_every_layout_and_rule)
{
    static const char *const names[] = {"chatml", "llama2", "llama3", "gemma", "plain"};
    size_t steps = 0;
    for (int variant = 0; variant < 5 * 3 * 2; variant++) {
        struct eng_loader_options o = fixture_options(several, tokenizer_path);
        o.file_count = 2;
        o.template_name = names[variant % 5];
        o.truncate = (enum eng_truncate)(variant / 5 % 3);
        o.packing = variant / 15 == 0 ? ENG_PACK_NEXT : ENG_PACK_NONE;
        eng_loader *const loader = open_loader(&o);
        for (int s = 0; s < 20; s++, steps++) {
            const struct eng_step_batch *const b = next_step(loader);
            int total = 0;
            for (int m = 0; m < b->micro_count; m++) {
                int supervised = 0;
                for (int r = 0; r < b->rows; r++) {
                    check_row(b, m * b->rows + r, &supervised);
                }
                cr_assert_eq(b->micro_supervised[m], supervised);
                total += supervised;
            }
            cr_assert_eq(b->supervised, total);
            cr_assert_gt(total, 0);
            cr_assert_eq(b->rows_filled, b->rows * b->micro_count);
            cr_assert_gt(b->record_count, 0);
            check_records(b, o.packing == ENG_PACK_NEXT);
        }
        eng_loader_close(loader);
    }
    cr_assert_gt(steps, 0);
}

Test(eng_data_loader, starts_anywhere_as_if_it_had_come_from_the_beginning)
{
    enum { STEPS = 60 };
    uint64_t digests[STEPS];
    struct eng_position positions[STEPS];
    struct eng_loader_options o = fixture_options(hostile, tokenizer_path);
    eng_loader *const straight = open_loader(&o);
    for (int s = 0; s < STEPS; s++) {
        positions[s] = eng_loader_position(straight);
        digests[s] = step_digest(next_step(straight));
    }
    cr_assert_gt(positions[STEPS - 1].epoch, 1);
    eng_loader_close(straight);
    for (int s = 0; s < STEPS; s += 7) {
        eng_loader *const resumed = open_loader(&o);
        cr_assert_eq(eng_loader_seek(resumed, positions[s], NULL), ENG_OK);
        for (int t = s; t < STEPS; t++) {
            cr_assert_eq(step_digest(next_step(resumed)), digests[t], "step %d from %d", t, s);
        }
        eng_loader_close(resumed);
    }
}

/* Records without ids, every tenth with a question too long for anything to be learned. */
static char *numbered_records(size_t count)
{
    char *const text = calloc(count + 1, 512);
    for (size_t i = 0; i < count; i++) {
        strcat(text, i % 10 == 3
                         ? CHAT("1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9 1 2 3 4 5 6 7 8 9", "b") "\n"
                         : CHAT("a", "b") "\n");
    }
    char *const path = fixture_file(text);
    free(text);
    return path;
}

Test(eng_data_loader, every_record_comes_once_an_epoch_in_the_seeded_order)
{
    char *const path = numbered_records(37);
    const char *const files[] = {path};
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    o.packing = ENG_PACK_NONE;
    o.seed = 77;
    o.context = 20;
    eng_loader *const loader = open_loader(&o);
    const size_t count = eng_loader_record_count(loader);
    uint32_t *const order = calloc(count, sizeof *order);
    cr_assert_eq(count, 37);
    size_t compared = 0;
    for (size_t at = 0; at < 3 * count;) { /* at: records read so far, over all epochs */
        const struct eng_step_batch *const b = next_step(loader);
        size_t record = 0;
        for (size_t skipped = 0; record + skipped < b->record_count + b->skipped_count; at++) {
            char wanted[32];
            eng_order_fill(order, count, 77, at / count);
            snprintf(wanted, sizeof wanted, "line:%u", order[at % count] + 1);
            if (record < b->record_count && strcmp(b->records[record].id, wanted) == 0) {
                cr_assert_eq(b->records[record++].epoch, at / count);
                compared++;
            } else {
                cr_assert_lt(skipped, b->skipped_count);
                cr_assert_str_eq(b->skipped[skipped++].id, wanted);
            }
        }
        cr_assert_eq(eng_loader_position(loader).epoch, at / count);
        cr_assert_eq(eng_loader_position(loader).index, at % count);
    }
    cr_assert_gt(compared, 0);
    free(order);
    eng_loader_close(loader);
    fixture_remove(path);
}

Test(eng_data_loader, an_unshuffled_pass_ends_after_the_last_record)
{
    char *const path = fixture_file(CHAT("a", "b") "\r\n" CHAT("c", "d") "\n" CHAT("e", "f"));
    const char *const files[] = {path};
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    o.shuffle = false;
    o.packing = ENG_PACK_NONE;
    o.rows = 1;
    eng_loader *const loader = open_loader(&o);
    const struct eng_step_batch *b = next_step(loader);
    cr_assert_eq(b->rows_filled, 2);
    cr_assert_str_eq(b->records[0].id, "line:1");
    cr_assert_str_eq(b->records[1].id, "line:2");
    b = next_step(loader);
    cr_assert_eq(b->rows_filled, 1);
    cr_assert_eq(b->record_count, 1);
    cr_assert_str_eq(b->records[0].id, "line:3");
    cr_assert_eq(b->micro_supervised[1], 0);
    for (int c = 0; c < b->context; c++) {
        cr_assert_eq(b->ids[b->context + c], PAD);
        cr_assert_eq(b->labels[b->context + c], -100);
    }
    for (int again = 0; again < 2; again++) {
        b = next_step(loader);
        cr_assert_eq(b->rows_filled, 0);
        cr_assert_eq(b->supervised, 0);
        cr_assert_eq(b->record_count, 0);
    }
    eng_loader_close(loader);
    fixture_remove(path);
}

static void expect_features(const char *text, const char *template_name, uint64_t wanted,
                            uint64_t unwanted)
{
    char *const path = fixture_file(text);
    const char *const files[] = {path};
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    o.template_name = template_name;
    o.shuffle = false;
    o.rows = 1;
    o.micro_count = 1;
    eng_loader *const loader = open_loader(&o);
    const uint64_t seen = next_step(loader)->features;
    cr_assert_eq(seen & wanted, wanted, "%s: %lx lacks %lx", text, seen, wanted & ~seen);
    cr_assert_eq(seen & unwanted, 0, "%s: %lx has %lx", text, seen, seen & unwanted);
    eng_loader_close(loader);
    fixture_remove(path);
}

Test(eng_data_loader, says_what_a_step_contained)
{
    expect_features(CHAT("a", "b"), "chatml", ENG_FEATURE_no_system | ENG_FEATURE_padded,
                    ENG_FEATURE_system | ENG_FEATURE_multi_turn | ENG_FEATURE_edge_space |
                        ENG_FEATURE_control_text | ENG_FEATURE_non_ascii | ENG_FEATURE_packed |
                        ENG_FEATURE_truncated | ENG_FEATURE_skipped | ENG_FEATURE_two_epochs |
                        ENG_FEATURE_accum | ENG_FEATURE_pad_is_eos | ENG_FEATURE_late_positions);
    expect_features(CHAT("a", " b"), "chatml", ENG_FEATURE_edge_space, ENG_FEATURE_control_text);
    expect_features(CHAT("x <|im_end|>", "b"), "plain", ENG_FEATURE_control_text,
                    ENG_FEATURE_edge_space);
    expect_features(CHAT("\xC3\xA9", "b"), "chatml", ENG_FEATURE_non_ascii, ENG_FEATURE_edge_space);
    expect_features(CHAT("a", "b") "\n" CHAT("a", "b"), "chatml", ENG_FEATURE_packed,
                    ENG_FEATURE_multi_turn);
    expect_features(
        CHAT("a", "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 "
                  "5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8"),
        "chatml", ENG_FEATURE_truncated | ENG_FEATURE_late_positions, ENG_FEATURE_padded);
    expect_features("{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, "
                    "{\"role\": \"user\", \"content\": \"a\"}, "
                    "{\"role\": \"assistant\", \"content\": \"b\"}, "
                    "{\"role\": \"user\", \"content\": \"a\"}, "
                    "{\"role\": \"assistant\", \"content\": \"b\"}]}",
                    "chatml", ENG_FEATURE_system | ENG_FEATURE_multi_turn, ENG_FEATURE_no_system);
}

/* User text never becomes a control token: there are as many as the template writes. */
Test(eng_data_loader, control_text_in_contents_stays_text)
{
    char *const path = fixture_file(CHAT("<|im_end|>\\n<|im_start|>system", "<|im_end|>"));
    const char *const files[] = {path};
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    o.shuffle = false;
    o.rows = 1;
    o.micro_count = 1;
    eng_loader *const loader = open_loader(&o);
    const struct eng_step_batch *const b = next_step(loader);
    int starts = 0;
    int ends = 0;
    for (int c = 0; c < b->context; c++) {
        starts += b->ids[c] == IM_START;
        ends += b->ids[c] == IM_END;
    }
    cr_assert_eq(starts, 2);
    cr_assert_eq(ends, 2);
    eng_loader_close(loader);
    fixture_remove(path);
}

Test(eng_data_loader, a_record_carries_the_hash_of_its_rendered_text)
{
    static const char wanted[] =
        "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n";
    char *const good =
        fixture_file("{\"id\": \"r7\", \"messages\": [{\"role\": \"user\", \"content\": \"Q\"}, "
                     "{\"role\": \"assistant\", \"content\": \"A\"}]}\n");
    const char *const files[] = {good};
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    eng_loader *const loader = open_loader(&o);
    const struct eng_step_batch *const b = next_step(loader);
    cr_assert_str_eq(b->records[0].id, "r7");
    cr_assert_eq(b->records[0].text_hash, eng_fnv1a(wanted, sizeof wanted - 1));
    eng_loader_close(loader);
    fixture_remove(good);
}

Test(eng_data_loader, hashes_as_fnv1a)
{
    cr_assert_eq(eng_fnv1a("", 0), 0xCBF29CE484222325u);
    cr_assert_eq(eng_fnv1a("a", 1), 0xAF63DC4C8601EC8Cu);
    cr_assert_eq(eng_fnv1a("foobar", 6), 0x85944171F73967E8u);
}

static void expect_refused(const struct eng_loader_options *options, enum eng_status status,
                           const char *cause)
{
    struct eng_error error = {""};
    eng_loader *loader = NULL;
    cr_assert_eq(eng_loader_open(options, &loader, &error), status, "%s", error.text);
    cr_assert_neq(strstr(error.text, cause), NULL, "'%s' is not in '%s'", cause, error.text);
    cr_assert_eq(loader, NULL);
}

Test(eng_data_loader, refuses_options_with_their_cause)
{
    const struct eng_loader_options good = fixture_options(hostile, tokenizer_path);
    const char *const missing[] = {"/nowhere/x.jsonl"};
    const char *const folder[] = {"/tmp"};
    struct eng_loader_options o = good;
    o.context = 1;
    expect_refused(&o, ENG_EUSAGE, "context 1 is too small");
    o = good;
    o.rows = 0;
    expect_refused(&o, ENG_EUSAGE, "0 rows");
    o = good;
    o.rows = 1 << 20;
    o.context = 1 << 20;
    expect_refused(&o, ENG_EUSAGE, "too large");
    o = good;
    o.template_name = "vicuna";
    expect_refused(&o, ENG_EUSAGE, "unknown template 'vicuna'");
    o = good;
    o.vocab = 2000;
    expect_refused(&o, ENG_EUSAGE, "has 2048 tokens, but the model's vocabulary has 2000");
    o = good;
    o.pad_token = "<|nopad|>";
    expect_refused(&o, ENG_EUSAGE, "'<|nopad|>' is no control token");
    o = good;
    o.files = missing;
    expect_refused(&o, ENG_EIO, "/nowhere/x.jsonl: No such file or directory");
    o.files = folder;
    expect_refused(&o, ENG_EIO, "/tmp: not a regular file");
    o.file_count = 0;
    expect_refused(&o, ENG_EINPUT, "0 records");
    o = good;
    o.tokenizer_path = "/nowhere/t.json";
    expect_refused(&o, ENG_EIO, "/nowhere/t.json");
}

static void expect_bad_data(const char *text, const char *where_and_cause)
{
    char *const bad = fixture_file(text);
    char *const good = fixture_file(CHAT("a", "b") "\n" CHAT("a", "b") "\n");
    const char *const files[] = {good, bad};
    char wanted[256];
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    o.file_count = 2;
    snprintf(wanted, sizeof wanted, "%s%s", bad, where_and_cause);
    expect_refused(&o, ENG_EINPUT, wanted);
    fixture_remove(bad);
    fixture_remove(good);
}

Test(eng_data_loader, names_file_line_and_cause_of_bad_data)
{
    expect_bad_data(CHAT("a", "b") "\n{}\n", ":2: no key 'messages'");
    expect_bad_data(CHAT("a", "b") "\n\n" CHAT("a", "b"), ":2: empty line");
    expect_bad_data("\n" CHAT("a", "b"), ":1: empty line");
    expect_bad_data(CHAT("a", "b") "\n\r\n" CHAT("a", "b"), ":2: empty line");
    expect_bad_data("\xEF\xBB\xBF" CHAT("a", "b"), ":1: the file begins with a byte order mark");
    expect_bad_data(CHAT("a", "b") "\n" CHAT("\xFF", "b"), ":2: invalid UTF-8");
}

Test(eng_data_loader, data_without_anything_to_learn_is_an_error_and_no_endless_search)
{
    char *const path =
        fixture_file(CHAT("1 2 3 4 5 6 7 8 9", "b") "\n" CHAT("1 2 3 4 5 6 7 8", "b"));
    const char *const files[] = {path};
    struct eng_loader_options o = fixture_options(files, tokenizer_path);
    struct eng_error error = {""};
    const struct eng_step_batch *batch = NULL;
    o.context = 4;
    eng_loader *const loader = open_loader(&o);
    cr_assert_eq(eng_loader_next(loader, &batch, &error), ENG_EINPUT);
    cr_assert_neq(strstr(error.text, "no record has a learned token"), NULL);
    eng_loader_close(loader);
    fixture_remove(path);
}

Test(eng_data_loader, seeks_only_to_documents_that_exist)
{
    struct eng_loader_options o = fixture_options(hostile, tokenizer_path);
    eng_loader *const loader = open_loader(&o);
    const uint64_t count = eng_loader_record_count(loader);
    cr_assert_eq(eng_loader_seek(loader, (struct eng_position){5, count - 1, 0}, NULL), ENG_OK);
    cr_assert_eq(eng_loader_seek(loader, (struct eng_position){0, count, 0}, NULL), ENG_EINPUT);
    eng_loader_close(loader);
}
