/* Whole runs of faultline-ref on inputs made here: a tiny recipe, random weights, a stage file.
 * Checks the first loss, learning, repeatability, threads, and every kind of bad input. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VOCAB = 24, WIDTH = 8, KV = 4, FFN = 12, STEPS = 12 };

static const char *const recipe_text =
    "name: test\n"
    "model: {arch: llama, layers: 1, width: 8, heads: 2, kv_heads: 1, ffn: 12, context: 16,\n"
    "        vocab: 24, tied: false, norm_eps: 1.0e-5, rope_theta: 10000.0}\n"
    "text: {tokenizer: tokenizer.json, template: chatml, mask: assistant}\n"
    "data: {train: [data.jsonl], eval: [data.jsonl], packing: true, truncate: keep_start,\n"
    "       pad: \"<|pad|>\"}\n"
    "train: {seed: 3, steps: 12, rows: 2, grad_accum: 2, lr: 5.0e-2, lr_min: 1.0e-2, warmup: 2,\n"
    "        schedule_steps: 12, beta1: 0.9, beta2: 0.95, eps: 1.0e-8, weight_decay: 0.1,\n"
    "        clip: 1.0, eval_every: 4, eval_rows: 3, checkpoint_every: 0}\n"
    "device: {budget: 0, oom_at: 0}\n";

struct folder {
    char path[64];
    double head_norm; /* largest L2 norm of a row of lm_head */
};

static FILE *create(const struct folder *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *const file = fopen(path, "wb");
    cr_assert_not_null(file);
    return file;
}

static void write_text(const struct folder *folder, const char *name, const char *text)
{
    FILE *const file = create(folder, name);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

struct tensor {
    const char *name, *shape;
    size_t rows, cols;
};

static const struct tensor tensors[] = {
    {"model.embed_tokens.weight", "[24,8]", VOCAB, WIDTH},
    {"model.layers.0.input_layernorm.weight", "[8]", 1, WIDTH},
    {"model.layers.0.self_attn.q_proj.weight", "[8,8]", WIDTH, WIDTH},
    {"model.layers.0.self_attn.k_proj.weight", "[4,8]", KV, WIDTH},
    {"model.layers.0.self_attn.v_proj.weight", "[4,8]", KV, WIDTH},
    {"model.layers.0.self_attn.o_proj.weight", "[8,8]", WIDTH, WIDTH},
    {"model.layers.0.post_attention_layernorm.weight", "[8]", 1, WIDTH},
    {"model.layers.0.mlp.gate_proj.weight", "[12,8]", FFN, WIDTH},
    {"model.layers.0.mlp.up_proj.weight", "[12,8]", FFN, WIDTH},
    {"model.layers.0.mlp.down_proj.weight", "[8,12]", WIDTH, FFN},
    {"model.norm.weight", "[8]", 1, WIDTH},
    {"lm_head.weight", "[24,8]", VOCAB, WIDTH},
};

enum { TENSORS = sizeof tensors / sizeof *tensors };

/* Norms 1, everything else within 0.02 of 0. */
static void write_weights(struct folder *folder)
{
    char header[4096] = "{";
    size_t used = 1, offset = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        const size_t bytes = tensors[i].rows * tensors[i].cols * sizeof(float);
        used += (size_t)snprintf(header + used, sizeof header - used,
                                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                                 i == 0 ? "" : ",", tensors[i].name, tensors[i].shape, offset,
                                 offset + bytes);
        offset += bytes;
    }
    header[used++] = '}';
    const uint64_t length = used;
    FILE *const file = create(folder, "w.safetensors");
    cr_assert_eq(fwrite(&length, sizeof length, 1, file), 1);
    cr_assert_eq(fwrite(header, used, 1, file), 1);
    for (size_t i = 0; i < TENSORS; i++)
        for (size_t row = 0; row < tensors[i].rows; row++) {
            double square = 0.0;
            for (size_t col = 0; col < tensors[i].cols; col++) {
                const double random = 0.02 * sin((double)(i * 7919 + row * 131 + col * 17 + 1));
                const float value = tensors[i].rows == 1 ? 1.0F : (float)random;
                square += (double)value * (double)value;
                cr_assert_eq(fwrite(&value, sizeof value, 1, file), 1);
            }
            if (i == TENSORS - 1)
                folder->head_norm = fmax(folder->head_norm, sqrt(square));
        }
    cr_assert_eq(fclose(file), 0);
}

static void write_tokenizer(const struct folder *folder)
{
    FILE *const file = create(folder, "tokenizer.json");
    (void)fprintf(file, "{\"added_tokens\":[{\"id\":0,\"content\":\"<|pad|>\",\"special\":true}],"
                        "\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{");
    for (int i = 1; i < VOCAB; i++)
        (void)fprintf(file, "%s\"%c\":%d", i == 1 ? "" : ",", 'a' + i, i);
    (void)fprintf(file, "}}}\n");
    cr_assert_eq(fclose(file), 0);
}

/* Seven documents that repeat three tokens each; the third can teach nothing. */
static void write_stage(const struct folder *folder)
{
    FILE *const file = create(folder, "stage.jsonl");
    for (int d = 0; d < 7; d++) {
        (void)fprintf(file, "{\"id\":\"d%d\",\"text\":\"\",\"hash\":\"00000000000000%02x\",\"ids\":[", d,
                      d);
        for (int i = 0; i < 5 + d; i++)
            (void)fprintf(file, "%s%d", i == 0 ? "" : ",", 1 + d * 3 + i % 3);
        (void)fprintf(file, "],\"starts\":[],\"supervised\":[");
        for (int i = 0; i < 5 + d; i++)
            (void)fprintf(file, "%s%d", i == 0 ? "" : ",", i > 1 && d != 2);
        (void)fprintf(file, "],\"features\":[\"no_system\"]}\n");
    }
    cr_assert_eq(fclose(file), 0);
}

static void set_up(struct folder *folder)
{
    (void)snprintf(folder->path, sizeof folder->path, "/tmp/orc_ref_run_XXXXXX");
    folder->head_norm = 0.0;
    cr_assert_not_null(mkdtemp(folder->path));
    write_text(folder, "r.yaml", recipe_text);
    write_weights(folder);
    write_tokenizer(folder);
    write_stage(folder);
}

static void tear_down(const struct folder *folder)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", folder->path);
    cr_assert_eq(system(command), 0);
}

/* Runs the program in the folder; returns its exit code, messages in err.txt. */
static int run(const struct folder *folder, const char *arguments)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "cd %s && %s %s >out.txt 2>err.txt", folder->path,
                   ORC_REF_PROGRAM, arguments);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char *contents(const struct folder *folder, const char *name)
{
    static char buffer[1 << 20];
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *const file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    const size_t bytes = fread(buffer, 1, sizeof buffer - 1, file);
    cr_assert_lt(bytes, sizeof buffer - 1);
    (void)fclose(file);
    buffer[bytes] = '\0';
    return strdup(buffer);
}

/* The numbers behind each occurrence of a key, in order. */
static size_t numbers(const char *text, const char *key, double *out, size_t capacity)
{
    size_t count = 0;
    char quoted[64];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    for (const char *at = text; (at = strstr(at, quoted)) != NULL && count < capacity;) {
        at += strlen(quoted);
        out[count++] = strtod(at, NULL);
    }
    return count;
}

#define USUAL "--recipe r.yaml --weights w.safetensors --text stage.jsonl --eval-text stage.jsonl "

Test(ref_run, starts_near_the_uniform_loss_and_learns)
{
    struct folder folder;
    double loss[64], eval[64], rate[64];
    set_up(&folder);
    cr_assert_eq(run(&folder, USUAL "--trace t.jsonl --level full"), 0);
    char *const trace = contents(&folder, "t.jsonl");
    cr_assert_eq(numbers(trace, "loss", loss, 64), STEPS);
    cr_assert_eq(numbers(trace, "eval_loss", eval, 64), STEPS / 4);
    cr_assert_eq(numbers(trace, "lr", rate, 64), STEPS);
    /* The final norm's weights are 1, so its output has norm at most sqrt(width) and no logit
     * exceeds that times a row's norm; nll differs from ln(vocab) by at most twice that. */
    const double bound = 2.0 * sqrt((double)WIDTH) * folder.head_norm;
    cr_assert(fabs(loss[0] - log((double)VOCAB)) <= bound, "first loss %g, bound %g", loss[0], bound);
    cr_assert_lt(loss[STEPS - 1], loss[0]);
    cr_assert_lt(eval[STEPS / 4 - 1], eval[0]);
    cr_assert(rate[0] == 5e-2 * 1.0 / 2.0);
    cr_assert(rate[1] == 5e-2);
    cr_assert(rate[STEPS - 1] == 1e-2);
    cr_assert_not_null(strstr(trace, "\"skipped\":[\"d2\"]"));
    cr_assert_not_null(strstr(trace, "\"two_epochs\""));
    cr_assert_not_null(strstr(trace, "\"model.norm.weight\":["));
    free(trace);
    tear_down(&folder);
}

/* Everything but the last line, which says how long it took. */
static void cut_end(char *trace)
{
    char *const end = strstr(trace, "{\"type\":\"end\"");
    cr_assert_not_null(end);
    *end = '\0';
    cr_assert_gt(strlen(trace), 0);
}

Test(ref_run, bits_do_not_depend_on_repetition_threads_or_compression)
{
    struct folder folder;
    set_up(&folder);
    cr_assert_eq(run(&folder, USUAL "--trace a.jsonl --level full"), 0);
    cr_assert_eq(run(&folder, USUAL "--trace b.jsonl --level full --threads 3"), 0);
    cr_assert_eq(run(&folder, USUAL "--trace c.jsonl.zst --level full"), 0);
    cr_assert_eq(run(&folder, USUAL "--trace d.jsonl --level full --seed 4"), 0);
    char *const a = contents(&folder, "a.jsonl"), *const b = contents(&folder, "b.jsonl");
    char *const d = contents(&folder, "d.jsonl");
    cut_end(a);
    cut_end(b);
    cut_end(d);
    cr_assert_str_eq(a, b);
    cr_assert_str_neq(a, d);
    char command[256];
    (void)snprintf(command, sizeof command,
                   "cd %s && zstd -q -d c.jsonl.zst && head -n -1 a.jsonl >a1 && "
                   "head -n -1 c.jsonl | cmp - a1", folder.path);
    cr_assert_eq(system(command), 0);
    free(a);
    free(b);
    free(d);
    tear_down(&folder);
}

Test(ref_run, a_shorter_run_is_the_start_of_a_longer_one)
{
    struct folder folder;
    set_up(&folder);
    cr_assert_eq(run(&folder, USUAL "--trace a.jsonl --contents"), 0);
    cr_assert_eq(run(&folder, USUAL "--trace b.jsonl --contents --steps 5"), 0);
    char *const a = contents(&folder, "a.jsonl"), *const b = contents(&folder, "b.jsonl");
    cut_end(b);
    cr_assert_eq(strncmp(a, b, strlen(b)), 0);
    cr_assert_not_null(strstr(b, "\"step\":5"));
    cr_assert_not_null(strstr(b, "\"contents\":{\"ids\":[["));
    free(a);
    free(b);
    tear_down(&folder);
}

/* Replaces one piece of the recipe and expects an exit code and a message. */
static void expect_bad_recipe(struct folder *folder, const char *piece, const char *by,
                              const char *message)
{
    char text[4096];
    const char *const at = strstr(recipe_text, piece);
    cr_assert_not_null(at, "%s", piece);
    (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - recipe_text), recipe_text, by,
                   at + strlen(piece));
    write_text(folder, "bad.yaml", text);
    cr_assert_eq(run(folder, "--recipe bad.yaml --weights w.safetensors --text stage.jsonl "
                             "--eval-text stage.jsonl --trace x.jsonl"),
                 1, "%s", by);
    char *const said = contents(folder, "err.txt");
    cr_assert_not_null(strstr(said, message), "for %s: %s", by, said);
    free(said);
}

Test(ref_run, bad_recipes_name_file_line_and_cause)
{
    struct folder folder;
    set_up(&folder);
    expect_bad_recipe(&folder, "kv_heads: 1", "kv_head: 1", "bad.yaml:2: kv_head is not a key");
    expect_bad_recipe(&folder, "device:", "devices:", "bad.yaml:10: devices is not a key");
    expect_bad_recipe(&folder, "vocab: 24", "vocab: 2.5", "bad.yaml:3: vocab is not a whole");
    expect_bad_recipe(&folder, "vocab: 24", "vocab: 25", "24 tokens");
    expect_bad_recipe(&folder, "tied: false", "tied: no", "bad.yaml:3: tied is neither");
    expect_bad_recipe(&folder, "keep_start", "keep_all", "bad.yaml:5: truncate is none of");
    expect_bad_recipe(&folder, "heads: 2", "heads: 3", "even whole number");
    expect_bad_recipe(&folder, "arch: llama", "arch: gpt", "bad.yaml:2: arch is none of llama");
    expect_bad_recipe(&folder, "clip: 1.0, ", "", "train.clip is missing");
    expect_bad_recipe(&folder, "lr: 5.0e-2", "lr: x", "bad.yaml:7: lr is not a number");
    expect_bad_recipe(&folder, "lr: 5.0e-2", "lr: 5.0e-2, lr: 1.0", "bad.yaml:7: ");
    expect_bad_recipe(&folder, "name: test", "name: [", "bad.yaml:");
    expect_bad_recipe(&folder, "<|pad|>", "<|none|>", "no pad token <|none|>");
    expect_bad_recipe(&folder, "template: chatml", "template: other", "no template");
    tear_down(&folder);
}

static void expect(struct folder *folder, int code, const char *arguments, const char *message)
{
    cr_assert_eq(run(folder, arguments), code, "%s", arguments);
    char *const said = contents(folder, "err.txt");
    cr_assert_not_null(strstr(said, message), "for %s: %s", arguments, said);
    free(said);
}

Test(ref_run, other_bad_input_has_its_exit_code)
{
    struct folder folder;
    set_up(&folder);
    expect(&folder, 1, "", "are needed");
    expect(&folder, 1, "--nonsense", "--nonsense");
    expect(&folder, 1, USUAL "--trace x --threads 0", "0 is no good value");
    expect(&folder, 1, USUAL "--trace x --steps -1", "-1 is no good value");
    expect(&folder, 74, "--recipe none.yaml --weights w --trace x", "none.yaml: No such file");
    expect(&folder, 74, USUAL "--trace /nonexistent/x", "/nonexistent/x: No such");
    expect(&folder, 74, USUAL "--trace /dev/full", "/dev/full: No space");
    expect(&folder, 74, "--recipe r.yaml --weights none --text stage.jsonl --eval-text stage.jsonl "
                        "--trace x", "none: No such file");
    expect(&folder, 1, "--recipe r.yaml --weights r.yaml --text stage.jsonl --eval-text "
                       "stage.jsonl --trace x", "r.yaml: not a safetensors file");
    write_text(&folder, "broken.jsonl", "{\"id\":\"a\",\"hash\":\"0000000000000000\",\"ids\":[1],"
                                        "\"supervised\":[1]}\n{\n");
    expect(&folder, 1, "--recipe r.yaml --weights w.safetensors --text broken.jsonl --eval-text "
                       "stage.jsonl --trace x", "broken.jsonl:2: not a JSON object");
    write_text(&folder, "large.jsonl", "{\"id\":\"a\",\"hash\":\"0000000000000000\",\"ids\":[24],"
                                       "\"supervised\":[1]}\n");
    expect(&folder, 1, "--recipe r.yaml --weights w.safetensors --text large.jsonl --eval-text "
                       "stage.jsonl --trace x", "large.jsonl:1: an id is not below");
    tear_down(&folder);
}

/* The data file is wrong, so the text stage must refuse it, and its words must come through. */
Test(ref_run, runs_the_text_stage_and_passes_on_its_message)
{
    struct folder folder;
    set_up(&folder);
    write_text(&folder, "data.jsonl", "{\"messages\":[]}\n");
    expect(&folder, 1, "--recipe r.yaml --weights w.safetensors --cache cache --trace x",
           "tokenizer.json: pre_tokenizer is not ByteLevel");
    expect(&folder, 74, "--recipe r.yaml --weights w.safetensors --cache /nonexistent/x/y --trace x",
           "/nonexistent/x/y: No such file");
    expect(&folder, 74, "--recipe r.yaml --weights w.safetensors --data no.jsonl --trace x",
           "no.jsonl: No such file");
    tear_down(&folder);
}

Test(ref_run, help_goes_to_standard_output)
{
    struct folder folder;
    set_up(&folder);
    cr_assert_eq(run(&folder, "--help"), 0);
    char *const said = contents(&folder, "out.txt");
    cr_assert_not_null(strstr(said, "usage: faultline-ref"));
    cr_assert_not_null(strstr(said, "130 interrupted"));
    free(said);
    tear_down(&folder);
}
