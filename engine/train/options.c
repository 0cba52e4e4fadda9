/* Command line of faultline-train. Called by train_main; must not know how a run goes. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option_id {
    OPT_RECIPE = 256,
    OPT_WEIGHTS,
    OPT_DATA,
    OPT_SEED,
    OPT_STEPS,
    OPT_TRACE,
    OPT_LEVEL,
    OPT_CONTENTS,
    OPT_STATES,
    OPT_FAULT,
    OPT_SCHEDULE,
    OPT_SCHEDULE_SEED,
    OPT_AIM,
    OPT_TIMELINE,
    OPT_OMIT_WAIT,
    OPT_GUARD,
    OPT_NO_POISON,
    OPT_THREADS,
    OPT_DRIVER,
    OPT_DEVICE,
    OPT_EXACT_PRODUCTS,
    OPT_BUDGET,
    OPT_QUARANTINE,
    OPT_CHECKPOINT_DIR,
    OPT_NO_SYNC,
    OPT_RESUME,
    OPT_EVALUATE,
    OPT_PLAN,
    OPT_PERTURB_ULP,
    OPT_SAVE,
    OPT_UNCHECKED,
    OPT_QUIET,
    OPT_VERSION,
    OPT_HELP
};

static const struct option table[] = {
    {"recipe", required_argument, NULL, OPT_RECIPE},
    {"weights", required_argument, NULL, OPT_WEIGHTS},
    {"data", required_argument, NULL, OPT_DATA},
    {"seed", required_argument, NULL, OPT_SEED},
    {"steps", required_argument, NULL, OPT_STEPS},
    {"trace", required_argument, NULL, OPT_TRACE},
    {"level", required_argument, NULL, OPT_LEVEL},
    {"contents", no_argument, NULL, OPT_CONTENTS},
    {"states", required_argument, NULL, OPT_STATES},
    {"fault", required_argument, NULL, OPT_FAULT},
    {"schedule", required_argument, NULL, OPT_SCHEDULE},
    {"schedule-seed", required_argument, NULL, OPT_SCHEDULE_SEED},
    {"aim", required_argument, NULL, OPT_AIM},
    {"timeline", required_argument, NULL, OPT_TIMELINE},
    {"guard", no_argument, NULL, OPT_GUARD},
    {"no-poison", no_argument, NULL, OPT_NO_POISON},
    {"omit-wait", required_argument, NULL, OPT_OMIT_WAIT},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"driver", required_argument, NULL, OPT_DRIVER},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"exact-products", no_argument, NULL, OPT_EXACT_PRODUCTS},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"quarantine", required_argument, NULL, OPT_QUARANTINE},
    {"checkpoint-dir", required_argument, NULL, OPT_CHECKPOINT_DIR},
    {"no-sync", no_argument, NULL, OPT_NO_SYNC},
    {"resume", required_argument, NULL, OPT_RESUME},
    {"evaluate", required_argument, NULL, OPT_EVALUATE},
    {"plan", no_argument, NULL, OPT_PLAN},
    {"perturb-ulp", no_argument, NULL, OPT_PERTURB_ULP},
    {"save", required_argument, NULL, OPT_SAVE},
    {"unchecked", no_argument, NULL, OPT_UNCHECKED},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0}};

const char *eng_options_help(void)
{
    return "usage: faultline-train --recipe FILE --weights FILE.safetensors [options]\n"
           "\n"
           "Trains a recipe (corpus/RECIPE.md) and writes a trace.\n"
           "\n"
           "  --recipe FILE           what to train\n"
           "  --weights FILE          initial weights (see faultline-init)\n"
           "  --data FILE             training data instead of the recipe's (repeatable)\n"
           "  --seed N                seed of the data order instead of the recipe's\n"
           "  --steps N               stop after step N; the schedule's horizon stays\n"
           "  --trace FILE[.zst]      write a trace (oracles/TRACE.md)\n"
           "  --level LEVEL           none, hashes or full (default full)\n"
           "  --contents              put token ids, labels, positions, segments into the trace\n"
           "  --states FILE           hand over batches, parameters and moments to a reference\n"
           "                          that follows (file or FIFO)\n"
           "  --fault SPEC            arm id[:dose][@step], none, or none:FILE; default\n"
           "                          $FAULTLINE_FAULT\n"
           "  --schedule KIND         how streams interleave: fifo (default), lazy, random, pct, "
           "aimed,\n"
           "                          threads; all but threads replay bit for bit\n"
           "  --schedule-seed N       seed of that (default 1)\n"
           "  --aim A:B[,A:B...]      aimed: operation A waits until B has run (first_op, "
           "second_op of a\n"
           "                          trace's races); default: the races of a first run, fifo or "
           "else lazy\n"
           "  --timeline FILE         write each operation as issued and as run, a JSON line each\n"
           "  --guard                 memory that nobody declared cannot be touched\n"
           "  --omit-wait N           list the calls that order operations and leave out the Nth, "
           "0 = none\n"
           "  --threads N             threads that share an operation (default: processors)\n"
           "  --driver KIND           single (default), or tasks: phases migrate between threads\n"
           "  --device KIND           host (default), or cuda (there --schedule threads by "
           "default)\n"
           "  --exact-products        cuda: products with the host's bits, not by cuBLAS\n"
           "  --budget BYTES          device memory instead of the recipe's\n"
           "  --quarantine BYTES      so much freed device memory waits before the oldest is "
           "reused\n"
           "  --checkpoint-dir DIR    keep checkpoints as the recipe's checkpoint_every says\n"
           "  --no-sync               do not wait for the disk: checkpoints outlive the process, "
           "not the\n"
           "                          machine\n"
           "  --resume DIR            go on from a checkpoint: DIR/step-N, or the last one below "
           "DIR\n"
           "  --evaluate WHAT         only evaluate these weights (file, or folder with\n"
           "                          model.safetensors); prints JSON\n"
           "  --plan                  only print the memory the recipe needs as JSON\n"
           "  --perturb-ulp           move every initial weight by one unit in the last place\n"
           "  --save DIR              write the final model.safetensors and config.json\n"
           "  --unchecked             no race checker and no poison: for measuring speed\n"
           "  --no-poison             freed memory keeps its contents\n"
           "  --quiet                 no summary, no progress\n"
           "  --version, --help\n"
           "\n"
           "exit: 0 ok, 1 usage or wrong contents of a file, 8 device memory refused,\n"
           "      9 own assertion, 10 guard, 70 internal, 74 a file cannot be read or written,\n"
           "      130 interrupted\n";
}

static enum eng_status number(const char *option, const char *text, uint64_t low, uint64_t high,
                              uint64_t *out, struct eng_error *error)
{
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < low ||
        value > high) {
        return eng_fail(error, ENG_EUSAGE,
                        "--%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64, option,
                        text, low, high);
    }
    *out = value;
    return ENG_OK;
}

static enum eng_status word(const char *option, const char *text, const char *const *words,
                            int *out, struct eng_error *error)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return ENG_OK;
        }
    }
    char all[128] = "";
    for (int i = 0; words[i] != NULL; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return eng_fail(error, ENG_EUSAGE, "--%s: '%s' is unknown; it takes %s", option, text, all);
}

static enum eng_status read_number(enum option_id id, const char *name, const char *text,
                                   struct eng_train_options *o, struct eng_error *error)
{
    uint64_t value = 0;
    enum eng_status status = ENG_OK;
    switch (id) {
    case OPT_SEED:
        o->seed_given = true;
        return number(name, text, 0, UINT64_MAX, &o->seed, error);
    case OPT_SCHEDULE_SEED:
        return number(name, text, 0, UINT64_MAX, &o->schedule_seed, error);
    case OPT_BUDGET:
        return number(name, text, 1, (uint64_t)1 << 46, &o->budget, error);
    case OPT_QUARANTINE:
        return number(name, text, 0, (uint64_t)1 << 46, &o->quarantine, error);
    case OPT_OMIT_WAIT:
        status = number(name, text, 0, DEV_SITES_MAX, &value, error);
        o->list_waits = true;
        o->omit_wait = (int)value;
        return status;
    case OPT_THREADS:
        status = number(name, text, 1, 256, &value, error);
        o->threads = (int)value;
        return status;
    default:
        status = number(name, text, 1, 1000000000, &value, error);
        o->steps = (int)value;
        return status;
    }
}

/* A:B[,A:B...] */
static enum eng_status read_aims(const char *text, struct eng_command_line *c,
                                 struct eng_error *error)
{
    c->aim_count = 0;
    for (const char *at = text;; at++) {
        uint64_t pair[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            char *end = NULL;
            errno = 0;
            pair[i] = strtoull(at, &end, 10);
            const bool separated = i == 0 ? *end == ':' : *end == ',' || *end == '\0';
            if (*at < '0' || *at > '9' || errno != 0 || !separated || pair[i] == 0) {
                return eng_fail(error, ENG_EUSAGE,
                                "--aim: '%s' is not a list of operation numbers A:B,A:B", text);
            }
            at = end + (i == 0);
        }
        if (c->aim_count == DEV_AIMS_MAX) {
            return eng_fail(error, ENG_EUSAGE, "--aim: more than %d pairs", DEV_AIMS_MAX);
        }
        c->aims[c->aim_count++] = (struct dev_aim){.held = pair[0], .until = pair[1]};
        if (*at == '\0') {
            return ENG_OK;
        }
    }
}

static enum eng_status read_word(enum option_id id, const char *name, const char *text,
                                 struct eng_train_options *o, struct eng_error *error)
{
    static const char *const levels[] = {"none", "hashes", "full", NULL};
    static const char *const scheds[] = {
#define DEV_ROW_(upper, lower) #lower,
        DEV_SCHEDS(DEV_ROW_)
#undef DEV_ROW_
            NULL};
    static const char *const drivers[] = {"single", "tasks", NULL};
    static const char *const devices[] = {"host", "cuda", NULL};
    int index = 0;
    const enum eng_status status = word(name, text,
                                        id == OPT_LEVEL      ? levels
                                        : id == OPT_SCHEDULE ? scheds
                                        : id == OPT_DEVICE   ? devices
                                                             : drivers,
                                        &index, error);
    if (status != ENG_OK) {
        return status;
    }
    if (id == OPT_LEVEL) {
        o->level = (enum eng_level)index;
    } else if (id == OPT_SCHEDULE) {
        o->sched = (enum dev_sched)index;
    } else if (id == OPT_DEVICE) {
        o->device = (enum dev_kind)index;
    } else {
        o->driver = (enum eng_driver_kind)index;
    }
    return ENG_OK;
}

static enum eng_status add_data(struct eng_command_line *c, const char *path,
                                struct eng_error *error)
{
    if (c->data_count == ENG_DATA_FILES_MAX) {
        return eng_fail(error, ENG_EUSAGE, "--data: more than %d files", ENG_DATA_FILES_MAX);
    }
    c->data[c->data_count++] = path;
    return ENG_OK;
}

/* Options that are a text or a switch. */
static void read_plain(enum option_id id, const char *text, struct eng_command_line *c)
{
    struct eng_train_options *o = &c->train;
    switch (id) {
    case OPT_RECIPE:
        c->recipe = text;
        break;
    case OPT_WEIGHTS:
        o->weights = text;
        break;
    case OPT_TRACE:
        o->trace_path = text;
        break;
    case OPT_TIMELINE:
        o->timeline_path = text;
        break;
    case OPT_CONTENTS:
        o->contents = true;
        break;
    case OPT_STATES:
        o->states_path = text;
        break;
    case OPT_FAULT:
        o->fault = text;
        break;
    case OPT_CHECKPOINT_DIR:
        o->checkpoint_dir = text;
        break;
    case OPT_NO_SYNC:
        o->no_sync = true;
        break;
    case OPT_RESUME:
        o->resume = text;
        break;
    case OPT_EVALUATE:
        o->weights = text;
        c->command = ENG_COMMAND_EVALUATE;
        break;
    case OPT_PLAN:
        c->command = ENG_COMMAND_PLAN;
        break;
    case OPT_PERTURB_ULP:
        o->perturb_ulp = true;
        break;
    case OPT_SAVE:
        c->save = text;
        break;
    case OPT_NO_POISON:
        o->no_poison = true;
        break;
    case OPT_GUARD:
        o->guard = true;
        break;
    case OPT_UNCHECKED:
        o->unchecked = true;
        break;
    case OPT_EXACT_PRODUCTS:
        o->exact_products = true;
        break;
    case OPT_QUIET:
        c->quiet = true;
        break;
    case OPT_VERSION:
        c->command = ENG_COMMAND_VERSION;
        break;
    default:
        c->command = ENG_COMMAND_HELP;
        break;
    }
}

static enum eng_status check(const struct eng_command_line *c, struct eng_error *error)
{
    const struct eng_train_options *o = &c->train;
    if (c->command == ENG_COMMAND_VERSION || c->command == ENG_COMMAND_HELP) {
        return ENG_OK;
    }
    if (c->recipe == NULL) {
        return eng_fail(error, ENG_EUSAGE, "--recipe is missing (see --help)");
    }
    if (c->command == ENG_COMMAND_TRAIN && o->weights == NULL && o->resume == NULL) {
        return eng_fail(error, ENG_EUSAGE, "--weights is missing (or --resume; see --help)");
    }
    if (o->weights != NULL && o->resume != NULL) {
        return eng_fail(error, ENG_EUSAGE, "--weights and --resume exclude each other");
    }
    if (c->aim_count > 0 && o->sched != DEV_SCHED_AIMED) {
        return eng_fail(error, ENG_EUSAGE, "--aim needs --schedule aimed");
    }
    if (o->guard && o->sched == DEV_SCHED_THREADS) {
        return eng_fail(error, ENG_EUSAGE, "--guard: not with the schedule threads");
    }
    if (o->timeline_path != NULL && o->sched == DEV_SCHED_THREADS) {
        return eng_fail(error, ENG_EUSAGE, "--timeline: the schedule threads has none");
    }
    if (o->exact_products && o->device != DEV_KIND_CUDA) {
        return eng_fail(error, ENG_EUSAGE, "--exact-products needs --device cuda");
    }
    if (o->device == DEV_KIND_CUDA && (o->guard || o->sched == DEV_SCHED_AIMED)) {
        return eng_fail(error, ENG_EUSAGE, "--device cuda: no guard mode and no schedule aimed");
    }
    if (o->states_path != NULL && (o->resume != NULL || c->command == ENG_COMMAND_EVALUATE)) {
        return eng_fail(error, ENG_EUSAGE, "--states: only of a run from its first step");
    }
    if (o->contents && o->trace_path == NULL) {
        return eng_fail(error, ENG_EUSAGE, "--contents needs --trace");
    }
    return ENG_OK;
}

enum eng_status eng_options_read(int argc, char **argv, const char *environment_fault,
                                 struct eng_command_line *out, struct eng_error *error)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct eng_command_line c = {.train = {.level = ENG_LEVEL_FULL,
                                           .schedule_seed = 1,
                                           .threads = processors > 0 ? (int)processors : 1}};
    enum eng_status status = ENG_OK;
    int index = 0;
    bool scheduled = false;
    optind = 1;
    opterr = 0;
    for (int id; status == ENG_OK && (id = getopt_long(argc, argv, ":", table, &index)) != -1;) {
        switch (id) {
        case '?':
            return eng_fail(error, ENG_EUSAGE, "unknown option '%s' (see --help)",
                            argv[optind - 1]);
        case ':':
            return eng_fail(error, ENG_EUSAGE, "'%s' needs a value", argv[optind - 1]);
        case OPT_DATA:
            status = add_data(&c, optarg, error);
            break;
        case OPT_AIM:
            status = read_aims(optarg, &c, error);
            break;
        case OPT_SEED:
        case OPT_SCHEDULE_SEED:
        case OPT_BUDGET:
        case OPT_THREADS:
        case OPT_OMIT_WAIT:
        case OPT_STEPS:
            status = read_number((enum option_id)id, table[index].name, optarg, &c.train, error);
            break;
        case OPT_LEVEL:
        case OPT_SCHEDULE:
        case OPT_DRIVER:
        case OPT_DEVICE:
            scheduled |= id == OPT_SCHEDULE;
            status = read_word((enum option_id)id, table[index].name, optarg, &c.train, error);
            break;
        default:
            read_plain((enum option_id)id, optarg, &c);
            break;
        }
    }
    if (status == ENG_OK && optind < argc) {
        status = eng_fail(error, ENG_EUSAGE, "'%s' is not an option", argv[optind]);
    }
    if (c.train.device == DEV_KIND_CUDA && !scheduled) {
        c.train.sched = DEV_SCHED_THREADS;
    }
    if (c.train.trace_path == NULL) {
        c.train.level = ENG_LEVEL_NONE;
    }
    if (c.train.fault == NULL && environment_fault != NULL && environment_fault[0] != '\0') {
        c.train.fault = environment_fault;
    }
    if (status == ENG_OK) {
        status = check(&c, error);
    }
    if (status == ENG_OK) {
        *out = c;
    }
    return status;
}
