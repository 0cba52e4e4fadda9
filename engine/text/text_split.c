/* The split patterns of GPT-2, cl100k (Llama 3), Qwen2 and o200k, written by hand as one rule with
 * switches. Called by text_encode; must not know vocabularies or control tokens. */
#include "text_split.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "fault.h"

/* Classes of characters, as bits. */
enum {
    UPPER = 1,   /* Lu, Lt */
    LOWER = 2,   /* Ll */
    LETTER = 4,  /* Lm, Lo */
    MARK = 8,    /* M */
    NUMBER = 16, /* N */
    BLANK = 32,  /* White_Space but for the next two */
    NEWLINE = 64 /* \r \n */,
    OTHER = 128,
    LETTERS = UPPER | LOWER | LETTER,
    BLANKS = BLANK | NEWLINE
};

enum short_forms { FORMS_NONE, FORMS_EXACT, FORMS_ANY_CASE, FORMS_AFTER_WORD };

struct split_rules {
    enum short_forms forms; /* 's 't 're 've 'm 'll 'd */
    bool any_before_word;   /* a word takes any character before it but \r and \n, else a blank */
    bool cased;             /* a word ends before an upper-case letter */
    bool blank_before_word, blank_before_number;
    bool lines;         /* \r and \n end a run of blanks and follow others */
    bool slash;         /* '/' follows others as well */
    bool leaves_blank;  /* a run of blanks leaves its last one to what comes next */
    size_t numbers_max; /* digits of a piece */
};

#define GPT2_RULES                                                                                 \
    .forms = FORMS_EXACT, .blank_before_word = true, .blank_before_number = true,                  \
    .leaves_blank = true, .numbers_max = SIZE_MAX
#define CL100K_RULES                                                                               \
    .forms = FORMS_ANY_CASE, .any_before_word = true, .lines = true, .leaves_blank = true,         \
    .numbers_max = 3
#define O200K_RULES                                                                                \
    .forms = FORMS_AFTER_WORD, .any_before_word = true, .cased = true, .lines = true,              \
    .slash = true, .leaves_blank = true, .numbers_max = 3

static const struct split_rules gpt2_rules = {GPT2_RULES};
static const struct split_rules cl100k_rules = {CL100K_RULES};
static const struct split_rules qwen2_rules = {
    .forms = FORMS_ANY_CASE,
    .any_before_word = true,
    .lines = true,
    .leaves_blank = true,
    .numbers_max = 1,
};
static const struct split_rules o200k_rules = {O200K_RULES};

struct eng_splitter {
    struct split_rules rules;
    size_t (*piece)(const struct split_rules *rules, const char *bytes, size_t size, size_t at);
};

static const uint8_t ascii_class[128] = {
    [0 ... 8] = OTHER,      ['\t'] = BLANK,        ['\n'] = NEWLINE,      [11 ... 12] = BLANK,
    ['\r'] = NEWLINE,       [14 ... 31] = OTHER,   [' '] = BLANK,         ['!' ... '/'] = OTHER,
    ['0' ... '9'] = NUMBER, [':' ... '@'] = OTHER, ['A' ... 'Z'] = UPPER, ['[' ... '`'] = OTHER,
    ['a' ... 'z'] = LOWER,  ['{' ... 127] = OTHER,
};

static bool is_wide_blank(uint32_t c)
{
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Class of a character of two to four bytes. */
static unsigned wide_class(const char *bytes, size_t *length)
{
    const uint8_t *const b = (const uint8_t *)bytes;
    uint32_t c = 0;
    if (b[0] < 0xE0) {
        *length = 2;
        c = (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
    } else if (b[0] < 0xF0) {
        *length = 3;
        c = (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    } else {
        *length = 4;
        c = (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
    }
    if (is_wide_blank(c)) {
        return BLANK;
    }
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
        return UPPER;
    case UTF8PROC_CATEGORY_LL:
        return LOWER;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return LETTER;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return MARK;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return NUMBER;
    default:
        return OTHER;
    }
}

/* Class of the character at a place within the text, and its length. */
static inline unsigned class_at(const char *bytes, size_t at, size_t *length)
{
    const uint8_t byte = (uint8_t)bytes[at];
    *length = 1;
    return byte < 0x80 ? ascii_class[byte] : wide_class(bytes + at, length);
}

/* The class of the character at a place, 0 at the end of the text. */
static inline unsigned class_or_end(const char *bytes, size_t size, size_t at, size_t *length)
{
    *length = 0;
    return at < size ? class_at(bytes, at, length) : 0;
}

/* How many of the eight bytes at a place are ASCII letters before the first that is none: of either
 * case with `both`, else of lower case. All eight are looked at at once, so that the length of a
 * word costs no wrongly predicted branch. */
static inline size_t leading_letters(const char *bytes, bool both)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word = 0;
    memcpy(&word, bytes, sizeof word);
    /* Below 128 a sum's highest bit says whether the byte reaches a bound; nothing is carried. */
    const uint64_t low = (both ? word | ones * 0x20 : word) & ones * 0x7F;
    const uint64_t from_a = low + ones * (0x80 - 'a');
    const uint64_t behind_z = low + ones * (0x80 - 'z' - 1);
    const uint64_t others = (~from_a | behind_z | word) & ones * 0x80;
    return others == 0 ? sizeof word : (size_t)__builtin_ctzll(others) / 8;
}

/* Where a run of characters of the given classes ends. */
static inline size_t run_end(const char *bytes, size_t size, size_t at, unsigned classes)
{
    size_t length = 0;
    if ((classes & LOWER) != 0) {
        for (size_t found = 8; found == 8 && at + 8 <= size; at += found) {
            found = leading_letters(bytes + at, (classes & UPPER) != 0);
        }
    }
    while (at < size && (class_at(bytes, at, &length) & classes) != 0) {
        at += length;
    }
    return at;
}

/* Bytes of the short form at a place, 0 when there is none. In any case U+017F is an s. */
static size_t short_form(const char *bytes, size_t size, size_t at, bool any_case)
{
    if (at + 2 > size || bytes[at] != '\'') {
        return 0;
    }
    const uint8_t fold = any_case ? 0x20 : 0;
    const uint8_t first = (uint8_t)bytes[at + 1] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') {
        return 2;
    }
    if (at + 3 > size) {
        return 0;
    }
    const uint8_t second = (uint8_t)bytes[at + 2] | fold;
    if (any_case && memcmp(bytes + at + 1, "\xC5\xBF", 2) == 0) {
        return 3;
    }
    return (first == 'l' && second == 'l') || ((first == 'r' || first == 'v') && second == 'e') ? 3
                                                                                                : 0;
}

/* o200k: upper-case and other letters, then lower-case and other ones; marks are both. The first
 * alternative asks for one of the second kind, giving back what the first took too much; the second
 * takes upper case alone. Returns `at` when neither matches. */
static size_t cased_end(const char *bytes, size_t size, size_t at, bool lower_needed)
{
    size_t length = 0;
    size_t uppers = at;
    size_t both = at; /* behind the last character of both kinds */
    for (unsigned class = 0; uppers < size; uppers += length) {
        class = class_at(bytes, uppers, &length);
        if ((class & (UPPER | LETTER | MARK)) == 0) {
            break;
        }
        both = (class & UPPER) != 0 ? both : uppers + length;
    }
    const size_t end = run_end(bytes, size, uppers, LOWER | LETTER | MARK);
    if (lower_needed) {
        return end > uppers ? end : both;
    }
    return uppers > at ? end : at;
}

static size_t cased_word(const char *bytes, size_t size, size_t at, unsigned class, size_t length)
{
    const bool before = (class & (NEWLINE | LETTERS | NUMBER)) == 0;
    for (int lower_needed = 1; lower_needed >= 0; lower_needed--) {
        for (int with = before ? 1 : 0; with >= 0; with--) {
            const size_t start = with == 1 ? at + length : at;
            const size_t end = cased_end(bytes, size, start, lower_needed == 1);
            if (end > start) {
                return end + short_form(bytes, size, end, true) - at;
            }
        }
    }
    return 0;
}

static inline size_t plain_word(const struct split_rules *rules, const char *bytes, size_t size,
                                size_t at, unsigned class, size_t length)
{
    if ((class & LETTERS) != 0) {
        return run_end(bytes, size, at + length, LETTERS) - at;
    }
    const bool before = rules->any_before_word ? (class & (NEWLINE | NUMBER)) == 0
                                               : rules->blank_before_word && bytes[at] == ' ';
    size_t next = 0;
    if (before && (class_or_end(bytes, size, at + length, &next) & LETTERS) != 0) {
        return run_end(bytes, size, at + length + next, LETTERS) - at;
    }
    return 0;
}

static inline size_t number(const struct split_rules *rules, const char *bytes, size_t size,
                            size_t at)
{
    size_t end = at + (rules->blank_before_number && bytes[at] == ' ' ? 1 : 0);
    size_t length = 0;
    size_t digits = 0;
    while (digits < rules->numbers_max && (class_or_end(bytes, size, end, &length) & NUMBER) != 0) {
        end += length;
        digits++;
    }
    return digits == 0 ? 0 : end - at;
}

static inline size_t others(const struct split_rules *rules, const char *bytes, size_t size,
                            size_t at)
{
    const size_t start = at + (bytes[at] == ' ' ? 1 : 0);
    size_t end = run_end(bytes, size, start, OTHER | MARK);
    if (end == start) {
        return 0;
    }
    while (rules->lines && end < size &&
           (bytes[end] == '\r' || bytes[end] == '\n' || (rules->slash && bytes[end] == '/'))) {
        end++;
    }
    return end - at;
}

static size_t blanks(const struct split_rules *rules, const char *bytes, size_t size, size_t at)
{
    size_t end = at;
    size_t last = at;  /* where the run's last character starts */
    size_t lines = at; /* behind its last newline */
    size_t length = 0;
    for (unsigned class = 0; end < size; end += length) {
        class = class_at(bytes, end, &length);
        if ((class & BLANKS) == 0) {
            break;
        }
        last = end;
        lines = class == NEWLINE ? end + length : lines;
    }
    if (rules->lines && lines > at) {
        return lines - at;
    }
    return end == size || last == at || !rules->leaves_blank ? end - at : last - at;
}

static inline __attribute__((always_inline)) size_t
piece_by(const struct split_rules *rules, const char *bytes, size_t size, size_t at)
{
    size_t found = 0;
    size_t length = 0;
    const unsigned class = class_at(bytes, at, &length);
    if (bytes[at] == '\'' && (rules->forms == FORMS_EXACT || rules->forms == FORMS_ANY_CASE)) {
        found = short_form(bytes, size, at, rules->forms == FORMS_ANY_CASE);
    }
    if (found == 0) {
        found = rules->cased ? cased_word(bytes, size, at, class, length)
                             : plain_word(rules, bytes, size, at, class, length);
    }
    found = found > 0 ? found : number(rules, bytes, size, at);
    found = found > 0 ? found : others(rules, bytes, size, at);
    return found > 0 ? found : blanks(rules, bytes, size, at);
}

/* One compiled function a pattern, and one for any other rules. */
static size_t piece_any(const struct split_rules *rules, const char *bytes, size_t size, size_t at)
{
    return piece_by(rules, bytes, size, at);
}

#define SPLIT_PIECE(name)                                                                          \
    static size_t piece_##name(const struct split_rules *rules, const char *bytes, size_t size,    \
                               size_t at)                                                          \
    {                                                                                              \
        (void)rules;                                                                               \
        return piece_by(&name##_rules, bytes, size, at);                                           \
    }
SPLIT_PIECE(gpt2)
SPLIT_PIECE(cl100k)
SPLIT_PIECE(qwen2)
SPLIT_PIECE(o200k)

static size_t piece_whole(const struct split_rules *rules, const char *bytes, size_t size,
                          size_t at)
{
    (void)rules;
    (void)bytes;
    return size - at;
}

static const struct {
    const struct split_rules *rules;
    size_t (*piece)(const struct split_rules *rules, const char *bytes, size_t size, size_t at);
} patterns[ENG_SPLIT_COUNT] = {
    [ENG_SPLIT_GPT2] = {&gpt2_rules, piece_gpt2},
    [ENG_SPLIT_CL100K] = {&cl100k_rules, piece_cl100k},
    [ENG_SPLIT_QWEN2] = {&qwen2_rules, piece_qwen2},
    [ENG_SPLIT_O200K] = {&o200k_rules, piece_o200k},
    [ENG_SPLIT_NONE] = {&gpt2_rules, piece_whole},
};

enum eng_status eng_splitter_create(enum eng_split split, eng_splitter **out,
                                    struct eng_error *error)
{
    eng_splitter *const splitter = malloc(sizeof *splitter);
    if (splitter == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory for the splitter");
    }
    const struct split_rules *const rules = FAULT(split_pattern, patterns[split].rules);
    splitter->rules = *rules;
    splitter->rules.numbers_max = FAULT(split_numbers, rules->numbers_max);
    /* Only a fault makes rules that no pattern has. */
    const bool own =
        rules == patterns[split].rules && splitter->rules.numbers_max == rules->numbers_max;
    splitter->piece = own ? patterns[split].piece : piece_any;
    *out = splitter;
    return ENG_OK;
}

void eng_splitter_destroy(eng_splitter *splitter)
{
    free(splitter);
}

size_t eng_splitter_piece(const eng_splitter *splitter, const char *bytes, size_t size, size_t at)
{
    return splitter->piece(&splitter->rules, bytes, size, at);
}
