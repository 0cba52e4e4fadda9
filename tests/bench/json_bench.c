/* Lines of a file of chats parsed by the trainer's reader, by cJSON and by jansson, in one run, and
 * the lengths of their contents summed. Run by run.sh; never a test.
 *   json_bench FILE [ROUNDS] */
#include <cjson/cJSON.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json_record.h"

struct lines {
    const char **starts; /* count + 1 */
    size_t count;
};

typedef size_t parse_fn(const char *line, size_t size);

static size_t by_ours(const char *line, size_t size)
{
    static struct eng_conversation chat;
    size_t sum = 0;
    if (eng_record_parse(ENG_FORMAT_MESSAGES, line, size, &chat, NULL) != ENG_OK) {
        abort();
    }
    for (size_t i = 0; i < chat.message_count; i++) {
        sum += chat.messages[i].content.size;
    }
    return sum;
}

static size_t by_cjson(const char *line, size_t size)
{
    cJSON *const root = cJSON_ParseWithLength(line, size);
    const cJSON *message;
    size_t sum = 0;
    cJSON_ArrayForEach(message, cJSON_GetObjectItemCaseSensitive(root, "messages"))
    {
        sum += strlen(cJSON_GetObjectItemCaseSensitive(message, "content")->valuestring);
    }
    cJSON_Delete(root);
    return sum;
}

static size_t by_jansson(const char *line, size_t size)
{
    json_t *const root = json_loadb(line, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    const json_t *const messages = json_object_get(root, "messages");
    size_t sum = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        sum += json_string_length(json_object_get(json_array_get(messages, i), "content"));
    }
    json_decref(root);
    return sum;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct lines read_lines(const char *path, size_t *bytes)
{
    FILE *const file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *const text = malloc(*bytes + 1);
    if (text == NULL || fread(text, 1, *bytes, file) != *bytes) {
        perror(path);
        exit(1);
    }
    fclose(file);
    struct lines l = {NULL, 0};
    size_t capacity = 0;
    for (const char *at = text; at < text + *bytes; l.count++) {
        if (l.count + 1 >= capacity) {
            capacity = capacity * 2 + 1024;
            l.starts = realloc(l.starts, capacity * sizeof *l.starts);
        }
        l.starts[l.count] = at;
        at = (const char *)memchr(at, '\n', (size_t)(text + *bytes - at)) + 1;
        l.starts[l.count + 1] = at;
    }
    return l;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        parse_fn *parse;
    } readers[] = {{"ours", by_ours}, {"cJSON", by_cjson}, {"jansson", by_jansson}};
    enum { READERS = sizeof readers / sizeof readers[0] };
    double best[READERS] = {0.0};
    size_t sums[READERS] = {0};
    size_t bytes = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: json_bench FILE [ROUNDS]\n");
        return 1;
    }
    const struct lines l = read_lines(argv[1], &bytes);
    const int rounds = argc > 2 ? atoi(argv[2]) : 3;
    for (int round = 0; round < rounds; round++) {
        for (size_t r = 0; r < READERS; r++) {
            const double start = now();
            sums[r] = 0;
            for (size_t i = 0; i < l.count; i++) {
                sums[r] +=
                    readers[r].parse(l.starts[i], (size_t)(l.starts[i + 1] - l.starts[i]) - 1);
            }
            const double seconds = now() - start;
            best[r] = round == 0 || seconds < best[r] ? seconds : best[r];
        }
    }
    for (size_t r = 0; r < READERS; r++) {
        printf("  %-8s %7.0f MB/s %10.0f lines/s  ours/%s %.2f%s\n", readers[r].name,
               (double)bytes / best[r] / 1e6, (double)l.count / best[r], readers[r].name,
               best[r] / best[0], sums[r] == sums[0] ? "" : "  (another sum of lengths)");
    }
    return 0;
}
