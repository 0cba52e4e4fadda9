/* The loader, files to batches, against a naive version of corpus/RECIPE.md: files and weights,
 * order, mask, prefix, truncation, skips, rows, labels, resume. The input draws the options, then
 * gives contents between 0xFF, two a record. Rendering and tokens have targets of their own and are
 * taken from the engine here. Called by libFuzzer and replay_main.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_vocab.h"
#include "loader.h"
#include "tokenizer.h"

enum { RECORDS_MAX = 24, TOKENS_MAX = 512, COLUMNS_MAX = 512, PLACED_MAX = 256, STEPS = 4 };
enum { WEIGHT_MAX = 3, ITEMS_MAX = WEIGHT_MAX * RECORDS_MAX };
enum { SKIPPED_MAX = PLACED_MAX * 2 * ITEMS_MAX };

/* The blank joins an answer that begins with "a", so that such a prompt is no prefix. */
static const char tokenizer_text[] =
    "{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"vocab\":{@BYTES@,\"aa\":256,\"ab\":"
    "257,\"aaab\":258,\"\xC4\xA0\x61\":259},\"merges\":[\"a a\",\"a b\",\"aa ab\",\"\xC4\xA0 a\"]},"
    "\"added_tokens\":[{\"content\":\"<|im_start|>\",\"id\":260,\"special\":true},"
    "{\"content\":\"<|im_end|>\",\"id\":261,\"special\":true},{\"content\":\"<|pad|>\",\"id\":262,"
    "\"special\":true}]}";
enum { VOCAB = 263, END_OF_TURN = 261, PAD = 262 };

struct document {
    int32_t ids[TOKENS_MAX];
    bool supervised[TOKENS_MAX];
    size_t count;
    bool skipped;
};

/* What was placed: a document or a piece of one. */
struct placed {
    size_t record, first, count;
    uint64_t epoch;
};

struct naive {
    const struct eng_loader_options *options;
    struct document documents[RECORDS_MAX];
    size_t record_count;
    size_t in_first_file; /* records of the first of two files, or all */
    unsigned weights[2];
    size_t item_count;
    int32_t pad;
    uint64_t position; /* documents taken from the endless stream */
    size_t offset;     /* tokens taken of the next one */
    int32_t ids[COLUMNS_MAX], labels[COLUMNS_MAX], positions[COLUMNS_MAX], segments[COLUMNS_MAX];
    struct placed placed[PLACED_MAX];
    size_t placed_count; /* of this step, in order */
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

/* The prompt as a rendering of its own, cut out by hand. */
static bool prompt_is_prefix(eng_tokenizer *tokenizer, const struct eng_rendered *whole,
                             const struct eng_tokens *tokens)
{
    struct eng_rendered prompt = {.bytes = whole->bytes, .size = whole->answers[0].start};
    struct eng_span contents[2];
    struct eng_tokens alone = {0};
    prompt.contents = contents;
    for (size_t i = 0; i < whole->content_count; i++) {
        if (whole->contents[i].end <= prompt.size) {
            contents[prompt.content_count++] = whole->contents[i];
        }
    }
    fuzz_require(eng_tokenizer_encode(tokenizer, &prompt, &alone, NULL) == ENG_OK);
    bool holds = alone.count <= tokens->count;
    for (size_t i = 0; holds && i < alone.count; i++) {
        holds = alone.items[i].id == tokens->items[i].id;
    }
    eng_tokens_fini(&alone);
    return holds;
}

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
    if (total > context && o->packing != ENG_PACK_WRAPPED) {
        first = o->truncate == ENG_KEEP_START ? 0 : total - context;
        end = o->truncate == ENG_DROP ? first : first + context;
    }
    d->count = end - first;
    d->skipped = true;
    for (size_t i = first; i < end; i++) {
        const uint32_t byte = tokens.items[i].start;
        /* There is one answer, the last. */
        fuzz_require(r.answer_count == 1);
        const bool learned = o->mask == ENG_MASK_ALL ||
                             (byte >= r.answers[0].start &&
                              (o->mask == ENG_MASK_COMPLETION || byte < r.answers[0].end));
        d->ids[i - first] = tokens.items[i].id;
        d->supervised[i - first] = learned;
        d->skipped = d->skipped && !(learned && i > first);
    }
    if (!d->skipped && o->on_prefix == ENG_BREACH_SKIP) {
        d->skipped = !prompt_is_prefix(tokenizer, &r, &tokens);
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

static void draw_permutation(uint64_t state, size_t count, size_t *order)
{
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (size_t i = count - 1; i > 0; i--) {
        const size_t j = (size_t)(split_mix(&state) % (i + 1));
        const size_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Every number is enciphered, then the cycles are followed in a table. */
static void draw_cipher(uint64_t state, size_t count, size_t *order)
{
    size_t image[4 * ITEMS_MAX];
    uint64_t keys[6];
    size_t side = 2;
    while (side * side < count) {
        side *= 2;
    }
    for (int r = 0; r < 6; r++) {
        keys[r] = split_mix(&state);
    }
    fuzz_require(side * side <= sizeof image / sizeof image[0]);
    for (size_t x = 0; x < side * side; x++) {
        size_t l = x / side;
        size_t r = x % side;
        for (int round = 0; round < 6; round++) {
            uint64_t shifted = r + keys[round] - 0x9E3779B97F4A7C15u; /* split_mix adds it */
            const size_t f = (size_t)(split_mix(&shifted) % side);
            const size_t new_right = l ^ f;
            l = r;
            r = new_right;
        }
        image[x] = l * side + r;
    }
    for (size_t n = 0; n < count; n++) {
        order[n] = image[n];
        while (order[n] >= count) {
            order[n] = image[order[n]];
        }
    }
}

/* The record of an item by counting through the files. */
static size_t record_of(const struct naive *n, size_t item)
{
    size_t counted = 0;
    for (int file = 0; file < 2; file++) {
        const size_t first = file == 0 ? 0 : n->in_first_file;
        const size_t end = file == 0 ? n->in_first_file : n->record_count;
        for (unsigned copy = 0; copy < n->weights[file]; copy++) {
            for (size_t r = first; r < end; r++) {
                if (counted++ == item) {
                    return r;
                }
            }
        }
    }
    fuzz_require(counted > item); /* else it is an item beyond the last */
    return 0;
}

/* The record at a place of the endless stream, its order drawn anew each time; record_count
 * when an unshuffled stream is over. */
static size_t record_at(const struct naive *n, uint64_t position)
{
    size_t order[ITEMS_MAX];
    if (!n->options->shuffle) {
        return position < n->record_count ? (size_t)position : n->record_count;
    }
    const uint64_t epoch = position / n->item_count;
    const uint64_t state = n->options->seed * 0x9E3779B97F4A7C15u + epoch * 0xD1B54A32D192ED03u;
    if (n->options->order == ENG_ORDER_CIPHER) {
        draw_cipher(state, n->item_count, order);
    } else {
        draw_permutation(state, n->item_count, order);
    }
    return record_of(n, order[position % n->item_count]);
}

/* A row being filled. */
struct naive_row {
    int base, used, documents;
};

static void place(struct naive *n, struct naive_row *row, size_t record)
{
    const struct document *const d = &n->documents[record];
    const size_t first = n->offset;
    size_t i = first;
    for (; i < d->count && row->used < n->options->context; i++) {
        const int c = row->base + row->used++;
        n->ids[c] = d->ids[i];
        n->labels[c] = i + 1 < d->count && d->supervised[i + 1] ? d->ids[i + 1] : -100;
        n->positions[c] = (int32_t)(i - first);
        n->segments[c] = row->documents;
    }
    row->documents++;
    fuzz_require(n->placed_count < PLACED_MAX);
    n->placed[n->placed_count++] =
        (struct placed){.record = record,
                        .first = first,
                        .count = i - first,
                        .epoch = n->options->shuffle ? n->position / n->item_count : 0};
    n->offset = i < d->count ? i : 0;
    n->position += i == d->count;
}

/* The next record that is not skipped; record_count at the end. */
static size_t next_record(struct naive *n)
{
    size_t record = record_at(n, n->position);
    while (record < n->record_count && n->documents[record].skipped) {
        fuzz_require(n->skipped_count < SKIPPED_MAX);
        n->skipped[n->skipped_count++] = record;
        record = record_at(n, ++n->position);
    }
    return record;
}

static void fill_row(struct naive *n, struct naive_row *row)
{
    const int context = n->options->context;
    const bool wrapped = n->options->packing == ENG_PACK_WRAPPED;
    while (wrapped ? row->used < context
                   : n->options->packing != ENG_PACK_NONE || row->documents == 0) {
        const size_t record = next_record(n);
        if (record == n->record_count ||
            (!wrapped && (int)n->documents[record].count > context - row->used)) {
            break;
        }
        place(n, row, record);
    }
}

static void fill_first_fit(struct naive *n, struct naive_row *rows, int count)
{
    for (;;) {
        const size_t record = next_record(n);
        int r = 0;
        if (record == n->record_count) {
            return;
        }
        while (r < count && (int)n->documents[record].count > n->options->context - rows[r].used) {
            r++;
        }
        if (r == count) {
            return;
        }
        place(n, &rows[r], record);
    }
}

static void pad_row(struct naive *n, const struct naive_row *row)
{
    n->rows_filled += row->documents > 0;
    for (int c = row->used; c < n->options->context; c++) {
        n->ids[row->base + c] = n->pad;
        n->labels[row->base + c] = -100;
        n->positions[row->base + c] = c - row->used;
        n->segments[row->base + c] = row->documents;
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
    struct naive_row rows[4] = {{0, 0, 0}};
    const int count = n->options->rows * n->options->micro_count;
    for (int r = 0; r < count; r++) {
        rows[r].base = r * n->options->context;
    }
    if (n->options->packing == ENG_PACK_FIRST_FIT) {
        fill_first_fit(n, rows, count);
    }
    for (int r = 0; r < count; r++) {
        if (n->options->packing != ENG_PACK_FIRST_FIT) {
            fill_row(n, &rows[r]);
        }
        pad_row(n, &rows[r]);
    }
    return true;
}

/* ---- the comparison ---- */

static void check_record(const struct naive *n, const struct eng_record *r, size_t i)
{
    char id[32];
    const struct placed *const p = &n->placed[i];
    const struct document *const d = &n->documents[p->record];
    snprintf(id, sizeof id, "line:%zu", p->record + 1);
    fuzz_require(strcmp(r->id, id) == 0);
    fuzz_require(r->epoch == p->epoch);
    fuzz_require(r->count == (int)p->count);
    fuzz_require(r->tokens_hash == eng_fnv1a(d->ids + p->first, p->count * sizeof *d->ids));
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
        fuzz_require(strcmp(b->skipped[i].id, id) == 0);
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

/* A loader that lends its tokenizer to all others: reading it takes longer than the rest. */
static const eng_loader *open_lender(const struct eng_loader_options *options)
{
    static const char line[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                               "{\"role\":\"assistant\",\"content\":\"b\"}]}\n";
    static eng_loader *lender;
    if (lender == NULL) {
        struct eng_loader_options plain = *options;
        struct fuzz_file file = fuzz_file_open(line, sizeof line - 1);
        const char *const path = file.path;
        plain.files = &path;
        plain.weights = NULL;
        plain.file_count = 1;
        fuzz_require(eng_loader_open(&plain, &lender, NULL) == ENG_OK);
        fuzz_file_close(&file);
    }
    return lender;
}

/* The options of longer inputs: two files, weights, packing, order, masks, the marker of ChatML as
 * padding. */
static void draw_more(struct fuzz_input *in, struct eng_loader_options *options, struct naive *n)
{
    const unsigned flags = fuzz_byte(in);
    n->pad = (flags & 0x80) != 0 ? END_OF_TURN : PAD;
    options->pad_token = (flags & 0x80) != 0 ? "<|im_end|>" : "<|pad|>";
    options->packing = (enum eng_packing)(flags & 3);
    options->order = (enum eng_order)(flags >> 2 & 1);
    options->mask = (enum eng_mask)(flags >> 3 & 3);
    options->on_prefix = (flags & 0x20) != 0 ? ENG_BREACH_SKIP : ENG_BREACH_IGNORE;
    options->file_count = (flags & 0x40) != 0 ? 2 : 1;
    n->weights[0] = (unsigned)fuzz_between(in, 1, WEIGHT_MAX);
    n->weights[1] = (unsigned)fuzz_between(in, 1, WEIGHT_MAX);
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
    options.packing = (flags & 1) != 0 ? ENG_PACK_NEXT : ENG_PACK_NONE;
    options.on_unlearned = ENG_BREACH_SKIP;
    options.shuffle = (flags & 2) != 0;
    options.mask = (flags & 4) != 0 ? ENG_MASK_ALL : ENG_MASK_ASSISTANT;
    options.template_name = layouts[(flags >> 4) % 5];
    options.truncate = (enum eng_truncate)(fuzz_byte(&in) % 3);
    options.seed = fuzz_byte(&in);
    options.context = fuzz_between(&in, 2, 128);
    options.rows = fuzz_between(&in, 1, 2);
    options.micro_count = fuzz_between(&in, 1, 2);
    n.pad = PAD;
    if (options.micro_count == 2 && (flags & 0x80) != 0) {
        draw_more(&in, &options, &n);
    } else {
        n.weights[0] = n.weights[1] = 1;
    }
    n.options = &options;
    n.record_count = read_contents(&in, contents);
    n.in_first_file = options.file_count == 1 ? n.record_count : n.record_count / 2;
    n.item_count =
        n.in_first_file * n.weights[0] + (n.record_count - n.in_first_file) * n.weights[1];
    n.position = 0;
    n.offset = 0;
    if (n.record_count == 0 || n.in_first_file == 0) {
        return 0;
    }
    struct fuzz_file files[2] = {
        write_data(contents, n.in_first_file),
        write_data(contents + n.in_first_file, n.record_count - n.in_first_file)};
    const char *const paths[2] = {files[0].path, files[1].path};
    options.files = paths;
    options.weights = n.weights;
    options.lender = open_lender(&options);
    for (size_t i = 0; i < n.record_count; i++) {
        make_document(&options, tokenizer, &contents[i], &n.documents[i]);
    }
    check_steps(&n, (flags & 8) != 0);
    fuzz_file_close(&files[0]);
    fuzz_file_close(&files[1]);
    return 0;
}
