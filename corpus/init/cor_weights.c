/* Lists the tensors and writes the file, a block at a time.
 * Called by init_main.c; must know neither YAML nor the command line. */
#include "cor_weights.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cor_normal.h"

enum { LAYER_TENSORS = 9, BLOCK_FLOATS = 1 << 16, PATH_MAX_BYTES = 4096 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "floats are written as they lie in memory");

size_t cor_tensor_count(const struct cor_model *model)
{
    return 2 + LAYER_TENSORS * model->layers + (model->tied ? 0 : 1);
}

static struct cor_tensor tensor_make(const char *name, size_t rows, size_t columns,
                                     double deviation)
{
    struct cor_tensor tensor = {
        .dims = columns == 0 ? 1 : 2, .shape = {rows, columns}, .deviation = deviation};
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

static struct cor_tensor layer_tensor(const struct cor_model *m, size_t layer, size_t index)
{
    const size_t kv_width = m->width / m->heads * m->kv_heads;
    const double plain = 0.02;
    const double residual = plain / sqrt(2.0 * (double)m->layers);
    const struct {
        const char *name;
        size_t rows, columns;
        double deviation;
    } rows[LAYER_TENSORS] = {
        {"input_layernorm", m->width, 0, 0.0},
        {"self_attn.q_proj", m->width, m->width, plain},
        {"self_attn.k_proj", kv_width, m->width, plain},
        {"self_attn.v_proj", kv_width, m->width, plain},
        {"self_attn.o_proj", m->width, m->width, residual},
        {"post_attention_layernorm", m->width, 0, 0.0},
        {"mlp.gate_proj", m->ffn, m->width, plain},
        {"mlp.up_proj", m->ffn, m->width, plain},
        {"mlp.down_proj", m->width, m->ffn, residual},
    };
    char name[COR_NAME_MAX];
    snprintf(name, sizeof name, "model.layers.%zu.%s.weight", layer, rows[index].name);
    return tensor_make(name, rows[index].rows, rows[index].columns, rows[index].deviation);
}

struct cor_tensor cor_tensor_at(const struct cor_model *model, size_t index)
{
    const size_t after_layers = 1 + LAYER_TENSORS * model->layers;
    if (index == 0) {
        return tensor_make("model.embed_tokens.weight", model->vocab, model->width, 0.02);
    }
    if (index < after_layers) {
        return layer_tensor(model, (index - 1) / LAYER_TENSORS, (index - 1) % LAYER_TENSORS);
    }
    return index == after_layers ? tensor_make("model.norm.weight", model->width, 0, 0.0)
                                 : tensor_make("lm_head.weight", model->vocab, model->width, 0.02);
}

static size_t tensor_elements(const struct cor_tensor *tensor)
{
    return tensor->dims == 1 ? tensor->shape[0] : tensor->shape[0] * tensor->shape[1];
}

/* The length, then the JSON header, padded with blanks to a multiple of eight. */
static bool write_header(FILE *file, const struct cor_model *model)
{
    char *text = NULL;
    size_t bytes = 0;
    size_t offset = 0;
    FILE *const header = open_memstream(&text, &bytes);
    if (header == NULL) {
        return false;
    }
    fprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < cor_tensor_count(model); i++) {
        const struct cor_tensor t = cor_tensor_at(model, i);
        const size_t end = offset + tensor_elements(&t) * sizeof(float);
        fprintf(header, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", t.name, t.shape[0]);
        if (t.dims == 2) {
            fprintf(header, ",%zu", t.shape[1]);
        }
        fprintf(header, "],\"data_offsets\":[%zu,%zu]}", offset, end);
        offset = end;
    }
    fputc('}', header);
    while (ftell(header) % 8 != 0) {
        fputc(' ', header);
    }
    bool ok = fclose(header) == 0;
    const uint64_t length = bytes;
    ok =
        ok && fwrite(&length, sizeof length, 1, file) == 1 && fwrite(text, 1, bytes, file) == bytes;
    free(text);
    return ok;
}

static bool write_tensor(FILE *file, const struct cor_tensor *tensor, uint64_t seed, size_t index,
                         float *block)
{
    struct cor_normal normal = cor_normal_start(seed, index);
    size_t left = tensor_elements(tensor);
    while (left > 0) {
        const size_t count = left < BLOCK_FLOATS ? left : BLOCK_FLOATS;
        if (tensor->deviation > 0.0) {
            cor_normal_fill(&normal, tensor->deviation, block, count);
        } else {
            for (size_t i = 0; i < count; i++) {
                block[i] = 1.0f;
            }
        }
        if (fwrite(block, sizeof *block, count, file) != count) {
            return false;
        }
        left -= count;
    }
    return true;
}

enum cor_status cor_weights_write(const struct cor_model *model, uint64_t seed, const char *path,
                                  struct cor_error *error)
{
    enum cor_status status = COR_OK;
    char temporary[PATH_MAX_BYTES];
    struct stat info;
    FILE *file = NULL;
    bool created = false;
    float *const block = malloc(BLOCK_FLOATS * sizeof *block);
    const int length = snprintf(temporary, sizeof temporary, "%s.tmp", path);

    if (block == NULL || length < 0 || (size_t)length >= sizeof temporary) {
        status = cor_fail(error, COR_EIO, "%.200s: name too long or no memory", path);
        goto done;
    }
    /* Renaming would put a file in the place of a device or a pipe. */
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        status = cor_fail(error, COR_EIO, "%s: not a regular file", path);
        goto done;
    }
    file = fopen(temporary, "wb");
    created = file != NULL;
    bool ok = created && write_header(file, model);
    for (size_t i = 0; ok && i < cor_tensor_count(model); i++) {
        const struct cor_tensor tensor = cor_tensor_at(model, i);
        ok = write_tensor(file, &tensor, seed, i, block);
    }
    const int cause = errno;
    if (!ok) {
        status = cor_fail(error, COR_EIO, "%s: %s", temporary, strerror(cause));
        goto done;
    }
    ok = fclose(file) == 0;
    file = NULL;
    if (!ok || rename(temporary, path) != 0) {
        status = cor_fail(error, COR_EIO, "%s: %s", path, strerror(errno));
    }
done:
    if (file != NULL) {
        fclose(file);
    }
    if (status != COR_OK && created) {
        unlink(temporary);
    }
    free(block);
    return status;
}
