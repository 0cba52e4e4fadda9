/* Reader of stage files (JSON Lines). See ref_text.h. */
#include "ref_text.h"

#include "ref_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *path;
    size_t line, vocab;
    struct orc_ref_arena *arena;
    struct orc_ref_error *error;
};

static enum orc_ref_status bad(const struct reader *r, const char *cause)
{
    return orc_ref_fail(r->error, ORC_REF_BAD, "%s:%zu: %s", r->path, r->line, cause);
}

static bool whole_number(const cJSON *item, double limit, int32_t *out)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0.0 && item->valuedouble < limit) ||
        floor(item->valuedouble) != item->valuedouble)
        return false;
    *out = (int32_t)item->valuedouble;
    return true;
}

static enum orc_ref_status read_tokens(const struct reader *r, const cJSON *record,
                                       struct orc_ref_document *document)
{
    const cJSON *const ids = cJSON_GetObjectItemCaseSensitive(record, "ids");
    const cJSON *const marks = cJSON_GetObjectItemCaseSensitive(record, "supervised");
    if (!cJSON_IsArray(ids) || !cJSON_IsArray(marks))
        return bad(r, "no \"ids\" and \"supervised\"");
    const size_t count = (size_t)cJSON_GetArraySize(ids);
    if ((size_t)cJSON_GetArraySize(marks) != count)
        return bad(r, "\"ids\" and \"supervised\" differ in length");
    document->ids = orc_ref_arena_take(r->arena, count, sizeof *document->ids);
    document->supervised = orc_ref_arena_take(r->arena, count, 1);
    if (document->ids == NULL || document->supervised == NULL)
        return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    const cJSON *id = ids->child, *mark = marks->child;
    for (size_t i = 0; i < count; i++, id = id->next, mark = mark->next) {
        int32_t flag;
        if (!whole_number(id, (double)r->vocab, &document->ids[i]))
            return bad(r, "an id is not below the vocabulary's size");
        if (!whole_number(mark, 2.0, &flag))
            return bad(r, "a mark is neither 0 nor 1");
        document->supervised[i] = (uint8_t)flag;
    }
    document->count = count;
    return ORC_REF_OK;
}

static unsigned feature_bit(const char *name)
{
#define NAME(feature) #feature,
    static const char *const names[] = {ORC_REF_TEXT_FEATURES(NAME)};
#undef NAME
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return 1U << i;
    return 0;
}

static enum orc_ref_status read_document(const struct reader *r, const cJSON *record,
                                         struct orc_ref_document *document)
{
    const cJSON *const id = cJSON_GetObjectItemCaseSensitive(record, "id");
    const cJSON *const hash = cJSON_GetObjectItemCaseSensitive(record, "hash");
    const cJSON *const features = cJSON_GetObjectItemCaseSensitive(record, "features");
    const cJSON *const prefix = cJSON_GetObjectItemCaseSensitive(record, "prefix");
    int32_t file = 0, line = 0, kept = 1;
    if (!cJSON_IsString(id))
        return bad(r, "no \"id\"");
    const cJSON *const place[] = {cJSON_GetObjectItemCaseSensitive(record, "file"),
                                  cJSON_GetObjectItemCaseSensitive(record, "line")};
    if ((place[0] != NULL && !whole_number(place[0], 0x1p31, &file)) ||
        (place[1] != NULL && !whole_number(place[1], 0x1p31, &line)))
        return bad(r, "\"file\" or \"line\" is no whole number");
    if (prefix != NULL && !whole_number(prefix, 2.0, &kept))
        return bad(r, "\"prefix\" is neither 0 nor 1");
    document->file = (size_t)file;
    document->line = place[1] != NULL ? (size_t)line : r->line;
    document->no_prefix = kept == 0;
    if (!cJSON_IsString(hash) || strlen(hash->valuestring) != 16 ||
        strspn(hash->valuestring, "0123456789abcdef") != 16)
        return bad(r, "\"hash\" is not 16 hexadecimal digits");
    document->id = orc_ref_arena_text(r->arena, id->valuestring, strlen(id->valuestring));
    if (document->id == NULL)
        return orc_ref_fail(r->error, ORC_REF_INTERNAL, "%s: no memory", r->path);
    document->text_hash = strtoull(hash->valuestring, NULL, 16);
    document->features = 0;
    const cJSON *feature;
    cJSON_ArrayForEach(feature, features) {
        const unsigned bit = cJSON_IsString(feature) ? feature_bit(feature->valuestring) : 0;
        if (bit == 0)
            return bad(r, "unknown feature");
        document->features |= bit;
    }
    return read_tokens(r, record, document);
}

static size_t count_lines(const char *data, size_t bytes)
{
    size_t lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += data[i] == '\n';
    return lines;
}

enum orc_ref_status orc_ref_documents_load(const char *path, size_t vocab,
                                           struct orc_ref_arena *arena,
                                           struct orc_ref_documents *documents,
                                           struct orc_ref_error *error)
{
    char *file = NULL;
    size_t bytes = 0;
    struct reader r = {path, 0, vocab, arena, error};
    enum orc_ref_status status = orc_ref_file_read(path, &file, &bytes, error);
    if (status != ORC_REF_OK)
        goto done;
    const size_t count = count_lines(file, bytes);
    documents->count = 0;
    documents->list = orc_ref_arena_take(arena, count, sizeof *documents->list);
    if (documents->list == NULL) {
        status = orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory", path);
        goto done;
    }
    for (char *line = file, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        r.line++;
        cJSON *const record = cJSON_ParseWithLength(line, (size_t)(end - line));
        status = cJSON_IsObject(record)
                     ? read_document(&r, record, &documents->list[documents->count])
                     : bad(&r, "not a JSON object");
        cJSON_Delete(record);
        if (status != ORC_REF_OK)
            goto done;
        documents->count++;
    }
    if (documents->count != count || (bytes > 0 && file[bytes - 1] != '\n'))
        status = orc_ref_fail(error, ORC_REF_BAD, "%s: the file is cut off", path);
done:
    free(file);
    return status;
}
