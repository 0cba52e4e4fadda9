/* States of a run that is followed. See ref_follow.h; the format is that of TRACE.md. */
#include "ref_follow.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 1 << 20, WORD = 4, MARK = 8, PART = 1 << 14 };

struct orc_ref_follow {
    const char *path;
    FILE *file;
    struct orc_ref_followed want;
    size_t step;                      /* of the record at hand */
    unsigned char words[PART * WORD]; /* read at once */
};

static enum orc_ref_status cut(const struct orc_ref_follow *f, struct orc_ref_error *error)
{
    if (ferror(f->file))
        return orc_ref_fail(error, ORC_REF_IO, "%s: %s", f->path, strerror(errno));
    return orc_ref_fail(error, ORC_REF_BAD, "%s: the file is cut off in the record of step %zu",
                        f->path, f->step);
}

static enum orc_ref_status mark(struct orc_ref_follow *f, uint64_t want,
                                struct orc_ref_error *error)
{
    unsigned char bytes[MARK];
    const size_t got = fread(bytes, 1, sizeof bytes, f->file);
    if (got == 0 && !ferror(f->file))
        return orc_ref_fail(error, ORC_REF_BAD, "%s: ends after step %zu of %zu, without its mark",
                            f->path, f->step, f->want.steps);
    if (got < sizeof bytes)
        return cut(f, error);
    uint64_t number = 0;
    for (size_t i = MARK; i-- > 0;)
        number = number << 8 | bytes[i];
    if (number != want)
        return orc_ref_fail(error, ORC_REF_BAD,
                            "%s: behind step %zu stands a record numbered %" PRIu64, f->path,
                            f->step, number);
    return ORC_REF_OK;
}

/* ---- header ---- */

/* A whole number, or a hash, of the header against the run's. */
static bool is_number(const cJSON *header, const char *key, uint64_t want)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(header, key);
    char text[24];
    /* cJSON keeps numbers as doubles: equal within their precision is all that can be asked. */
    if (cJSON_IsNumber(item))
        return item->valuedouble == (double)want;
    (void)snprintf(text, sizeof text, "%016" PRIx64, want);
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static bool tensors_match(const cJSON *header, const struct orc_ref_params *params)
{
    const cJSON *const names = cJSON_GetObjectItemCaseSensitive(header, "tensors");
    const cJSON *const sizes = cJSON_GetObjectItemCaseSensitive(header, "elements");
    if (cJSON_GetArraySize(names) != (int)params->count ||
        cJSON_GetArraySize(sizes) != (int)params->count)
        return false;
    const cJSON *name = names->child, *size = sizes->child;
    for (size_t i = 0; i < params->count; i++, name = name->next, size = size->next)
        if (!cJSON_IsString(name) || strcmp(name->valuestring, params->list[i].name) != 0 ||
            !cJSON_IsNumber(size) ||
            size->valuedouble != (double)orc_ref_param_size(&params->list[i]))
            return false;
    return true;
}

static enum orc_ref_status check_header(const struct orc_ref_follow *f, const cJSON *header,
                                        struct orc_ref_error *error)
{
    const struct orc_ref_followed *const want = &f->want;
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"recipe_hash", want->recipe_hash}, {"seed", want->seed},
                   {"steps", want->steps},             {"micro", want->micro},
                   {"positions", want->positions}};
    const cJSON *const type = cJSON_GetObjectItemCaseSensitive(header, "type");
    if (!cJSON_IsString(type) || strcmp(type->valuestring, "states") != 0 ||
        !is_number(header, "states_version", 1))
        return orc_ref_fail(error, ORC_REF_BAD, "%s: no states of version 1", f->path);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!is_number(header, numbers[i].key, numbers[i].value))
            return orc_ref_fail(error, ORC_REF_BAD, "%s: states of another run: %s is not this's",
                                f->path, numbers[i].key);
    if (!tensors_match(header, want->params))
        return orc_ref_fail(error, ORC_REF_BAD,
                            "%s: states of another model: tensors are not the recipe's", f->path);
    return ORC_REF_OK;
}

static enum orc_ref_status read_header(struct orc_ref_follow *f, struct orc_ref_error *error)
{
    char *const line = malloc(HEADER_MAX);
    if (line == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory", f->path);
    enum orc_ref_status status = ORC_REF_OK;
    cJSON *header = NULL;
    if (fgets(line, HEADER_MAX, f->file) == NULL && ferror(f->file)) {
        status = orc_ref_fail(error, ORC_REF_IO, "%s: %s", f->path, strerror(errno));
        goto done;
    }
    if (!feof(f->file) && strchr(line, '\n') != NULL)
        header = cJSON_Parse(line);
    status = cJSON_IsObject(header)
                 ? check_header(f, header, error)
                 : orc_ref_fail(error, ORC_REF_BAD, "%s: no states: no header", f->path);
done:
    cJSON_Delete(header);
    free(line);
    return status;
}

enum orc_ref_status orc_ref_follow_open(const char *path, const struct orc_ref_followed *want,
                                        struct orc_ref_follow **out, struct orc_ref_error *error)
{
    struct orc_ref_follow *const f = malloc(sizeof *f);
    if (f == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "%s: no memory", path);
    f->path = path;
    f->want = *want;
    f->step = 0;
    f->file = fopen(path, "rbe");
    enum orc_ref_status status =
        f->file == NULL ? orc_ref_fail(error, ORC_REF_IO, "%s: %s", path, strerror(errno))
                        : read_header(f, error);
    if (status != ORC_REF_OK)
        orc_ref_follow_close(f);
    else
        *out = f;
    return status;
}

void orc_ref_follow_close(struct orc_ref_follow *follow)
{
    if (follow == NULL)
        return;
    if (follow->file != NULL)
        (void)fclose(follow->file);
    free(follow);
}

/* ---- records ---- */

/* Word i of those read last. */
static uint32_t word_at(const struct orc_ref_follow *f, size_t i)
{
    const unsigned char *const p = f->words + i * WORD;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static enum orc_ref_status read_ints(struct orc_ref_follow *f, int32_t *to, size_t count,
                                     struct orc_ref_error *error)
{
    for (size_t done = 0, part; done < count; done += part) {
        part = count - done < PART ? count - done : PART;
        if (fread(f->words, WORD, part, f->file) != part)
            return cut(f, error);
        for (size_t i = 0; i < part; i++)
            to[done + i] = (int32_t)word_at(f, i);
    }
    return ORC_REF_OK;
}

static enum orc_ref_status read_floats(struct orc_ref_follow *f, double *to, size_t count,
                                       struct orc_ref_error *error)
{
    for (size_t done = 0, part; done < count; done += part) {
        part = count - done < PART ? count - done : PART;
        if (fread(f->words, WORD, part, f->file) != part)
            return cut(f, error);
        for (size_t i = 0; i < part; i++) {
            const uint32_t bits = word_at(f, i);
            float value;
            memcpy(&value, &bits, sizeof value);
            to[done + i] = (double)value;
        }
    }
    return ORC_REF_OK;
}

static enum orc_ref_status check_tokens(const struct orc_ref_follow *f,
                                        const struct orc_ref_batch *batch,
                                        struct orc_ref_error *error)
{
    for (size_t i = 0; i < f->want.positions; i++) {
        const int32_t pair[] = {batch->ids[i],
                                batch->labels[i] == ORC_REF_IGNORED ? 0 : batch->labels[i]};
        for (size_t k = 0; k < sizeof pair / sizeof *pair; k++)
            if (pair[k] < 0 || (size_t)pair[k] >= f->want.vocab)
                return orc_ref_fail(error, ORC_REF_BAD,
                                    "%s: step %zu has token %" PRId32 ", outside the vocabulary",
                                    f->path, f->step, pair[k]);
    }
    return ORC_REF_OK;
}

enum orc_ref_status orc_ref_follow_batch(struct orc_ref_follow *follow, size_t step,
                                         struct orc_ref_batch *batches,
                                         struct orc_ref_error *error)
{
    enum { ARRAYS = 4 };
    enum orc_ref_status status = mark(follow, step, error);
    follow->step = step;
    for (size_t a = 0; a < ARRAYS; a++)
        for (size_t m = 0; status == ORC_REF_OK && m < follow->want.micro; m++) {
            int32_t *const arrays[ARRAYS] = {batches[m].ids, batches[m].labels,
                                             batches[m].positions, batches[m].segments};
            status = read_ints(follow, arrays[a], follow->want.positions, error);
        }
    for (size_t m = 0; status == ORC_REF_OK && m < follow->want.micro; m++)
        status = check_tokens(follow, &batches[m], error);
    return status;
}

enum orc_ref_status orc_ref_follow_state(struct orc_ref_follow *follow,
                                         struct orc_ref_params *params,
                                         struct orc_ref_error *error)
{
    double *const arrays[] = {params->value, params->moment1, params->moment2};
    enum orc_ref_status status = ORC_REF_OK;
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
        for (size_t i = 0; status == ORC_REF_OK && i < params->count; i++)
            status = read_floats(follow, arrays[a] + params->list[i].offset,
                                 orc_ref_param_size(&params->list[i]), error);
    return status;
}

enum orc_ref_status orc_ref_follow_end(struct orc_ref_follow *follow, struct orc_ref_error *error)
{
    return mark(follow, 0, error);
}
