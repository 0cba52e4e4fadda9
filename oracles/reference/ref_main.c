/* faultline-ref: command line of the second stack. Reads recipe, weights and text, writes a
 * trace. Everything else is in the library; see README.md. */
#include "ref_train.h"

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, DATA_MAX = 1024, ARENA_BYTES = 1 << 20, KEPT_BYTES = 64 << 20 };

struct arguments {
    const char *recipe, *weights, *text, *eval_text, *trace, *cache, *follow;
    const char *data[DATA_MAX]; /* replaces data.train when there is one */
    size_t data_count;
    uint64_t seed, steps, threads;
    bool has_seed, full, contents;
};

static const char usage[] =
    "usage: faultline-ref --recipe R.yaml --weights W.safetensors --trace OUT[.zst] [options]\n"
    "Trains by the recipe in double precision and writes a trace (oracles/TRACE.md).\n"
    "  --seed N           instead of the recipe's\n"
    "  --steps N          run only N steps\n"
    "  --data FILE        replaces data.train; may be repeated\n"
    "  --text FILE        output of the text stage for the training files\n"
    "  --eval-text FILE   the same for the evaluation files\n"
    "  --cache DIR        where the text stage's output is kept (default: nowhere)\n"
    "  --follow FILE      lockstep: before each step adopt the batch, and after it parameters and\n"
    "                     moments, of the run that writes these states (file or FIFO)\n"
    "  --level hashes|full  full adds sketches; default hashes\n"
    "  --contents         adds the integer arrays of each step\n"
    "  --threads N        default 1; results do not depend on it\n"
    "The text stage is run where its output is not given; FAULTLINE_TEXT_STAGE names another.\n"
    "exit codes:";

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < min || value > max)
        return false;
    *out = value;
    return true;
}

static enum orc_ref_status read_option(int option, const char *name, const char *value,
                                       struct arguments *a, struct orc_ref_error *error)
{
    bool good = true;
    switch (option) {
    case 'r':
        a->recipe = value;
        break;
    case 'w':
        a->weights = value;
        break;
    case 't':
        a->text = value;
        break;
    case 'e':
        a->eval_text = value;
        break;
    case 'o':
        a->trace = value;
        break;
    case 'c':
        a->cache = value;
        break;
    case 'f':
        a->follow = value;
        break;
    case 'd':
        good = a->data_count < DATA_MAX;
        if (good)
            a->data[a->data_count++] = value;
        break;
    case 's':
        good = a->has_seed = parse_number(value, 0, UINT64_MAX, &a->seed);
        break;
    case 'n':
        good = parse_number(value, 1, UINT32_MAX, &a->steps);
        break;
    case 'j':
        good = parse_number(value, 1, THREADS_MAX, &a->threads);
        break;
    case 'l':
        good = strcmp(value, "full") == 0 || strcmp(value, "hashes") == 0;
        a->full = value[0] == 'f';
        break;
    case 'x':
        a->contents = true;
        break;
    default:
        return orc_ref_fail(error, ORC_REF_BAD, "wrong command line; see --help");
    }
    if (!good)
        return orc_ref_fail(error, ORC_REF_BAD, "--%s: %s is no good value; see --help", name,
                            value);
    return ORC_REF_OK;
}

static enum orc_ref_status read_arguments(int count, char **words, struct arguments *a,
                                          bool *help, struct orc_ref_error *error)
{
    static const struct option options[] = {
        {"recipe", required_argument, NULL, 'r'},  {"weights", required_argument, NULL, 'w'},
        {"text", required_argument, NULL, 't'},    {"eval-text", required_argument, NULL, 'e'},
        {"trace", required_argument, NULL, 'o'},   {"cache", required_argument, NULL, 'c'},
        {"data", required_argument, NULL, 'd'},    {"seed", required_argument, NULL, 's'},
        {"steps", required_argument, NULL, 'n'},   {"threads", required_argument, NULL, 'j'},
        {"level", required_argument, NULL, 'l'},   {"contents", no_argument, NULL, 'x'},
        {"follow", required_argument, NULL, 'f'},  {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    a->threads = 1;
    opterr = 0;
    int index = 0;
    for (int option; (option = getopt_long(count, words, "", options, &index)) != -1;) {
        *help = option == 'h';
        if (*help)
            return ORC_REF_OK;
        if (option == '?')
            return orc_ref_fail(error, ORC_REF_BAD, "%s: unknown or incomplete; see --help",
                                words[optind - 1]);
        const enum orc_ref_status status =
            read_option(option, options[index].name, optarg, a, error);
        if (status != ORC_REF_OK)
            return status;
    }
    if (optind < count)
        return orc_ref_fail(error, ORC_REF_BAD, "%s: not an option; see --help", words[optind]);
    if (a->recipe == NULL || a->weights == NULL || a->trace == NULL)
        return orc_ref_fail(error, ORC_REF_BAD,
                            "--recipe, --weights and --trace are needed; see --help");
    return ORC_REF_OK;
}

static void print_help(void)
{
    (void)fputs(usage, stdout);
#define LINE(name, exit_code, meaning) ORC_REF_##name,
    static const enum orc_ref_status all[] = {ORC_REF_STATUSES(LINE)};
#undef LINE
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        (void)printf(" %d %s%s", (int)all[i], orc_ref_status_meaning(all[i]),
                     i + 1 < sizeof all / sizeof *all ? ";" : "\n");
}

/* SIGINT and SIGTERM stay blocked and are looked for between steps, so no handler and no global
 * is needed and no line of the trace is cut. */
static bool signal_waits(void *context)
{
    const sigset_t *const set = context;
    const struct timespec at_once = {0, 0};
    return sigtimedwait(set, NULL, &at_once) > 0;
}

/* Stage files: given, or made in the cache. */
static enum orc_ref_status load_text(const struct arguments *a,
                                     const struct orc_ref_recipe *recipe, const char *cache,
                                     struct orc_ref_arena *arena,
                                     struct orc_ref_documents documents[2], bool *has_eval,
                                     struct orc_ref_error *error)
{
    const struct orc_ref_paths *const data[2] = {&recipe->data.train, &recipe->data.eval};
    const char *paths[2] = {a->text, a->eval_text};
    *has_eval = recipe->train.eval_every > 0 && (a->eval_text != NULL || data[1]->count > 0);
    for (size_t i = 0; i < 1 + (size_t)*has_eval; i++) {
        enum orc_ref_status status = ORC_REF_OK;
        if (paths[i] == NULL)
            status = orc_ref_stage_prepare(recipe, data[i], cache, arena, &paths[i], error);
        if (status == ORC_REF_OK)
            status = orc_ref_documents_load(paths[i], recipe->model.vocab, arena, &documents[i],
                                            error);
        if (status == ORC_REF_OK && documents[i].count == 0)
            status = orc_ref_fail(error, ORC_REF_BAD, "%s: 0 records",
                                  data[i]->count > 0 ? data[i]->list[0] : paths[i]);
        if (status != ORC_REF_OK)
            return status;
    }
    return ORC_REF_OK;
}

static enum orc_ref_status train(const struct arguments *a, const struct orc_ref_recipe *recipe,
                                 const char *cache, struct orc_ref_arena *arena, sigset_t *signals,
                                 struct orc_ref_error *error)
{
    struct orc_ref_documents documents[2] = {{0}};
    struct orc_ref_trace *trace = NULL;
    bool has_eval = false;
    struct orc_ref_options options = {
        .recipe = recipe, .train = &documents[0], .weights = a->weights, .follow = a->follow,
        .seed = a->has_seed ? a->seed : recipe->train.seed,
        .steps = a->steps > 0 ? (size_t)a->steps : recipe->train.steps,
        .threads = (size_t)a->threads, .full = a->full, .contents = a->contents,
        .interrupted = signal_waits, .interrupted_context = signals};
    enum orc_ref_status status = orc_ref_tokenizer_pad(recipe->text.tokenizer, recipe->model.vocab,
                                                       recipe->data.pad, &options.pad, error);
    if (status == ORC_REF_OK)
        status = load_text(a, recipe, cache, arena, documents, &has_eval, error);
    if (status == ORC_REF_OK)
        status = orc_ref_trace_open(a->trace, &trace, error);
    if (status != ORC_REF_OK)
        return status;
    options.eval = has_eval ? &documents[1] : NULL;
    status = orc_ref_train(&options, trace, error);
    const enum orc_ref_status closed =
        orc_ref_trace_close(trace, status == ORC_REF_OK ? error : NULL);
    return status == ORC_REF_OK ? closed : status;
}

/* Removes a cache that lasted for one run: two stage files at most, flat. */
static void remove_cache(const char *folder, const struct orc_ref_recipe *recipe,
                         struct orc_ref_arena *arena)
{
    const struct orc_ref_paths *const data[2] = {&recipe->data.train, &recipe->data.eval};
    for (size_t i = 0; i < 2; i++) {
        const char *path = NULL;
        if (data[i]->count > 0 &&
            orc_ref_stage_name(recipe, data[i], folder, arena, &path, NULL) == ORC_REF_OK)
            (void)unlink(path);
    }
    (void)rmdir(folder);
}

static enum orc_ref_status run(const struct arguments *a, sigset_t *signals,
                               struct orc_ref_error *error)
{
    char folder[] = "/tmp/faultline-ref-XXXXXX";
    bool temporary = false;
    struct orc_ref_recipe recipe;
    struct orc_ref_arena *const arena = orc_ref_arena_create(ARENA_BYTES);
    if (arena == NULL)
        return orc_ref_fail(error, ORC_REF_INTERNAL, "no memory");
    enum orc_ref_status status = orc_ref_recipe_load(a->recipe, arena, &recipe, error);
    if (status != ORC_REF_OK)
        goto done;
    if (a->data_count > 0) {
        recipe.data.train.list = (const char **)(size_t)a->data;
        recipe.data.train.count = a->data_count;
        recipe.data.weights = NULL;
        recipe.data.weight_count = 0;
    }
    if (a->cache == NULL) {
        temporary = mkdtemp(folder) != NULL;
        if (!temporary) {
            status = orc_ref_fail(error, ORC_REF_IO, "%s: %s", folder, strerror(errno));
            goto done;
        }
    }
    status = train(a, &recipe, temporary ? folder : a->cache, arena, signals, error);
    if (temporary)
        remove_cache(folder, &recipe, arena);
done:
    orc_ref_arena_destroy(arena);
    return status;
}

/* What a file, a tokenizer or the text gives back is used again: the first touch of a page costs
 * more than reading what is put there. */
static void keep_memory(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES / 2); /* the largest that malloc allows */
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
}

int main(int count, char **words)
{
    struct arguments arguments = {0};
    struct orc_ref_error error = {""};
    bool help = false;
    sigset_t signals;
    keep_memory();
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    enum orc_ref_status status = read_arguments(count, words, &arguments, &help, &error);
    if (help) {
        print_help();
        return 0;
    }
    if (status == ORC_REF_OK)
        status = run(&arguments, &signals, &error);
    if (status != ORC_REF_OK)
        (void)fprintf(stderr, "faultline-ref: %s\n", error.text);
    return (int)status;
}
