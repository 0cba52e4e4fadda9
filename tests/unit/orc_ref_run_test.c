/* Whole runs of faultline-ref on inputs made here: a tiny recipe, random weights, a stage file.
 * Checks the first loss, learning, repeatability, threads, and every kind of bad input. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
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
    /* Headers differ: each says how many steps were asked for. */
    const char *const steps = strchr(a, '\n'), *const fewer = strchr(b, '\n');
    cr_assert_eq(strncmp(steps, fewer, strlen(fewer)), 0);
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
    expect_bad_recipe(&folder, "<|pad|>", "<|none|>", "no control token <|none|> to pad with");
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

/* ---- following ---- */

enum { MICRO = 2, POSITIONS = 2 * 16 };

/* What is wrong with the states; zero = nothing. */
struct flaw {
    const char *piece, *by; /* of the header */
    int wrong_step;         /* whose record has another number */
    int32_t token;          /* first id of step 2 */
    bool unlearned;         /* the second micro-batch has no label */
    bool no_mark;
};

static uint64_t fnv(const char *text)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
    return hash;
}

static void write_header(FILE *file, const struct flaw *flaw)
{
    char names[1024] = "", sizes[256] = "", line[2048];
    for (size_t i = 0; i < TENSORS; i++) {
        (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s\"%s\"",
                       i > 0 ? "," : "", tensors[i].name);
        (void)snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%zu",
                       i > 0 ? "," : "", tensors[i].rows * tensors[i].cols);
    }
    (void)snprintf(line, sizeof line,
                   "{\"type\":\"states\",\"states_version\":1,\"stack\":\"test\","
                   "\"recipe_hash\":\"%016llx\",\"seed\":3,\"steps\":%d,\"micro\":%d,"
                   "\"positions\":%d,\"tensors\":[%s],\"elements\":[%s]}\n",
                   (unsigned long long)fnv(recipe_text), STEPS, MICRO, POSITIONS, names, sizes);
    const char *const at = flaw->piece != NULL ? strstr(line, flaw->piece) : NULL;
    cr_assert(flaw->piece == NULL || at != NULL, "%s", flaw->piece);
    if (at != NULL)
        (void)fprintf(file, "%.*s%s%s", (int)(at - line), line, flaw->by, at + strlen(flaw->piece));
    else
        (void)fputs(line, file);
}

static void write_batch(FILE *file, int step, const struct flaw *flaw)
{
    for (int array = 0; array < 4; array++)
        for (int32_t p = 0; p < MICRO * POSITIONS; p++) {
            const int32_t at = p % 16, id = 1 + p % 7;
            const bool taught = at > 3 && !(flaw->unlearned && p >= POSITIONS);
            const int32_t values[] = {p == 0 && step == 2 && flaw->token != 0 ? flaw->token : id,
                                      taught ? 1 + (p + 1) % 7 : -100, at, 0};
            cr_assert_eq(fwrite(&values[array], sizeof values[array], 1, file), 1);
        }
}

/* States of a run that stays where it began: every step leaves the initial weights and no moments.
 * Returns the bytes of header, and of a record. */
static void write_states(const struct folder *folder, const struct flaw *flaw, long *header,
                         long *record)
{
    size_t elements = 0;
    for (size_t i = 0; i < TENSORS; i++)
        elements += tensors[i].rows * tensors[i].cols;
    float *const state = calloc(3 * elements, sizeof *state);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/w.safetensors", folder->path);
    FILE *const weights = fopen(path, "rb");
    cr_assert(state != NULL && weights != NULL);
    cr_assert_eq(fseek(weights, -(long)(elements * sizeof *state), SEEK_END), 0);
    cr_assert_eq(fread(state, sizeof *state, elements, weights), elements);
    (void)fclose(weights);
    FILE *const file = create(folder, "s.bin");
    write_header(file, flaw);
    *header = ftell(file);
    for (int step = 1; step <= STEPS; step++) {
        const uint64_t number = (uint64_t)step + (step == flaw->wrong_step);
        cr_assert_eq(fwrite(&number, sizeof number, 1, file), 1);
        write_batch(file, step, flaw);
        cr_assert_eq(fwrite(state, sizeof *state, 3 * elements, file), 3 * elements);
        *record = step == 1 ? ftell(file) - *header : *record;
    }
    const uint64_t mark = 0;
    cr_assert(flaw->no_mark || fwrite(&mark, sizeof mark, 1, file) == 1);
    cr_assert_eq(fclose(file), 0);
    free(state);
}

/* The text of a trace from one key of step s to another. */
static void expect_same_part(const char *a, const char *b, int step, const char *from,
                             const char *to)
{
    char start[32];
    (void)snprintf(start, sizeof start, "\"step\":%d,", step);
    const char *const x = strstr(strstr(a, start), from), *const y = strstr(strstr(b, start), from);
    cr_assert(x != NULL && y != NULL, "%s", from);
    const ptrdiff_t length = strstr(x, to) - x;
    cr_assert_gt(length, (ptrdiff_t)strlen(from));
    cr_assert_eq(strncmp(x, y, (size_t)length), 0, "step %d: %.200s", step, y);
}

Test(ref_run, follows_states_and_batches_but_keeps_its_own_place_and_schedule)
{
    const struct flaw none = {0};
    struct folder folder;
    long header = 0, record = 0;
    double loss[64], norm[64];
    set_up(&folder);
    write_states(&folder, &none, &header, &record);
    cr_assert_eq(run(&folder, USUAL "--trace free.jsonl --level full"), 0);
    cr_assert_eq(run(&folder, USUAL "--trace f.jsonl --level full --follow s.bin"), 0);
    char *const apart = contents(&folder, "free.jsonl"), *const trace =
                                                             contents(&folder, "f.jsonl");
    cr_assert_not_null(strstr(apart, "\"mode\":\"free\""));
    cr_assert_not_null(strstr(trace, "\"mode\":\"lockstep\""));
    /* The same weights and the same batch in each step. */
    cr_assert_eq(numbers(trace, "loss", loss, 64), STEPS);
    cr_assert_eq(numbers(trace, "grad_norm", norm, 64), STEPS);
    for (int step = 1; step <= STEPS; step++) {
        cr_assert(loss[step - 1] == loss[0] && norm[step - 1] == norm[0], "step %d", step);
        expect_same_part(apart, trace, step, "\"records\":[", "\"sketch\"");
        expect_same_part(apart, trace, step, "\"lr\":", "\"grad_norm\"");
    }
    double first[1];
    cr_assert_eq(numbers(apart, "loss", first, 1), 1);
    cr_assert(first[0] != loss[0], "the free run has another batch");
    free(apart);
    free(trace);
    tear_down(&folder);
}

Test(ref_run, a_micro_batch_without_labels_is_followed)
{
    const struct flaw unlearned = {.unlearned = true};
    struct folder folder;
    long header = 0, record = 0;
    double loss[64];
    set_up(&folder);
    write_states(&folder, &unlearned, &header, &record);
    cr_assert_eq(run(&folder, USUAL "--trace f.jsonl --level full --follow s.bin"), 0);
    char *const trace = contents(&folder, "f.jsonl");
    cr_assert_eq(numbers(trace, "loss", loss, 64), STEPS);
    cr_assert(fabs(loss[0] - log((double)VOCAB)) <= 2.0 * sqrt((double)WIDTH) * folder.head_norm);
    free(trace);
    tear_down(&folder);
}

static void expect_bad_states(struct folder *folder, const struct flaw *flaw, const char *message)
{
    long header = 0, record = 0;
    write_states(folder, flaw, &header, &record);
    expect(folder, 1, USUAL "--trace x.jsonl --follow s.bin", message);
}

Test(ref_run, foreign_states_name_file_and_cause)
{
    struct folder folder;
    set_up(&folder);
    const struct {
        struct flaw flaw;
        const char *message;
    } rows[] = {
        {{.piece = "\"states\"", .by = "\"header\""}, "s.bin: no states of version 1"},
        {{.piece = "version\":1", .by = "version\":2"}, "s.bin: no states of version 1"},
        {{.piece = "\"seed\":3", .by = "\"seed\":4"}, "s.bin: states of another run: seed"},
        {{.piece = "hash\":\"", .by = "hash\":\"0"}, "s.bin: states of another run: recipe_hash"},
        {{.piece = "\"steps\":12", .by = "\"steps\":11"}, "s.bin: states of another run: steps"},
        {{.piece = "\"micro\":2", .by = "\"micro\":1"}, "s.bin: states of another run: micro"},
        {{.piece = "\"positions\":", .by = "\"position\":"}, "another run: positions"},
        {{.piece = "model.norm", .by = "model.norms"}, "s.bin: states of another model"},
        {{.piece = "\"elements\":[192", .by = "\"elements\":[191"},
         "s.bin: states of another model"},
        {{.piece = "\"elements\":[192,", .by = "\"elements\":["}, "s.bin: states of another model"},
        {{.wrong_step = 3}, "s.bin: behind step 2 stands a record numbered 4"},
        {{.token = VOCAB}, "s.bin: step 2 has token 24, outside the vocabulary"},
        {{.token = -1}, "s.bin: step 2 has token -1, outside the vocabulary"},
        {{.no_mark = true}, "s.bin: ends after step 12 of 12, without its mark"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_bad_states(&folder, &rows[i].flaw, rows[i].message);
    expect(&folder, 1, USUAL "--trace x --follow r.yaml", "r.yaml: no states: no header");
    expect(&folder, 1, USUAL "--trace x --follow /dev/null", "/dev/null: no states: no header");
    expect(&folder, 74, USUAL "--trace x --follow none", "none: No such file");
    tear_down(&folder);
}

/* Cut at the start of record `whole` + 1 and `more` bytes on. */
static void expect_cut(struct folder *folder, long bytes, int whole, const char *message)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/s.bin", folder->path);
    cr_assert_eq(truncate(path, bytes), 0);
    expect(folder, 1, USUAL "--trace x.jsonl --follow s.bin", message);
    double loss[64];
    char *const trace = contents(folder, "x.jsonl");
    cr_assert_eq(numbers(trace, "loss", loss, 64), (size_t)whole, "%s", message);
    cr_assert_null(strstr(trace, "{\"type\":\"end\""));
    free(trace);
}

Test(ref_run, cut_states_give_the_steps_before_the_cut)
{
    const struct flaw none = {0};
    struct folder folder;
    long header = 0, record = 0;
    set_up(&folder);
    write_states(&folder, &none, &header, &record);
    const long batch = 8 + 16L * MICRO * POSITIONS;
    /* A step whose batch is whole is taken; what it left behind cannot be adopted any more. */
    expect_cut(&folder, header + 5 * record + batch + 4, 6,
               "s.bin: the file is cut off in the record of step 6");
    expect_cut(&folder, header + 5 * record + 9, 5,
               "s.bin: the file is cut off in the record of step 6");
    expect_cut(&folder, header + 5 * record + 4, 5, "s.bin: the file is cut off");
    expect_cut(&folder, header + 5 * record, 5, "s.bin: ends after step 5 of 12, without its mark");
    expect_cut(&folder, header, 0, "s.bin: ends after step 0 of 12, without its mark");
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
