/* Renders the chats of a JSON Lines file with a template for a while and prints renders a second:
 *   template_bench TEMPLATE FILE.jsonl SECONDS
 * Values of the messages are made anew for every render, as the data loader does. Called by
 * template_peer.py. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jinja.h"

enum { CHATS_MAX = 100000, BATCH = 64 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *const f = fopen(path, "rb");
    char *bytes = NULL;
    size_t capacity = 0;
    if (f != NULL) {
        const ssize_t n = getdelim(&bytes, &capacity, EOF, f);
        *size = n < 0 ? 0 : (size_t)n;
        fclose(f);
    }
    return bytes;
}

static size_t render(struct eng_jinja_renderer *r, const eng_jinja *template, const json_t *chat)
{
    const struct jbuf *text = NULL;
    struct eng_error error;
    eng_jinja_begin(r);
    struct jmem *const m = &r->mem;
    const size_t count = json_array_size(chat);
    const struct jv role = eng_jinja_literal("role");
    const struct jv content = eng_jinja_literal("content");
    const struct jv list = eng_jinja_list(m, J_LIST, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *const message = json_array_get(chat, i);
        const json_t *const words = json_object_get(message, "content");
        const struct jv dict = eng_jinja_dict(m, 2);
        eng_jinja_set(m, dict, role,
                      eng_jinja_literal(json_string_value(json_object_get(message, "role"))));
        eng_jinja_set(m, dict, content,
                      jv_str(json_string_value(words), json_string_length(words), JS_CONTENT));
        eng_jinja_append(m, list, dict);
    }
    eng_jinja_variable(r, "messages", list);
    eng_jinja_variable(r, "tools", jv_none());
    eng_jinja_variable(r, "documents", jv_none());
    eng_jinja_variable(r, "add_generation_prompt", jv_bool(false));
    eng_jinja_variable(r, "bos_token", eng_jinja_literal("<s>"));
    eng_jinja_variable(r, "eos_token", eng_jinja_literal("</s>"));
    if (eng_jinja_render(r, template, &text, &error) != ENG_OK) {
        fprintf(stderr, "template_bench: %s\n", error.text);
        exit(1);
    }
    return text->size;
}

int main(int argc, char **argv)
{
    static json_t *chats[CHATS_MAX];
    size_t size = 0;
    size_t count = 0;
    size_t bytes = 0;
    eng_jinja *template = NULL;
    struct eng_jinja_renderer renderer;
    struct eng_error error = {""};
    char *const source = argc == 4 ? read_file(argv[1], &size) : NULL;
    FILE *const data = argc == 4 ? fopen(argv[2], "rb") : NULL;
    if (source == NULL || data == NULL ||
        eng_jinja_parse(argv[1], source, size, &template, &error) != ENG_OK ||
        eng_jinja_init(&renderer, &eng_jinja_usual_limits, &error) != ENG_OK) {
        fprintf(stderr, "usage: template_bench TEMPLATE FILE.jsonl SECONDS; %s\n", error.text);
        return 1;
    }
    json_t *record = NULL;
    while (count < CHATS_MAX && (record = json_loadf(data, JSON_DISABLE_EOF_CHECK, NULL)) != NULL) {
        chats[count++] = json_object_get(record, "messages");
    }
    const double start = now();
    const double seconds = atof(argv[3]);
    size_t done = 0;
    for (; count > 0 && now() - start < seconds; done += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            bytes += render(&renderer, template, chats[(done + i) % count]);
        }
    }
    printf("%.0f %zu\n", (double)done / (now() - start), bytes / (done > 0 ? done : 1));
    return 0;
}
