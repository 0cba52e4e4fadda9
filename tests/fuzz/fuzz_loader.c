/* The loader, files to batches, against a naive version of corpus/RECIPE.md: order, mask,
 * truncation, skips, rows, labels, resume. The input draws the options, then gives contents between
 * 0xFF, two a record. Rendering and tokens have targets of their own and are taken from the engine
 * here. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_vocab.h"
#include "loader.h"
#include "tokenizer.h"

enum { RECORDS_MAX = 24, TOKENS_MAX = 512, COLUMNS_MAX = 512, PLACED_MAX = 256, STEPS = 4 };
enum { SKIPPED_MAX = PLACED_MAX * 2 * RECORDS_MAX };

static const char tokenizer_text[] =
    "{\"model\":{\"vocab\":{@BYTES@,\"aa\":256,\"ab\":257,\"aaab\":258},\"merges\":[\"a a\",\"a "
    "b\","
    "\"aa ab\"]},\"added_tokens\":[{\"content\":\"<|im_start|>\",\"id\":259,\"special\":true},"
    "{\"content\":\"<|im_end|>\",\"id\":260,\"special\":true},{\"content\":\"<|pad|>\",\"id\":261,"
    "\"special\":true}]}";
enum { VOCAB = 262, PAD = 261 };

struct document {
    int32_t ids[TOKENS_MAX];
    bool supervised[TOKENS_MAX];
    size_t count;
    bool skipped;
};

struct naive {
    const struct eng_loader_options *options;
    struct document documents[RECORDS_MAX];
    size_t record_count;
    uint64_t position; /* records taken from the endless stream */
    int32_t ids[COLUMNS_MAX], labels[COLUMNS_MAX], positions[COLUMNS_MAX], segments[COLUMNS_MAX];
    size_t placed[PLACED_MAX], placed_count; /* records of this step, in order */
    uint64_t epochs[PLACED_MAX];
    size_t skipped[SKIPPED_MAX], skipped_count;
    int rows_filled;
};

/* ---- the files ---- */

static char *put_json_text(char *at, const char *bytes, size_t size)
{
    *at++ = '"';
    for (size_t i = 0; i < size; i++) {
        at += sprintf(at,
                      (unsigned char)bytes[i] < 0x20 || bytes[i] == '"' || bytes[i] == '\\'
                          ? "\\u%04x"
                          : "%c",
                      bytes[i]);
    }
    *at++ = '"';
    return at;
}

struct contents {
    const char *bytes[2];
    size_t sizes[2];
};

static size_t read_contents(struct fuzz_input *in, struct contents *list)
{
    size_t count = 0;
    while (count < RECORDS_MAX && fuzz_segment(in, &list[count].bytes[0], &list[count].sizes[0])) {
        if (!fuzz_segment(in, &list[count].bytes[1], &list[count].sizes[1])) {
            list[count].bytes[1] = "";
            list[count].sizes[1] = 0;
        }
        for (int i = 0; i < 2; i++) {
            if (!fuzz_is_utf8(list[count].bytes[i], list[count].sizes[i]) ||
                list[count].sizes[i] > TOKENS_MAX / 4) {
                return 0;
            }
        }
        count++;
    }
    return count;
}

static struct fuzz_file write_data(const struct contents *list, size_t count)
{
    static char text[RECORDS_MAX * (12 * TOKENS_MAX + 200)];
    char *at = text;
    for (size_t i = 0; i < count; i++) {
        at += sprintf(at, "{\"messages\":[{\"role\":\"user\",\"content\":");
        at = put_json_text(at, list[i].bytes[0], list[i].sizes[0]);
        at += sprintf(at, "},{\"role\":\"assistant\",\"content\":");
        at = put_json_text(at, list[i].bytes[1], list[i].sizes[1]);
        at += sprintf(at, "}]}\n");
    }
    return fuzz_file_open(text, (size_t)(at - text));
}

/* ---- the naive version ---- */

static void make_document(const struct eng_loader_options *o, eng_tokenizer *tokenizer,
                          const struct contents *c, struct document *d)
{
    enum eng_layout layout = ENG_LAYOUT_COUNT;
    const struct eng_message messages[] = {{ENG_ROLE_USER, {c->bytes[0], c->sizes[0]}},
                                           {ENG_ROLE_ASSISTANT, {c->bytes[1], c->sizes[1]}}};
    struct eng_rendered r = {0};
    struct eng_tokens tokens = {0};
    fuzz_require(eng_layout_find(o->template_name, &layout, NULL) == ENG_OK);
    fuzz_require(eng_layout_render(layout, messages, 2, &r, NULL) == ENG_OK);
    fuzz_require(eng_tokenizer_encode(tokenizer, &r, &tokens, NULL) == ENG_OK);
    const size_t context = (size_t)o->context;
    const size_t total = tokens.count;
    size_t first = 0;
    size_t end = total;
    if (total > context) {
        first = o->truncate == ENG_KEEP_START ? 0 : total - context;
        end = o->truncate == ENG_DROP ? first : first + context;
    }
    d->count = end - first;
    d->skipped = true;
    for (size_t i = first; i < end; i++) {
        const uint32_t byte = tokens.items[i].start;
        bool learned = o->mask == ENG_MASK_ALL;
        for (size_t s = 0; s < r.answer_count; s++) {
            learned = learned || (byte >= r.answers[s].start && byte < r.answers[s].end);
        }
        d->ids[i - first] = tokens.items[i].id;
        d->supervised[i - first] = learned;
        d->skipped = d->skipped && !(learned && i > first);
    }
    eng_tokens_fini(&tokens);
    eng_rendered_fini(&r);
}

static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* The record at a place of the endless stream, its permutation drawn anew each time; record_count
 * when an unshuffled stream is over. */
static size_t record_at(const struct naive *n, uint64_t position)
{
    size_t order[RECORDS_MAX];
    if (!n->options->shuffle) {
        return position < n->record_count ? (size_t)position : n->record_count;
    }
    const uint64_t epoch = position / n->record_count;
    uint64_t state = n->options->seed * 0x9E3779B97F4A7C15u + epoch * 0xD1B54A32D192ED03u;
    for (size_t i = 0; i < n->record_count; i++) {
        order[i] = i;
    }
    for (size_t i = n->record_count - 1; i > 0; i--) {
        const size_t j = (size_t)(split_mix(&state) % (i + 1));
        const size_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return order[position % n->record_count];
}

static void place(struct naive *n, int base, int *used, int document, size_t record)
{
    const struct document *const d = &n->documents[record];
    for (size_t i = 0; i < d->count; i++) {
        const int c = base + (*used)++;
        n->ids[c] = d->ids[i];
        n->labels[c] = i + 1 < d->count && d->supervised[i + 1] ? d->ids[i + 1] : -100;
        n->positions[c] = (int32_t)i;
        n->segments[c] = document;
    }
    fuzz_require(n->placed_count < PLACED_MAX);
    n->epochs[n->placed_count] = n->options->shuffle ? n->position / n->record_count : 0;
    n->placed[n->placed_count++] = record;
    n->position++;
}

static void fill_row(struct naive *n, int row)
{
    const int context = n->options->context;
    const int base = row * context;
    int used = 0;
    int documents = 0;
    while (n->options->packing || documents == 0) {
        size_t record = record_at(n, n->position);
        while (record < n->record_count && n->documents[record].skipped) {
            fuzz_require(n->skipped_count < SKIPPED_MAX);
            n->skipped[n->skipped_count++] = record;
            record = record_at(n, ++n->position);
        }
        if (record == n->record_count || (int)n->documents[record].count > context - used) {
            break;
        }
        place(n, base, &used, documents++, record);
    }
    n->rows_filled += documents > 0;
    for (int c = used; c < context; c++) {
        n->ids[base + c] = PAD;
        n->labels[base + c] = -100;
        n->positions[base + c] = c - used;
        n->segments[base + c] = documents;
    }
}

/* False when the stream is endless and no record can ever be placed. */
static bool naive_step(struct naive *n)
{
    bool hopeless = n->options->shuffle;
    for (size_t i = 0; i < n->record_count; i++) {
        hopeless = hopeless && n->documents[i].skipped;
    }
    if (hopeless) {
        return false;
    }
    n->placed_count = n->skipped_count = 0;
    n->rows_filled = 0;
    for (int row = 0; row < n->options->rows * n->options->micro_count; row++) {
        fill_row(n, row);
    }
    return true;
}

/* ---- the comparison ---- */

static void check_record(const struct naive *n, const struct eng_record *r, size_t i)
{
    char id[32];
    const struct document *const d = &n->documents[n->placed[i]];
    snprintf(id, sizeof id, "line:%zu", n->placed[i] + 1);
    fuzz_require(strcmp(r->id, id) == 0);
    fuzz_require(r->epoch == n->epochs[i]);
    fuzz_require(r->count == (int)d->count);
    fuzz_require(r->tokens_hash == eng_fnv1a(d->ids, d->count * sizeof *d->ids));
}

static void check_step(const struct naive *n, const struct eng_step_batch *b)
{
    const int block = b->rows * b->context;
    const size_t bytes = (size_t)(block * b->micro_count) * sizeof(int32_t);
    fuzz_require(memcmp(b->ids, n->ids, bytes) == 0);
    fuzz_require(memcmp(b->labels, n->labels, bytes) == 0);
    fuzz_require(memcmp(b->positions, n->positions, bytes) == 0);
    fuzz_require(memcmp(b->segments, n->segments, bytes) == 0);
    fuzz_require(b->rows_filled == n->rows_filled);
    fuzz_require(b->record_count == n->placed_count);
    fuzz_require(b->skipped_count == n->skipped_count);
    int supervised = 0;
    for (int m = 0; m < b->micro_count; m++) {
        int labels = 0;
        for (int c = m * block; c < (m + 1) * block; c++) {
            labels += n->labels[c] != -100;
            const int first = b->first[c];
            fuzz_require(first == c % b->context - n->positions[c]);
        }
        fuzz_require(b->micro_supervised[m] == labels);
        supervised += labels;
    }
    fuzz_require(b->supervised == supervised);
    for (size_t i = 0; i < n->placed_count; i++) {
        check_record(n, &b->records[i], i);
    }
    for (size_t i = 0; i < n->skipped_count; i++) {
        char id[32];
        snprintf(id, sizeof id, "line:%zu", n->skipped[i] + 1);
        fuzz_require(strcmp(b->skipped[i], id) == 0);
    }
}

/* Before every step the loader is replaced by a new one that starts at its position. */
static void check_steps(struct naive *n, bool resume)
{
    eng_loader *loader = NULL;
    fuzz_require(eng_loader_open(n->options, &loader, NULL) == ENG_OK);
    fuzz_require(eng_loader_record_count(loader) == n->record_count);
    for (int step = 0; step < STEPS; step++) {
        const struct eng_step_batch *batch = NULL;
        struct eng_error error = {""};
        if (resume) {
            const struct eng_position position = eng_loader_position(loader);
            eng_loader_close(loader);
            fuzz_require(eng_loader_open(n->options, &loader, NULL) == ENG_OK);
            fuzz_require(eng_loader_seek(loader, position, NULL) == ENG_OK);
        }
        const enum eng_status status = eng_loader_next(loader, &batch, &error);
        if (!naive_step(n)) {
            fuzz_require(status == ENG_EINPUT && error.text[0] != '\0');
            break;
        }
        fuzz_require(status == ENG_OK);
        check_step(n, batch);
    }
    eng_loader_close(loader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct naive n;
    static eng_tokenizer *tokenizer;
    static struct fuzz_file tokenizer_file;
    static const char *const layouts[] = {"chatml", "llama2", "llama3", "gemma", "plain"};
    struct fuzz_input in = {data, data + size};
    struct contents contents[RECORDS_MAX];
    if (tokenizer == NULL) {
        size_t whole = 0;
        char *const text = fuzz_vocab_expand(tokenizer_text, sizeof tokenizer_text - 1, &whole);
        tokenizer_file = fuzz_file_open(text, whole);
        fuzz_require(eng_tokenizer_open(tokenizer_file.path, &tokenizer, NULL) == ENG_OK);
        free(text);
    }
    struct eng_loader_options options = {.file_count = 1,
                                         .tokenizer_path = tokenizer_file.path,
                                         .pad_token = "<|pad|>",
                                         .vocab = VOCAB};
    const unsigned flags = fuzz_byte(&in);
    options.packing = (flags & 1) != 0;
    options.shuffle = (flags & 2) != 0;
    options.mask = (flags & 4) != 0 ? ENG_MASK_ALL : ENG_MASK_ASSISTANT;
    options.template_name = layouts[(flags >> 4) % 5];
    options.truncate = (enum eng_truncate)(fuzz_byte(&in) % 3);
    options.seed = fuzz_byte(&in);
    options.context = fuzz_between(&in, 2, 128);
    options.rows = fuzz_between(&in, 1, 2);
    options.micro_count = fuzz_between(&in, 1, 2);
    n.options = &options;
    n.record_count = read_contents(&in, contents);
    n.position = 0;
    if (n.record_count == 0) {
        return 0;
    }
    struct fuzz_file file = write_data(contents, n.record_count);
    const char *const path = file.path;
    options.files = &path;
    for (size_t i = 0; i < n.record_count; i++) {
        make_document(&options, tokenizer, &contents[i], &n.documents[i]);
    }
    check_steps(&n, (flags & 8) != 0);
    fuzz_file_close(&file);
    return 0;
}
