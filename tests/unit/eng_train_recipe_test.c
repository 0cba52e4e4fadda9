/* Recipes: a good one is read, and each kind of mistake is named with file, line and key. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recipe.h"

static const char good[] = "name: pico\n"
                           "model:\n"
                           "  arch: llama\n"
                           "  layers: 1\n"
                           "  width: 32\n"
                           "  heads: 4\n"
                           "  kv_heads: 2\n"
                           "  ffn: 96\n"
                           "  context: 64\n"
                           "  vocab: 2048\n"
                           "  tied: false\n"
                           "  norm_eps: 1.0e-5\n"
                           "  rope_theta: 10000.0\n"
                           "text:\n"
                           "  tokenizer: ../t.json\n"
                           "  template: chatml\n"
                           "  mask: assistant\n"
                           "data:\n"
                           "  train: [a.jsonl, /b.jsonl]\n"
                           "  eval: []\n"
                           "  packing: true\n"
                           "  truncate: keep_start\n"
                           "  pad: \"<|pad|>\"\n"
                           "train:\n"
                           "  seed: 1\n"
                           "  steps: 16\n"
                           "  rows: 2\n"
                           "  grad_accum: 2\n"
                           "  lr: 3.0e-3\n"
                           "  lr_min: 3.0e-4\n"
                           "  warmup: 4\n"
                           "  schedule_steps: 16\n"
                           "  beta1: 0.9\n"
                           "  beta2: 0.95\n"
                           "  eps: 1.0e-8\n"
                           "  weight_decay: 0.1\n"
                           "  clip: 1.0\n"
                           "  eval_every: 0\n"
                           "  eval_rows: 0\n"
                           "  checkpoint_every: 8\n"
                           "device:\n"
                           "  budget: 0\n"
                           "  oom_at: 0\n";

static char path[] = "/tmp/eng_recipe_XXXXXX";

/* Reads the good recipe with the first `from` replaced by `to`. */
static enum eng_status read_changed(const char *from, const char *to, struct eng_recipe **out,
                                    struct eng_error *error)
{
    char text[4096];
    const char *at = strstr(good, from);
    cr_assert_not_null(at, "'%s' is not in the recipe", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    strcpy(path + strlen(path) - 6, "XXXXXX");
    const int fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    const enum eng_status status = eng_recipe_read(path, out, error);
    unlink(path);
    return status;
}

static void expect_error(const char *from, const char *to, const char *line, const char *key)
{
    struct eng_recipe *r = NULL;
    struct eng_error error = {.text = ""};
    const enum eng_status status = read_changed(from, to, &r, &error);
    cr_expect_eq(status, ENG_EUSAGE, "'%s' gave status %d", to, (int)status);
    cr_expect_null(r);
    cr_expect(strncmp(error.text, path, strlen(path)) == 0, "no file in: %s", error.text);
    cr_expect_not_null(strstr(error.text, key), "no '%s' in: %s", key, error.text);
    cr_expect_not_null(strstr(error.text, line), "no '%s' in: %s", line, error.text);
}

Test(train_recipe, a_good_one_is_read)
{
    struct eng_recipe *r = NULL;
    struct eng_error error = {.text = ""};
    cr_assert_eq(read_changed("pico", "pico", &r, &error), ENG_OK, "%s", error.text);
    cr_expect_str_eq(r->name, "pico");
    cr_expect_eq(r->model.vocab, 2048);
    cr_expect_eq(r->model.norm_eps, 1.0e-5);
    cr_expect_eq(r->model.tied, 0);
    cr_expect_eq(r->data.packing, 1);
    cr_expect_eq(r->data.train_count, 2);
    cr_expect_str_eq(r->text.tokenizer, "/tmp/../t.json");
    cr_expect_str_eq(r->data.train[0], "/tmp/a.jsonl");
    cr_expect_str_eq(r->data.train[1], "/b.jsonl");
    cr_expect_eq(r->data.eval_count, 0);
    cr_expect_eq(r->train.lr, 3.0e-3);
    cr_expect_eq(r->hash, eng_fnv1a(good, strlen(good)));
    eng_recipe_free(r);
}

Test(train_recipe, mistakes_name_file_line_and_key)
{
    expect_error("  width: 32\n", "  width: 32\n  breadth: 3\n", ":6:", "breadth");
    expect_error("  width: 32\n", "", "model", "width");
    expect_error("  width: 32\n", "  width: wide\n", ":5:", "width");
    expect_error("  width: 32\n", "  width: 3.5\n", ":5:", "width");
    expect_error("  width: 32\n", "  width: 0\n", ":5:", "model.width");
    expect_error("  width: 32\n", "  width: 32\n  width: 64\n", ":6:", "width");
    expect_error("tied: false", "tied: maybe", ":11:", "tied");
    expect_error("mask: assistant", "mask: user", ":17:", "mask");
    expect_error("train: [a.jsonl, /b.jsonl]", "train: []", ":19:", "train");
    expect_error("arch: llama", "arch: gpt2", ":3:", "model.arch");
    expect_error("heads: 4", "heads: 5", ":6:", "model.heads");
    expect_error("kv_heads: 2", "kv_heads: 3", ":7:", "model.kv_heads");
    expect_error("lr: 3.0e-3", "lr: .nan", ":29:", "lr");
    expect_error("lr: 3.0e-3", "lr: -1.0", ":29:", "train.lr");
    expect_error("beta2: 0.95", "beta2: 1.0", ":34:", "train.beta2");
    expect_error("schedule_steps: 16", "schedule_steps: 4", ":32:", "train.schedule_steps");
    expect_error("eval_every: 0", "eval_every: 4", ":38:", "train.eval_every");
    expect_error("oom_at: 0", "oom_at: -1", ":43:", "device.oom_at");
    expect_error("device:", "devices:", "", "devices");
}

Test(train_recipe, files_that_are_no_recipe)
{
    struct eng_recipe *r = NULL;
    struct eng_error error = {.text = ""};
    cr_expect_eq(eng_recipe_read("/tmp/no such recipe.yaml", &r, &error), ENG_EIO);
    cr_expect_not_null(strstr(error.text, "no such recipe.yaml"));
    cr_expect_eq(eng_recipe_read("/tmp", &r, &error), ENG_EIO);
    char all[sizeof good];
    strcpy(all, good);
    cr_expect_eq(read_changed(all, "", &r, &error), ENG_EUSAGE);
    cr_expect_eq(read_changed(all, "[1, 2", &r, &error), ENG_EUSAGE);
    cr_expect_eq(read_changed(all, "{\x01", &r, &error), ENG_EUSAGE);
    cr_expect_null(r);
}
