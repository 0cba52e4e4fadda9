/* Reader of safetensors files. Called once at the start of a run; see ref_params.h. The file is
 * eight bytes of header length (little-endian), a JSON header, then the data. */
#include "ref_params.h"

#include "ref_file.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, FLOAT_BYTES = 4 };

struct source {
    const char *path;
    const unsigned char *data; /* behind the header */
    size_t bytes;
    const cJSON *header;
};

static bool read_size(const cJSON *item, size_t *out)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0.0) || item->valuedouble > 0x1p52 ||
        floor(item->valuedouble) != item->valuedouble)
        return false;
    *out = (size_t)item->valuedouble;
    return true;
}

static bool shape_matches(const cJSON *shape, const struct orc_ref_param *param)
{
    if (!cJSON_IsArray(shape) || (size_t)cJSON_GetArraySize(shape) != param->dims)
        return false;
    const size_t want[2] = {param->dims == 1 ? param->cols : param->rows, param->cols};
    for (int i = 0; i < (int)param->dims; i++) {
        size_t got;
        if (!read_size(cJSON_GetArrayItem(shape, i), &got) || got != want[i])
            return false;
    }
    return true;
}

static float read_float(const unsigned char *p)
{
    const uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                          (uint32_t)p[3] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static enum orc_ref_status load_tensor(const struct source *source,
                                       const struct orc_ref_param *param, double *to,
                                       struct orc_ref_error *error)
{
    const cJSON *const entry = cJSON_GetObjectItemCaseSensitive(source->header, param->name);
    if (entry == NULL)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: no tensor %s", source->path, param->name);
    const cJSON *const dtype = cJSON_GetObjectItemCaseSensitive(entry, "dtype");
    if (!cJSON_IsString(dtype) || strcmp(dtype->valuestring, "F32") != 0)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: %s is not F32", source->path, param->name);
    if (!shape_matches(cJSON_GetObjectItemCaseSensitive(entry, "shape"), param))
        return orc_ref_fail(error, ORC_REF_BAD, "%s: shape of %s is not that of the recipe",
                            source->path, param->name);
    const cJSON *const offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
    const size_t count = orc_ref_param_size(param);
    size_t begin = 0, end = 0;
    if (cJSON_GetArraySize(offsets) != 2 || !read_size(cJSON_GetArrayItem(offsets, 0), &begin) ||
        !read_size(cJSON_GetArrayItem(offsets, 1), &end) || begin > end || end > source->bytes ||
        end - begin != count * FLOAT_BYTES)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: offsets of %s do not fit", source->path,
                            param->name);
    for (size_t i = 0; i < count; i++) {
        to[i] = (double)read_float(source->data + begin + i * FLOAT_BYTES);
        if (!isfinite(to[i]))
            return orc_ref_fail(error, ORC_REF_BAD, "%s: %s element %zu is not finite",
                                source->path, param->name, i);
    }
    return ORC_REF_OK;
}

/* Tensors the recipe does not have, or names twice. */
static enum orc_ref_status check_names(const struct source *source,
                                       const struct orc_ref_params *params,
                                       struct orc_ref_error *error)
{
    size_t found = 0;
    for (const cJSON *item = source->header->child; item != NULL; item = item->next) {
        if (strcmp(item->string, "__metadata__") == 0)
            continue;
        size_t i = 0;
        while (i < params->count && strcmp(item->string, params->list[i].name) != 0)
            i++;
        if (i == params->count)
            return orc_ref_fail(error, ORC_REF_BAD, "%s: unexpected tensor %s", source->path,
                                item->string);
        found++;
    }
    if (found != params->count)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: %zu tensors, the recipe has %zu",
                            source->path, found, params->count);
    return ORC_REF_OK;
}

enum orc_ref_status orc_ref_weights_load(const char *path, struct orc_ref_params *params,
                                         struct orc_ref_error *error)
{
    char *file = NULL;
    cJSON *header = NULL;
    size_t bytes = 0;
    enum orc_ref_status status = orc_ref_file_read(path, &file, &bytes, error);
    if (status != ORC_REF_OK)
        goto done;
    uint64_t length = UINT64_MAX;
    if (bytes >= LENGTH_BYTES) {
        length = 0;
        for (size_t i = LENGTH_BYTES; i-- > 0;)
            length = length << 8 | (unsigned char)file[i];
    }
    if (bytes < LENGTH_BYTES || length > bytes - LENGTH_BYTES) {
        status = orc_ref_fail(error, ORC_REF_BAD, "%s: not a safetensors file", path);
        goto done;
    }
    header = cJSON_ParseWithLength(file + LENGTH_BYTES, (size_t)length);
    if (!cJSON_IsObject(header)) {
        status = orc_ref_fail(error, ORC_REF_BAD, "%s: the header is not a JSON object", path);
        goto done;
    }
    const size_t start = LENGTH_BYTES + (size_t)length;
    const struct source source = {path, (const unsigned char *)file + start, bytes - start, header};
    status = check_names(&source, params, error);
    for (size_t i = 0; status == ORC_REF_OK && i < params->count; i++)
        status = load_tensor(&source, &params->list[i], params->value + params->list[i].offset,
                             error);
done:
    cJSON_Delete(header);
    free(file);
    return status;
}
