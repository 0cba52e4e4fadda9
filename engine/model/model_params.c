/* The model's tensors, their places in the flat buffers, and its tables on the device.
 * Called by engine/train through model.h; must not know the passes. */
#include "model_params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"

struct tensor_shape {
    const char *suffix;
    int rows, cols;
};

static void add_tensor(eng_model *m, const char *name, int rows, int cols)
{
    struct eng_tensor *t = &m->tensors[m->params.tensor_count++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->rows = rows;
    t->cols = cols;
    t->offset = m->params.elements;
    t->elements = (int64_t)rows * (cols > 0 ? cols : 1);
    t->decay = cols > 0;
    m->params.elements += t->elements;
}

static void list_tensors(eng_model *m)
{
    const struct eng_model_config *c = &m->config;
    const int q_width = c->heads * m->head_dim;
    const int kv_width = c->kv_heads * m->head_dim;
    const struct tensor_shape layer[ENG_W_PER_LAYER] = {
        {"input_layernorm.weight", c->width, 0},
        {"self_attn.q_proj.weight", q_width, c->width},
        {"self_attn.k_proj.weight", kv_width, c->width},
        {"self_attn.v_proj.weight", kv_width, c->width},
        {"self_attn.o_proj.weight", c->width, q_width},
        {"post_attention_layernorm.weight", c->width, 0},
        {"mlp.gate_proj.weight", c->ffn, c->width},
        {"mlp.up_proj.weight", c->ffn, c->width},
        {"mlp.down_proj.weight", c->width, c->ffn},
    };
    add_tensor(m, "model.embed_tokens.weight", c->vocab, c->width);
    for (int l = 0; l < c->layers; l++) {
        for (int w = 0; w < ENG_W_PER_LAYER; w++) {
            char name[96];
            snprintf(name, sizeof name, "model.layers.%d.%s", l, layer[w].suffix);
            add_tensor(m, name, layer[w].rows, layer[w].cols);
        }
    }
    add_tensor(m, "model.norm.weight", c->width, 0);
    if (!c->tied) {
        add_tensor(m, "lm_head.weight", c->vocab, c->width);
    }
}

int64_t eng_model_layer_offset(const eng_model *model, int layer, enum eng_weight which)
{
    return model->tensors[1 + layer * ENG_W_PER_LAYER + (int)which].offset;
}

int64_t eng_model_norm_offset(const eng_model *model)
{
    return model->tensors[1 + model->config.layers * ENG_W_PER_LAYER].offset;
}

int64_t eng_model_head_offset(const eng_model *model)
{
    return model->config.tied ? 0 : model->tensors[model->params.tensor_count - 1].offset;
}

static void list_taps(eng_model *m)
{
    static const char *const per_layer[] = {"qkv", "attn", "mid", "out"};
    size_t n = 0;
    snprintf(m->tap_names[n++], sizeof m->tap_names[0], "embed");
    for (int l = 0; l < m->config.layers; l++) {
        for (size_t k = 0; k < sizeof per_layer / sizeof per_layer[0]; k++) {
            snprintf(m->tap_names[n++], sizeof m->tap_names[0], "layers.%d.%s", l, per_layer[k]);
        }
    }
    snprintf(m->tap_names[n++], sizeof m->tap_names[0], "norm");
    snprintf(m->tap_names[n++], sizeof m->tap_names[0], "nll");
    m->tap_count = n;
}

/* Copies a host table to fresh device memory through the pinned staging buffer. */
static enum dev_status upload(eng_model *m, dev_stream stream, const void *src, size_t bytes,
                              const char *what, void **out)
{
    enum dev_status status = dev_malloc(m->device, stream, bytes, what, out);
    for (size_t done = 0; status == DEV_OK && done < bytes;) {
        const size_t left = bytes - done;
        const size_t part = left < ENG_MODEL_PINNED_BYTES ? left : ENG_MODEL_PINNED_BYTES;
        status = dev_host(m->device, m->staging, part, DEV_WRITE, what);
        if (status == DEV_OK) {
            memcpy(m->staging, (const char *)src + done, part);
            status = dev_copy(m->device, stream, (char *)*out + done, m->staging, part, what);
        }
        if (status == DEV_OK) {
            status = dev_sync_stream(m->device, stream);
        }
        done += part;
    }
    return status;
}

static enum dev_status upload_chunks(eng_model *m, dev_stream stream)
{
    int chunk_count = 0;
    for (int t = 0; t < m->params.tensor_count; t++) {
        chunk_count += (int)((m->tensors[t].elements + K_CHUNK - 1) / K_CHUNK);
    }
    struct k_chunk *chunks = calloc((size_t)chunk_count, sizeof *chunks);
    int32_t *first = calloc((size_t)m->params.tensor_count + 1, sizeof *first);
    enum dev_status status = chunks != NULL && first != NULL ? DEV_OK : DEV_EHOSTMEM;
    int n = 0;
    for (int t = 0; status == DEV_OK && t < m->params.tensor_count; t++) {
        const struct eng_tensor *tensor = &m->tensors[t];
        first[t] = n;
        for (int64_t i = 0; i < tensor->elements; i += K_CHUNK) {
            const int64_t left = tensor->elements - i;
            chunks[n++] = (struct k_chunk){.offset = tensor->offset + i,
                                           .index = i,
                                           .count = (int32_t)(left < K_CHUNK ? left : K_CHUNK),
                                           .tensor = t,
                                           .decay = tensor->decay};
        }
    }
    if (status == DEV_OK) {
        first[m->params.tensor_count] = n;
        m->params.chunk_count = n;
        status = upload(m, stream, chunks, (size_t)n * sizeof *chunks, "chunk table",
                        (void **)(uintptr_t)&m->params.chunks);
    }
    if (status == DEV_OK) {
        status = upload(m, stream, first, ((size_t)m->params.tensor_count + 1) * sizeof *first,
                        "first chunks", (void **)(uintptr_t)&m->params.first_chunk);
    }
    free(chunks);
    free(first);
    return status;
}

/* Rounds to the nearest bf16 value: what a table kept in half precision would hold. */
__attribute__((unused)) static inline double model_to_bf16(double x)
{
    const float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return (double)rounded;
}

static enum dev_status upload_rope(eng_model *m, dev_stream stream)
{
    const int half = m->head_dim / 2;
    const size_t count = (size_t)m->config.context * (size_t)half;
    float *cosine = malloc(count * sizeof *cosine);
    float *sine = malloc(count * sizeof *sine);
    enum dev_status status = cosine != NULL && sine != NULL ? DEV_OK : DEV_EHOSTMEM;
    for (int p = 0; status == DEV_OK && p < m->config.context; p++) {
        for (int i = 0; i < half; i++) {
            const double exponent = FAULT(model_rope_exponent, -2.0 * i / m->head_dim);
            const double exact = p * pow(m->config.rope_theta, exponent);
            const double angle = FAULT(model_rope_angle, exact);
            cosine[p * half + i] = (float)cos(angle);
            sine[p * half + i] = (float)sin(angle);
        }
    }
    if (status == DEV_OK) {
        status =
            upload(m, stream, cosine, count * sizeof *cosine, "rope cosine", (void **)&m->cosine);
    }
    if (status == DEV_OK) {
        status = upload(m, stream, sine, count * sizeof *sine, "rope sine", (void **)&m->sine);
    }
    free(cosine);
    free(sine);
    return status;
}

static enum dev_status allocate_buffers(eng_model *m, dev_stream stream)
{
    const size_t bytes = (size_t)m->params.elements * sizeof(float);
    struct {
        float **out;
        const char *what;
    } buffers[] = {{&m->params.param, "parameters"},
                   {&m->params.grad, "gradients"},
                   {&m->params.moment1, "first moments"},
                   {&m->params.moment2, "second moments"}};
    enum dev_status status = DEV_OK;
    for (size_t i = 0; status == DEV_OK && i < sizeof buffers / sizeof buffers[0]; i++) {
        status = dev_malloc(m->device, stream, bytes, buffers[i].what, (void **)buffers[i].out);
        if (status == DEV_OK) {
            status = dev_fill(m->device, stream, *buffers[i].out, 0, bytes, buffers[i].what);
        }
    }
    return status;
}

static bool config_is_sane(const struct eng_model_config *c)
{
    return c->layers > 0 && c->width > 0 && c->heads > 0 && c->kv_heads > 0 && c->ffn > 0 &&
           c->context > 0 && c->vocab > 0 && c->rows > 0 && c->width % c->heads == 0 &&
           c->width / c->heads % 2 == 0 && c->heads % c->kv_heads == 0;
}

enum eng_status eng_model_create(dev *d, dev_stream stream, const struct eng_model_config *config,
                                 eng_model **out, struct eng_error *error)
{
    if (!config_is_sane(config)) {
        return eng_fail(error, ENG_EUSAGE,
                        "model: width must be divisible by heads into an even head_dim, heads by "
                        "kv_heads, and all sizes positive");
    }
    const size_t tensor_max = 3 + (size_t)config->layers * ENG_W_PER_LAYER;
    const size_t tap_max = 3 + 4 * (size_t)config->layers;
    eng_model *m = calloc(1, sizeof *m);
    enum eng_status result = ENG_EHOSTMEM;
    if (m == NULL) {
        return eng_fail(error, result, "model: host memory exhausted");
    }
    m->device = d;
    m->config = *config;
    m->head_dim = config->width / config->heads;
    m->qkv_width = (config->heads + 2 * config->kv_heads) * m->head_dim;
    m->tokens = config->rows * config->context;
    m->tensors = calloc(tensor_max, sizeof *m->tensors);
    m->tap_names = calloc(tap_max, sizeof *m->tap_names);
    m->saved = calloc((size_t)config->layers, sizeof *m->saved);
    if (m->tensors == NULL || m->tap_names == NULL || m->saved == NULL) {
        result = eng_fail(error, result, "model: host memory exhausted");
        goto done;
    }
    list_tensors(m);
    list_taps(m);
    m->params.tensors = m->tensors;
    enum dev_status status =
        dev_pinned(d, ENG_MODEL_PINNED_BYTES, "weight staging", (void **)&m->staging);
    if (status == DEV_OK) {
        status = allocate_buffers(m, stream);
    }
    if (status == DEV_OK) {
        status = upload_chunks(m, stream);
    }
    if (status == DEV_OK) {
        status = upload_rope(m, stream);
    }
    result = eng_model_device_status(m, status, error);
done:
    if (result != ENG_OK) {
        eng_model_destroy(m);
        return result;
    }
    *out = m;
    return ENG_OK;
}

void eng_model_destroy(eng_model *model)
{
    if (model == NULL) {
        return;
    }
    free(model->tensors);
    free(model->tap_names);
    free(model->saved);
    free(model);
}

const struct eng_params *eng_model_params(const eng_model *model)
{
    return &model->params;
}

size_t eng_model_tap_count(const eng_model *model)
{
    return model->tap_count;
}

const char *eng_model_tap_name(const eng_model *model, size_t index)
{
    return index < model->tap_count ? model->tap_names[index] : NULL;
}

/* Bytes of one block of `elements` floats in the device heap, which deals in granules. */
static size_t block_bytes(size_t elements)
{
    enum { GRANULE = 256 };
    return (elements * sizeof(float) + GRANULE - 1) / GRANULE * GRANULE;
}

static size_t plan_parameters(const struct eng_model_config *c)
{
    const size_t head_dim = (size_t)c->width / (size_t)c->heads;
    const size_t width = (size_t)c->width;
    const size_t qkv = ((size_t)c->heads + 2 * (size_t)c->kv_heads) * head_dim;
    const size_t layer = 2 * width + qkv * width + width * width + 3 * width * (size_t)c->ffn;
    const size_t embeddings = (size_t)c->vocab * width * (c->tied ? 1 : 2);
    return embeddings + width + layer * (size_t)c->layers;
}

size_t eng_model_plan_bytes(const struct eng_model_config *c)
{
    const size_t tokens = (size_t)c->rows * (size_t)c->context;
    const size_t head_dim = (size_t)c->width / (size_t)c->heads;
    const size_t qkv = ((size_t)c->heads + 2 * (size_t)c->kv_heads) * head_dim;
    const size_t probs = tokens * (size_t)c->heads * (size_t)c->context;
    const size_t stream = block_bytes(tokens * (size_t)c->width);
    const size_t layer = 5 * stream + 2 * block_bytes(tokens) + block_bytes(tokens * qkv) +
                         block_bytes(probs) + 3 * block_bytes(tokens * (size_t)c->ffn);
    const size_t head =
        2 * stream + 2 * block_bytes(tokens) + block_bytes(tokens * (size_t)c->vocab);
    /* Temporaries of the backward pass: two residual gradients, and the larger of a layer's two
     * halves. */
    const size_t attention = block_bytes(tokens * qkv) + block_bytes(probs) + 2 * stream;
    const size_t mlp = 3 * block_bytes(tokens * (size_t)c->ffn) + stream;
    const size_t temporary = 3 * stream + (attention > mlp ? attention : mlp);
    const size_t parameters = plan_parameters(c);
    const size_t chunks = parameters / K_CHUNK + (size_t)c->layers * ENG_W_PER_LAYER + 3;
    const size_t tables = block_bytes(chunks * sizeof(struct k_chunk) / sizeof(float)) +
                          2 * block_bytes((size_t)c->context * head_dim / 2) +
                          block_bytes((size_t)c->layers * ENG_W_PER_LAYER + 4);
    return 4 * block_bytes(parameters) + layer * (size_t)c->layers + head + temporary + tables;
}
