/* Host side of a step. Called by the loop; must not know devices beyond their ledger. */
#include "stepdata.h"

#include <stdlib.h>
#include <string.h>

#include "input.h"

enum eng_status eng_step_init(struct eng_step *s, int micro_count, size_t tokens,
                              struct eng_error *error)
{
    *s = (struct eng_step){.micro_count = micro_count, .tokens = tokens};
    s->blocks = calloc((size_t)micro_count * ENG_BLOCK_ARRAYS * tokens, sizeof *s->blocks);
    s->segments = calloc((size_t)micro_count * tokens, sizeof *s->segments);
    s->micro_supervised = calloc((size_t)micro_count, sizeof *s->micro_supervised);
    if (s->blocks == NULL || s->segments == NULL || s->micro_supervised == NULL) {
        eng_step_fini(s);
        return eng_fail(error, ENG_EHOSTMEM, "step: host memory exhausted");
    }
    return ENG_OK;
}

void eng_step_fini(struct eng_step *s)
{
    free(s->blocks);
    free(s->segments);
    free(s->micro_supervised);
    eng_text_fini(&s->line);
    eng_text_fini(&s->events);
    *s = (struct eng_step){.number = 0};
}

void eng_step_fill(struct eng_step *s, int number, const struct eng_step_batch *batch)
{
    const size_t bytes = s->tokens * sizeof(int32_t);
    s->number = number;
    s->supervised = batch->supervised;
    s->features = batch->features;
    s->evaluated = false;
    memset(s->skips, 0, sizeof s->skips);
    for (size_t i = 0; i < batch->skipped_count; i++) {
        s->skips[batch->skipped[i].reason]++;
    }
    eng_text_clear(&s->line);
    eng_text_clear(&s->events);
    memcpy(s->segments, batch->segments, (size_t)s->micro_count * bytes);
    for (int m = 0; m < s->micro_count; m++) {
        const size_t at = (size_t)m * s->tokens;
        const int32_t *const arrays[ENG_BLOCK_ARRAYS] = {batch->ids + at, batch->labels + at,
                                                         batch->positions + at, batch->first + at};
        int32_t *block = s->blocks + ENG_BLOCK_ARRAYS * at;
        for (size_t i = 0; i < ENG_BLOCK_ARRAYS; i++) {
            memcpy(block + i * s->tokens, arrays[i], bytes);
        }
        s->micro_supervised[m] = batch->micro_supervised[m];
    }
}

const int32_t *eng_step_block(const struct eng_step *s, int micro)
{
    return s->blocks + (size_t)micro * ENG_BLOCK_ARRAYS * s->tokens;
}

void eng_step_event(struct eng_step *s, const struct eng_text *json)
{
    if (s->events.size > 0) {
        eng_text_puts(&s->events, ",");
    }
    eng_text_put(&s->events, json->data, json->size);
    s->events.failed = s->events.failed || json->failed;
}
