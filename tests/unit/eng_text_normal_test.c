/* Normalisation: stretches together are the composed text, and origins lead back. */
#include <criterion/criterion.h>
#include <string.h>

#include "eng_text_fixture.h"
#include "text_normal.h"
#include "text_utf8.h"

static const struct eng_normalizer nfc = {.steps = {{.kind = ENG_NORMAL_COMPOSE}}, .count = 1};

static void expect(const struct eng_normalizer *normalizer, const char *text, const char *wanted,
                   const char *origins)
{
    struct eng_normal_work work = {0};
    cr_assert_eq(eng_normal_run(normalizer, fixture_text(text), &work, NULL), ENG_OK);
    cr_assert_eq(work.text.size, strlen(wanted), "%s", text);
    cr_assert_eq(memcmp(work.text.bytes, wanted, work.text.size), 0, "%s", text);
    for (size_t i = 0; i < work.text.size; i++) {
        cr_assert_eq(work.text.origins[i], (uint32_t)(origins[i] - '0'), "%s: byte %zu", text, i);
    }
    eng_normal_work_fini(&work);
}

Test(eng_text_normal, composes_and_leads_back)
{
    expect(&nfc, "abc", "abc", "012");
    expect(&nfc, "ae\xCC\x81z", "a\xC3\xA9z", "0114");
    expect(&nfc, "\xC3\xA9", "\xC3\xA9", "01");     /* composed already: byte by byte */
    expect(&nfc, "x\xCC\x80", "x\xCC\x80", "012");  /* nothing composes */
    expect(&nfc, "\xE2\x84\xAB", "\xC3\x85", "00"); /* one character becomes another */
    expect(&nfc, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "\xED\x95\x9C", "000"); /* a syllable */
    expect(&nfc, "q\xCC\x87\xCC\xA3", "q\xCC\xA3\xCC\x87", "00000");             /* reordered */
    cr_assert(eng_normal_is_idle(&nfc, fixture_text("plain ASCII")));
    cr_assert_not(eng_normal_is_idle(&nfc, fixture_text("\xC3\xA9")));
}

Test(eng_text_normal, stretches_compose_to_the_composed_text)
{
    struct eng_normal_work work = {0};
    uint64_t state = 4;
    size_t changed = 0;
    for (int round = 0; round < 20000; round++) {
        static const unsigned ranges[][2] = {{0x41, 0x7A},
                                             {0xC0, 0x17F},
                                             {0x300, 0x345},
                                             {0x900, 0x9FF},
                                             {0xF40, 0xF97},
                                             {0x1100, 0x11FF},
                                             {0xAC00, 0xAC40},
                                             {0x1F00, 0x1FFF},
                                             {0x2126, 0x212B},
                                             {0x1100, 0x1175},
                                             {0x110000 - 0xFFFFF, 0x11FFF}};
        char bytes[64];
        size_t size = 0;
        for (uint64_t i = fixture_draw(&state) % 10 + 1; i > 0; i--) {
            const size_t range = fixture_draw(&state) % (sizeof ranges / sizeof ranges[0]);
            const uint64_t span = ranges[range][1] - ranges[range][0] + 1;
            size += eng_utf8_put(bytes + size,
                                 ranges[range][0] + (unsigned)(fixture_draw(&state) % span));
        }
        const struct eng_text text = {bytes, size};
        const struct eng_text wanted = eng_text_composed(text);
        cr_assert_neq(wanted.bytes, NULL);
        cr_assert_eq(eng_normal_run(&nfc, text, &work, NULL), ENG_OK);
        cr_assert_eq(work.text.size, wanted.size);
        cr_assert_eq(memcmp(work.text.bytes, wanted.bytes, wanted.size), 0);
        changed += wanted.size != size || memcmp(wanted.bytes, bytes, size) != 0;
        for (size_t i = 1; i < wanted.size; i++) {
            cr_assert_leq(work.text.origins[i - 1], work.text.origins[i]);
        }
        free((void *)(uintptr_t)wanted.bytes);
    }
    cr_assert_gt(changed, 1000);
    eng_normal_work_fini(&work);
}

Test(eng_text_normal, prepends_and_replaces)
{
    static const struct eng_normalizer marks = {
        .steps = {{.kind = ENG_NORMAL_PREPEND, .with = "_"},
                  {.kind = ENG_NORMAL_REPLACE, .from = " ", .with = "--"}},
        .count = 2};
    expect(&marks, "a b  ", "_a--b----", "001123344");
    expect(&marks, " ", "_--", "000");
    struct eng_normal_work work = {0};
    cr_assert_eq(eng_normal_run(&marks, fixture_text(""), &work, NULL), ENG_OK);
    cr_assert_eq(work.text.size, 0);
    eng_normal_work_fini(&work);
}
