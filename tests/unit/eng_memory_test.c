/* Host memory by component: an allocation is booked where its thread is, its free where the
 * allocation was, and a byte is seen. Builds without jemalloc know nothing and say so. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "eng_memory.h"

enum { BLOCK = 1 << 16 };

static struct eng_memory memory;

/* Opens the account, or skips the test where there is none. */
static void open_account(size_t bytes[ENG_COMPONENT_COUNT])
{
    eng_memory_open(&memory);
    if (!eng_memory_bytes(&memory, bytes)) {
        cr_assert_not(memory.known);
        cr_skip_test("this build cannot tell components apart");
    }
}

/* What a component has more than before. */
static size_t more(enum eng_component component, const size_t before[ENG_COMPONENT_COUNT])
{
    size_t now[ENG_COMPONENT_COUNT];
    cr_assert(eng_memory_bytes(&memory, now));
    return now[component] - before[component];
}

Test(eng_memory, an_allocation_is_booked_where_its_thread_is)
{
    size_t before[ENG_COMPONENT_COUNT];
    open_account(before); /* volatile: an allocation that nobody uses need not happen */
    const unsigned outside = eng_memory_enter(&memory, ENG_COMPONENT_data);
    char *volatile data = malloc(BLOCK);
    const unsigned inside = eng_memory_enter(&memory, ENG_COMPONENT_text);
    char *volatile text = malloc(1);
    eng_memory_leave(&memory, inside);
    char *volatile again = malloc(1);
    eng_memory_leave(&memory, outside);
    char *volatile other = malloc(BLOCK);
    cr_assert(data != NULL && text != NULL && again != NULL && other != NULL);
    cr_assert_geq(more(ENG_COMPONENT_data, before), BLOCK + 1);
    cr_assert_lt(more(ENG_COMPONENT_data, before), 2 * BLOCK);
    cr_assert_geq(more(ENG_COMPONENT_text, before), 1);
    cr_assert_leq(more(ENG_COMPONENT_text, before), 16);
    cr_assert_eq(more(ENG_COMPONENT_trace, before), 0);
    free(data);
    free(text);
    free(again);
    free(other);
    cr_assert_eq(more(ENG_COMPONENT_data, before), 0);
    cr_assert_eq(more(ENG_COMPONENT_text, before), 0);
}

static void *allocate(void *component)
{
    (void)eng_memory_enter(&memory, *(const enum eng_component *)component);
    return malloc(BLOCK);
}

Test(eng_memory, each_thread_is_in_a_component_of_its_own)
{
    size_t before[ENG_COMPONENT_COUNT];
    enum eng_component components[] = {ENG_COMPONENT_train, ENG_COMPONENT_trace};
    pthread_t threads[2];
    void *blocks[2];
    open_account(before);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, allocate, &components[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(pthread_join(threads[i], &blocks[i]), 0);
        cr_assert_geq(more(components[i], before), BLOCK);
    }
    for (int i = 0; i < 2; i++) {
        free(blocks[i]);
        cr_assert_eq(more(components[i], before), 0);
    }
}

Test(eng_memory, without_an_account_nothing_happens)
{
    const struct eng_memory none = {.known = false};
    size_t bytes[ENG_COMPONENT_COUNT];
    eng_memory_leave(NULL, eng_memory_enter(NULL, ENG_COMPONENT_text));
    eng_memory_leave(&none, eng_memory_enter(&none, ENG_COMPONENT_text));
    cr_assert_not(eng_memory_bytes(&none, bytes));
    cr_assert_not(eng_memory_bytes(NULL, bytes));
}
