/* faultline-init: the recipe's model section, the numbers, the tensor order, the file. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cor_normal.h"
#include "cor_weights.h"

#define GOOD                                                                                       \
    "model:\n  arch: llama\n  layers: 2\n  width: 32\n  heads: 4\n  kv_heads: 2\n  ffn: 96\n"      \
    "  context: 64\n  vocab: 300\n  norm_eps: 1.0e-5\n  rope_theta: 10000.0\n"

static enum cor_status read_text(const char *text, struct cor_model *model, struct cor_error *error)
{
    char path[] = "/tmp/corpus_init_XXXXXX";
    const int handle = mkstemp(path);
    cr_assert(handle >= 0);
    const size_t bytes = strlen(text);
    cr_assert(write(handle, text, bytes) == (ssize_t)bytes);
    close(handle);
    const enum cor_status status = cor_recipe_read(path, model, error);
    unlink(path);
    return status;
}

Test(corpus_init, good_model_is_read)
{
    struct cor_model m = {0};
    struct cor_error error = {{0}};
    cr_assert_eq(read_text(GOOD "  tied: true\n", &m, &error), COR_OK, "%s", error.text);
    cr_assert(m.layers == 2 && m.width == 32 && m.heads == 4 && m.kv_heads == 2);
    cr_assert(m.ffn == 96 && m.vocab == 300 && m.tied);
}

Test(corpus_init, bad_models_name_line_and_cause)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {GOOD, ":2: model lacks the key: tied"},
        {GOOD "  tied: maybe\n", ":12: must be true or false: tied"},
        {GOOD "  tied: false\n  depth: 3\n", ":13: unknown key in model: depth"},
        {GOOD "  tied: false\n  ffn: 96\n", ":13: key occurs twice: ffn"},
        {GOOD "  tied: false\nmodels: 1\n", ":13: unknown key: models"},
        {"name: x\n", ":1: the recipe lacks the section: model"},
        {"model:\n  layers: 0\n", ":2: layers must be an integer from 1 to"},
        {"model:\n  layers: 1.5\n", ":2: layers must be an integer from 1 to"},
        {"model:\n  layers: 99999999999999999999\n", ":2: layers must be an integer from 1 to"},
        {"model:\n  layers: \"1\"\n", ":2: needs a plain value: layers"},
        {"model:\n  layers: [1]\n", ":2: needs a plain value: layers"},
        {"model:\n  arch: gpt3\n", ":2: arch must be llama, not: gpt3"},
        {"model:\n  norm_eps: -1\n", ":2: must be a number above 0: norm_eps"},
        {"model: 3\n", ":1: must be a mapping: model"},
        {"model:\n\t- x\n", ":2: "},
        {"", ":1: a recipe must be a mapping"},
        {"model:\n  arch: llama\n  layers: 2\n  width: 30\n  heads: 4\n  kv_heads: 2\n  ffn: 96\n"
         "  context: 64\n  vocab: 300\n  norm_eps: 1.0e-5\n  rope_theta: 10000.0\n  tied: false\n",
         "width / heads must be an even integer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cor_model m = {.layers = 77};
        struct cor_error error = {{0}};
        cr_expect_eq(read_text(cases[i].text, &m, &error), COR_EINPUT, "case %zu", i);
        cr_expect(strstr(error.text, cases[i].message) != NULL, "case %zu: %s", i, error.text);
        cr_expect_eq(m.layers, 77, "case %zu: model was touched", i);
    }
}

Test(corpus_init, missing_recipe_is_an_io_error)
{
    struct cor_model m;
    struct cor_error error = {{0}};
    cr_assert_eq(cor_recipe_read("/nonexistent/r.yaml", &m, &error), COR_EIO);
    cr_assert(strstr(error.text, "/nonexistent/r.yaml") != NULL);
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Against libm: the double results differ by a few units of 2^-52 of the radius, the float rounding
 * by half a unit of 2^-23; radius <= sqrt(2 * 53 ln 2) < 9. So |difference| <= 9 * (FLT_EPSILON / 2
 * + 64 DBL_EPSILON). */
Test(corpus_init, numbers_follow_the_documented_formula)
{
    enum { COUNT = 2000 };
    static float numbers[COUNT];
    const double pi = acos(-1.0);
    const double tol = 9.0 * ((double)FLT_EPSILON / 2.0 + 64.0 * DBL_EPSILON);
    uint64_t start = 7 * 0x9E3779B97F4A7C15u + 4 * 0xD1B54A32D192ED03u - 0x9E3779B97F4A7C15u;
    uint64_t state = splitmix(&start);
    struct cor_normal normal = cor_normal_start(7, 3);
    cor_normal_fill(&normal, 1.0, numbers, COUNT);
    size_t compared = 0;
    for (size_t j = 0; j < COUNT / 2; j++) {
        const uint64_t a = splitmix(&state);
        const uint64_t b = splitmix(&state);
        const double u = (double)((a >> 11) + 1) / 9007199254740992.0;
        const double f = (double)((b >> 11) % (1ull << 51)) / (double)(1ull << 51) - 0.5;
        const double radius = sqrt(-2.0 * log(u));
        const double angle = ((double)(b >> 62) + f) * pi / 2.0;
        cr_assert(fabs((double)numbers[2 * j] - radius * cos(angle)) <= tol, "pair %zu", j);
        cr_assert(fabs((double)numbers[2 * j + 1] - radius * sin(angle)) <= tol, "pair %zu", j);
        compared += 2;
    }
    cr_assert_eq(compared, COUNT);
}

Test(corpus_init, blocks_do_not_change_the_numbers)
{
    float whole[101];
    float parts[101];
    struct cor_normal a = cor_normal_start(1, 0);
    struct cor_normal b = cor_normal_start(1, 0);
    cor_normal_fill(&a, 0.02, whole, 101);
    cor_normal_fill(&b, 0.02, parts, 64);
    cor_normal_fill(&b, 0.02, parts + 64, 37);
    cr_assert_eq(memcmp(whole, parts, sizeof whole), 0);
}

Test(corpus_init, tensors_come_in_the_order_of_the_recipe_rules)
{
    static const char *const names[] = {"model.embed_tokens.weight",
                                        "model.layers.0.input_layernorm.weight",
                                        "model.layers.0.self_attn.q_proj.weight",
                                        "model.layers.0.self_attn.k_proj.weight",
                                        "model.layers.0.self_attn.v_proj.weight",
                                        "model.layers.0.self_attn.o_proj.weight",
                                        "model.layers.0.post_attention_layernorm.weight",
                                        "model.layers.0.mlp.gate_proj.weight",
                                        "model.layers.0.mlp.up_proj.weight",
                                        "model.layers.0.mlp.down_proj.weight",
                                        "model.norm.weight",
                                        "lm_head.weight"};
    struct cor_model m = {
        .layers = 1, .width = 32, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 300};
    cr_assert_eq(cor_tensor_count(&m), sizeof names / sizeof names[0]);
    for (size_t i = 0; i < cor_tensor_count(&m); i++) {
        const struct cor_tensor t = cor_tensor_at(&m, i);
        cr_expect_str_eq(t.name, names[i]);
        cr_expect_eq(t.dims == 1, strstr(names[i], "norm") != NULL);
    }
    const struct cor_tensor k = cor_tensor_at(&m, 3);
    cr_expect(k.shape[0] == 16 && k.shape[1] == 32);
    const struct cor_tensor down = cor_tensor_at(&m, 9);
    cr_expect(down.shape[0] == 32 && down.shape[1] == 96 && down.deviation == 0.02 / sqrt(2.0));
    m.tied = true;
    cr_assert_eq(cor_tensor_count(&m), sizeof names / sizeof names[0] - 1);
}

Test(corpus_init, file_is_a_safetensors_file_and_failure_keeps_the_old_one)
{
    const struct cor_model m = {
        .layers = 2, .width = 8, .heads = 2, .kv_heads = 1, .ffn = 12, .vocab = 20};
    char folder[] = "/tmp/corpus_init_XXXXXX";
    char path[64];
    struct cor_error error = {{0}};
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    cr_assert_eq(cor_weights_write(&m, 5, path, &error), COR_OK, "%s", error.text);
    FILE *const file = fopen(path, "rb");
    uint64_t header = 0;
    cr_assert_eq(fread(&header, sizeof header, 1, file), 1);
    cr_assert_eq(header % 8, 0);
    size_t elements = 0;
    for (size_t i = 0; i < cor_tensor_count(&m); i++) {
        const struct cor_tensor t = cor_tensor_at(&m, i);
        elements += t.dims == 1 ? t.shape[0] : t.shape[0] * t.shape[1];
    }
    fseek(file, 0, SEEK_END);
    cr_assert_eq((size_t)ftell(file), 8 + header + elements * sizeof(float));
    fclose(file);
    /* A folder in place of the temporary file makes the second write fail. */
    char blocker[80];
    snprintf(blocker, sizeof blocker, "%s.tmp", path);
    cr_assert_eq(mkdir(blocker, 0700), 0);
    cr_assert_eq(cor_weights_write(&m, 6, path, &error), COR_EIO);
    cr_assert_eq(access(path, R_OK), 0);
    rmdir(blocker);
    unlink(path);
    rmdir(folder);
}
