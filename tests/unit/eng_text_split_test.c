/* The splitters against pieces written by hand and against the patterns under PCRE2. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "eng_text_fixture.h"
#include "split_twin.h"
#include "text_split.h"
#include "text_utf8.h"

/* Pieces in the text separated by "|". */
static void expect_pieces(enum eng_split split, const char *wanted)
{
    char text[256];
    char shown[512];
    size_t size = 0;
    size_t used = 0;
    eng_splitter *splitter = NULL;
    for (const char *p = wanted; *p != '\0'; p++) {
        if (*p != '|') {
            text[size++] = *p;
        }
    }
    cr_assert_eq(eng_splitter_create(split, &splitter, NULL), ENG_OK);
    for (size_t at = 0; at < size;) {
        const size_t piece = eng_splitter_piece(splitter, text, size, at);
        cr_assert(piece > 0 && piece <= size - at);
        if (at > 0) {
            shown[used++] = '|';
        }
        memcpy(shown + used, text + at, piece);
        used += piece;
        at += piece;
    }
    shown[used] = '\0';
    cr_assert_str_eq(shown, wanted);
    eng_splitter_destroy(splitter);
}

Test(eng_text_split, splits_as_gpt2)
{
    const enum eng_split gpt2 = ENG_SPLIT_GPT2;
    expect_pieces(gpt2, "Hello| world|'s| 123| | x|\n\n| y");
    expect_pieces(gpt2, "I|'ll| don|'t| they|'re| '|S|!?...");
    expect_pieces(gpt2, "x|  ");
    expect_pieces(gpt2, "  ");
    expect_pieces(gpt2, "\r\n |\t|a");
    expect_pieces(gpt2, "12345|abc|67");
    expect_pieces(gpt2, "e|\xCC\x81| \xCC\x81");                 /* a combining mark is no letter */
    expect_pieces(gpt2, "a|\xE1\xA0\x8E|b| \xE1\xA0\x8E");       /* U+180E is no white space */
    expect_pieces(gpt2, "a|\xC2\xA0|\xC2\xA0|b|\xE3\x80\x80|c"); /* U+00A0 and U+3000 are */
    expect_pieces(gpt2,
                  "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC| \xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D");
    expect_pieces(gpt2, "\xD9\xA1\xD9\xA2\xC2\xBD| \xE4\xBD\xA0\xE5\xA5\xBD");
}

Test(eng_text_split, splits_as_cl100k)
{
    const enum eng_split cl100k = ENG_SPLIT_CL100K;
    expect_pieces(cl100k, "Hello| world|'S| |123|456|7|\n\n|.x");
    expect_pieces(cl100k, "I|'LL|'\xC5\xBF|'x"); /* U+017F is an s in any case */
    expect_pieces(cl100k, "a| !?\r\n\n|b");
    expect_pieces(cl100k, "a|  \n \n|  | b");
    expect_pieces(cl100k, "\tword|\t|\t|1");
}

Test(eng_text_split, splits_as_qwen2)
{
    expect_pieces(ENG_SPLIT_QWEN2, "Dose| |1|2|.|5| mg|/d");
}

Test(eng_text_split, splits_as_o200k)
{
    const enum eng_split o200k = ENG_SPLIT_O200K;
    expect_pieces(o200k, "Camel|Case| HTMLParser's| e\xCC\x81t");
    expect_pieces(o200k, "A\xCA\xB0|B| x"); /* gives back what follows the last letter of both */
    expect_pieces(o200k, "ab\xE4\xBD\xA0| //\n/|x");
    expect_pieces(o200k, "\xCC\x81| \xCC\x81|123|4|'d");
}

static size_t draw_text(uint64_t *state, char *text, size_t room)
{
    static const char *const parts[] = {" ",
                                        "  ",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "'",
                                        "'s",
                                        "'LL",
                                        "a",
                                        "B",
                                        "Ab",
                                        "1",
                                        "12",
                                        "/",
                                        "!",
                                        "\xC2\xA0",
                                        "'v",
                                        "'E",
                                        "\xC5\xBF",
                                        "\xCC\x81",
                                        "\xCA\xB0",
                                        "\xC7\x85",
                                        "\xC2\xBD",
                                        "\xE1\xA0\x8E",
                                        "_",
                                        "l",
                                        "\xE3\x80\x80",
                                        "\xE4\xBD\xA0",
                                        "\xF0\x9F\x98\x80",
                                        "\xC2\x85",
                                        "\xC3\x9F",
                                        "\x7F"};
    size_t size = 0;
    const uint64_t wanted = 1 + fixture_draw(state) % 12;
    for (uint64_t i = 0; i < wanted; i++) {
        char one[5] = "";
        const char *part = parts[fixture_draw(state) % (sizeof parts / sizeof parts[0])];
        if (fixture_draw(state) % 8 == 0) {
            const unsigned code = (unsigned)(fixture_draw(state) % 0x2FFFF);
            one[eng_utf8_put(one, code >= 0xD800 && code < 0xE000 ? 'x' : code)] = '\0';
            part = one;
        }
        const size_t length = one == part && one[0] == '\0' ? 1 : strlen(part);
        cr_assert_leq(size + length, room);
        memcpy(text + size, part, length);
        size += length;
    }
    return size;
}

static const enum eng_split splits[TWIN_PATTERNS] = {
    [TWIN_GPT2] = ENG_SPLIT_GPT2,
    [TWIN_CL100K] = ENG_SPLIT_CL100K,
    [TWIN_QWEN2] = ENG_SPLIT_QWEN2,
    [TWIN_O200K] = ENG_SPLIT_O200K,
};

/* Every piece of the text against the pattern's; returns how many there were. */
static size_t compare_pieces(int pattern, const char *text, size_t size)
{
    eng_splitter *splitter = NULL;
    size_t compared = 0;
    cr_assert_eq(eng_splitter_create(splits[pattern], &splitter, NULL), ENG_OK);
    for (size_t at = 0; at < size; compared++) {
        const size_t piece = eng_splitter_piece(splitter, text, size, at);
        cr_assert_eq(piece, twin_piece(pattern, text, size, at), "pattern %d: '%.*s' at %zu",
                     pattern, (int)size, text, at);
        at += piece;
    }
    eng_splitter_destroy(splitter);
    return compared;
}

Test(eng_text_split, splits_as_the_patterns_say)
{
    uint64_t state = 9;
    size_t compared = 0;
    for (int pattern = 0; pattern < TWIN_PATTERNS; pattern++) {
        for (int round = 0; round < 10000; round++) {
            char text[128];
            const size_t size = draw_text(&state, text, sizeof text);
            compared += twin_agrees(text, size) ? compare_pieces(pattern, text, size) : 0;
        }
    }
    cr_assert_gt(compared, 100000);
}

/* Words are measured eight bytes at a time: of every length, with every kind of byte behind them,
 * those beside letters in ASCII and those that are letters but for their highest bit. */
Test(eng_text_split, measures_words_of_every_length)
{
    static const char *const behind[] = {"",         " ",           "@",         "[",
                                         "`",        "{",           "'",         "0",
                                         "\n",       "\xC3\xA9",    "\xC3\xA1z", "\xE1\x9A\x80",
                                         "\xC2\xBA", "\xE1\x9A\x81"};
    static const char *const shapes[] = {"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                                         "aZzAqWeRtYuIoPlKjHgFdSmNbV",
                                         "Zabcdefghijklmnopqrstuvwxa"};
    size_t compared = 0;
    for (size_t length = 1; length <= 26; length++) {
        for (size_t i = 0; i < sizeof behind / sizeof behind[0] * 4; i++) {
            char text[64];
            const int size =
                snprintf(text, sizeof text, "%s%.*s%s%.*s", i % 2 == 0 ? " " : "", (int)length,
                         shapes[i % 4], behind[i / 4], (int)(i % 3), shapes[i % 4]);
            for (int pattern = 0; pattern < TWIN_PATTERNS; pattern++) {
                compared += compare_pieces(pattern, text, (size_t)size);
            }
        }
    }
    cr_assert_gt(compared, 10000);
}
