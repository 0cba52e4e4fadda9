/* Weights in and out: safetensors files and config.json.
 * Called by engine/train through model.h; must not know the passes. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault.h"
#include "model_params.h"

enum { HEADER_MAX = 100 << 20 };

/* A safetensors file mapped for reading. data is NULL when closed. */
struct mapped {
    const char *path;
    const unsigned char *data;
    size_t size;
    size_t payload; /* offset of the first tensor byte */
    json_t *header;
};

static void mapped_close(struct mapped *f)
{
    if (f->data != NULL) {
        munmap((void *)(uintptr_t)f->data, f->size);
    }
    json_decref(f->header);
    f->data = NULL;
    f->header = NULL;
}

static enum eng_status mapped_header(struct mapped *f, struct eng_error *error)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) {
        length = length << 8 | f->data[i];
    }
    if (length > HEADER_MAX || length > f->size - 8) {
        return eng_fail(error, ENG_EINPUT, "%s: header length %llu does not fit the file", f->path,
                        (unsigned long long)length);
    }
    json_error_t cause;
    f->payload = 8 + (size_t)length;
    f->header =
        json_loadb((const char *)f->data + 8, (size_t)length, JSON_REJECT_DUPLICATES, &cause);
    if (!json_is_object(f->header)) {
        return eng_fail(error, ENG_EINPUT, "%s: header is not a JSON object: %s", f->path,
                        f->header == NULL ? cause.text : "wrong type");
    }
    return ENG_OK;
}

static enum eng_status mapped_open(struct mapped *f, const char *path, struct eng_error *error)
{
    *f = (struct mapped){.path = path};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        const int cause = errno;
        if (fd >= 0) {
            close(fd);
        }
        return eng_fail(error, ENG_EIO, "%s: cannot be read: %s", path, strerror(cause));
    }
    f->size = (size_t)info.st_size;
    if (!S_ISREG(info.st_mode) || f->size < 8) {
        close(fd);
        return eng_fail(error, ENG_EINPUT, "%s: not a safetensors file", path);
    }
    void *data = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED) {
        return eng_fail(error, ENG_EIO, "%s: cannot be mapped: %s", path, strerror(errno));
    }
    f->data = data;
    return mapped_header(f, error);
}

static bool shape_matches(const json_t *shape, const struct eng_tensor *t)
{
    const size_t dims = t->cols > 0 ? 2 : 1;
    return json_array_size(shape) == dims &&
           json_integer_value(json_array_get(shape, 0)) == t->rows &&
           (dims == 1 || json_integer_value(json_array_get(shape, 1)) == t->cols);
}

/* Finds the bytes of one tensor and checks everything the file says about it. */
static enum eng_status find_tensor(const struct mapped *f, const struct eng_tensor *t,
                                   const unsigned char **out, struct eng_error *error)
{
    const json_t *entry = json_object_get(f->header, t->name);
    const json_t *dtype = json_object_get(entry, "dtype");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    if (entry == NULL) {
        return eng_fail(error, ENG_EINPUT, "%s: tensor '%s' is missing", f->path, t->name);
    }
    if (!json_is_string(dtype) || strcmp(json_string_value(dtype), "F32") != 0) {
        return eng_fail(error, ENG_EINPUT, "%s: tensor '%s' is not F32", f->path, t->name);
    }
    if (!shape_matches(json_object_get(entry, "shape"), t)) {
        return eng_fail(error, ENG_EINPUT,
                        "%s: tensor '%s' does not have the shape the recipe gives it (%d, %d)",
                        f->path, t->name, t->rows, t->cols);
    }
    const json_t *const first = json_array_get(offsets, 0);
    const json_t *const behind = json_array_get(offsets, 1);
    const json_int_t begin = json_integer_value(first);
    const json_int_t end = json_integer_value(behind);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(behind) ||
        begin < 0 || end < begin ||
        end - begin != t->elements * (int64_t)sizeof(float) ||
        (uint64_t)end > f->size - f->payload) {
        return eng_fail(error, ENG_EINPUT, "%s: tensor '%s' has bad data offsets", f->path,
                        t->name);
    }
    *out = f->data + f->payload + begin;
    return ENG_OK;
}

/* Moves `bytes` between host memory and device memory piece by piece through the staging buffer. */
static enum dev_status stage_in(eng_model *m, dev_stream stream, float *dst, const void *src,
                                size_t bytes)
{
    enum dev_status status = DEV_OK;
    for (size_t done = 0; status == DEV_OK && done < bytes; done += ENG_MODEL_PINNED_BYTES) {
        const size_t left = bytes - done;
        const size_t part = left < ENG_MODEL_PINNED_BYTES ? left : ENG_MODEL_PINNED_BYTES;
        status = dev_host(m->device, m->staging, part, DEV_WRITE, "weights to staging");
        if (status == DEV_OK) {
            memcpy(m->staging, (const char *)src + done, part);
            status = dev_copy(m->device, stream, (char *)dst + done, m->staging, part,
                              "weights to device");
        }
        if (status == DEV_OK && FAULT(model_upload_sync, true)) {
            status = dev_sync_stream(m->device, stream);
        }
    }
    return status;
}

enum eng_status eng_model_load(eng_model *model, dev_stream stream, const char *path, float *which,
                               struct eng_error *error)
{
    struct mapped f;
    enum eng_status status = mapped_open(&f, path, error);
    if (status != ENG_OK) {
        goto done;
    }
    const size_t extra = json_object_get(f.header, "__metadata__") != NULL;
    if (json_object_size(f.header) - extra > (size_t)model->params.tensor_count) {
        status = eng_fail(error, ENG_EINPUT, "%s: holds %zu tensors, the recipe's model has %d",
                          path, json_object_size(f.header) - extra, model->params.tensor_count);
    }
    for (int t = 0; status == ENG_OK && t < model->params.tensor_count; t++) {
        const struct eng_tensor *tensor = &model->tensors[t];
        const unsigned char *bytes = NULL;
        status = find_tensor(&f, tensor, &bytes, error);
        if (status == ENG_OK) {
            status = eng_model_device_status(model,
                                             stage_in(model, stream, which + tensor->offset, bytes,
                                                      (size_t)tensor->elements * sizeof(float)),
                                             error);
        }
    }
done:
    mapped_close(&f);
    return status;
}

static bool write_header(const eng_model *model, FILE *f)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (memory == NULL) {
        return false;
    }
    fputs("{\"__metadata__\":{\"format\":\"pt\"}", memory);
    for (int t = 0; t < model->params.tensor_count; t++) {
        const struct eng_tensor *tensor = &model->tensors[t];
        fprintf(memory, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%d", tensor->name, tensor->rows);
        if (tensor->cols > 0) {
            fprintf(memory, ",%d", tensor->cols);
        }
        fprintf(memory, "],\"data_offsets\":[%lld,%lld]}",
                (long long)(tensor->offset * (int64_t)sizeof(float)),
                (long long)((tensor->offset + tensor->elements) * (int64_t)sizeof(float)));
    }
    fputc('}', memory);
    fflush(memory);
    for (size_t pad = length; pad % 8 != 0; pad++) {
        fputc(' ', memory);
    }
    bool ok = fclose(memory) == 0;
    unsigned char size[8];
    for (int i = 0; i < 8; i++) {
        size[i] = (unsigned char)((uint64_t)length >> (8 * i));
    }
    ok = ok && fwrite(size, 1, sizeof size, f) == sizeof size &&
         fwrite(text, 1, length, f) == length;
    free(text);
    return ok;
}

/* Writes the flat buffer behind the header; device errors and file errors stay apart. */
static enum dev_status stage_out(eng_model *m, dev_stream stream, const float *src, FILE *f,
                                 bool *file_ok)
{
    const size_t bytes = (size_t)m->params.elements * sizeof(float);
    enum dev_status status = DEV_OK;
    *file_ok = true;
    for (size_t done = 0; status == DEV_OK && *file_ok && done < bytes;
         done += ENG_MODEL_PINNED_BYTES) {
        const size_t left = bytes - done;
        const size_t part = left < ENG_MODEL_PINNED_BYTES ? left : ENG_MODEL_PINNED_BYTES;
        status = dev_copy(m->device, stream, m->staging, (const char *)src + done, part,
                          "weights to host");
        if (status == DEV_OK) {
            status = dev_sync_stream(m->device, stream);
        }
        if (status == DEV_OK) {
            status = dev_host(m->device, m->staging, part, DEV_READ, "weights from staging");
        }
        if (status == DEV_OK) {
            *file_ok = fwrite(m->staging, 1, part, f) == part;
        }
    }
    return status;
}

enum eng_status eng_model_save(eng_model *model, dev_stream stream, const char *path,
                               const float *which, struct eng_error *error)
{
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        return eng_fail(error, ENG_EIO, "%s: cannot be written: %s", path, strerror(errno));
    }
    bool file_ok = write_header(model, f);
    enum dev_status status = DEV_OK;
    if (file_ok) {
        status = stage_out(model, stream, which, f, &file_ok);
    }
    file_ok = file_ok && fflush(f) == 0;
    const int cause = errno;
    if (fclose(f) != 0 || !file_ok) {
        return eng_fail(error, ENG_EIO, "%s: cannot be written: %s", path, strerror(cause));
    }
    return eng_model_device_status(model, status, error);
}

enum eng_status eng_model_save_config(const eng_model *model, const char *path,
                                      struct eng_error *error)
{
    const struct eng_model_config *c = &model->config;
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        return eng_fail(error, ENG_EIO, "%s: cannot be written: %s", path, strerror(errno));
    }
    fprintf(f,
            "{\n  \"architectures\": [\"LlamaForCausalLM\"],\n  \"model_type\": \"llama\",\n"
            "  \"hidden_act\": \"silu\",\n  \"hidden_size\": %d,\n  \"intermediate_size\": %d,\n"
            "  \"num_hidden_layers\": %d,\n  \"num_attention_heads\": %d,\n"
            "  \"num_key_value_heads\": %d,\n  \"head_dim\": %d,\n"
            "  \"max_position_embeddings\": %d,\n  \"vocab_size\": %d,\n"
            "  \"rms_norm_eps\": %.9g,\n  \"rope_theta\": %.17g,\n"
            "  \"tie_word_embeddings\": %s,\n  \"attention_bias\": false,\n"
            "  \"mlp_bias\": false,\n  \"torch_dtype\": \"float32\"\n}\n",
            c->width, c->ffn, c->layers, c->heads, c->kv_heads, model->head_dim, c->context,
            c->vocab, (double)c->norm_eps, c->rope_theta, c->tied ? "true" : "false");
    const bool ok = fflush(f) == 0;
    const int cause = errno;
    if (fclose(f) != 0 || !ok) {
        return eng_fail(error, ENG_EIO, "%s: cannot be written: %s", path, strerror(cause));
    }
    return ENG_OK;
}
