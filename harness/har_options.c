/* One table of options; each row says which commands take it, what it means and where it goes.
 * Called by har_main.c; must not know what the values are used for. */
#include "har_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum value_kind { FLAG, TEXT, COUNT, SEED, NUMBER, PATTERN, FAMILY_LIMIT };

#define ON(command) (1u << HAR_SUBCOMMAND_##command)
#define ON_RUNS (ON(run) | ON(null))
#define ON_PROGRAMS (ON_RUNS | ON(doctor) | ON(effect) | ON(replay))
#define ON_STORED (ON(report) | ON(gate) | ON(explain) | ON(merge) | ON(replay))
#define ALL_COMMANDS ((1u << HAR_SUBCOMMAND_COUNT) - 1u)

struct row {
    const char *name;
    char letter; /* 0 = none */
    enum value_kind kind;
    size_t place; /* offset in struct har_options */
    unsigned commands;
    const char *operand;
    const char *text;
};

#define AT(member) offsetof(struct har_options, member)

static const struct row rows[] = {
    {"campaign", 'c', TEXT, AT(campaign), ON_RUNS, "FILE", "campaign to run (YAML)"},
    {"recipe", 0, TEXT, AT(recipe), ON(doctor) | ON(effect), "FILE",
     "recipe (YAML): doctor shows its memory plan only; effect trains it (pico-llama3)"},
    {"out", 'o', TEXT, AT(out), ON_RUNS | ON_STORED | ON(effect) | ON(fuzz), "DIR",
     "folder of the results (faultline.out)"},
    {"fault", 'F', PATTERN, AT(faults), ON_RUNS | ON(list) | ON(effect) | ON(fuzz), "PATTERN",
     "faults whose id matches, e.g. 'adamw_*'; may be repeated"},
    {"target", 0, PATTERN, AT(targets), ON(fuzz), "PATTERN",
     "fuzz targets whose name matches (all); may be repeated"},
    {"all", 0, FLAG, AT(all), ON(fuzz), NULL,
     "all faults of the families template, tokenizer, mask, data"},
    {"runs", 0, SEED, AT(runs), ON(fuzz), "N", "executions of a run at most (200000)"},
    {"seconds", 0, COUNT, AT(seconds), ON(fuzz), "S", "seconds of a run at most (30)"},
    {"no-seeds", 0, FLAG, AT(no_seeds), ON(fuzz), NULL,
     "start from nothing instead of corpus/seeds"},
    {"family", 0, PATTERN, AT(families), ON_RUNS | ON(list), "NAME",
     "faults of this family; may be repeated"},
    {"expect", 0, PATTERN, AT(expects), ON(list), "KILL|EQUIVALENT|GAP",
     "rows with this expectation"},
    {"mode", 0, TEXT, AT(mode), ON_RUNS, "free|lockstep",
     "the reference goes its own way, or starts each step from the run's state (the campaign's)"},
    {"checks", 0, TEXT, AT(checks), ON_RUNS, "LIST",
     "checks that count, comma separated (the campaign's, else all)"},
    {"external", 0, TEXT, AT(external), ON_RUNS, "COMMAND",
     "an oracle of your own, the check external (README of harness)"},
    {"repeats", 0, COUNT, AT(repeats), ON_RUNS | ON(fuzz), "N",
     "seeds per fault (the campaign's; of fuzz 10)"},
    {"seed", 's', SEED, AT(seed), ON_RUNS | ON(effect) | ON(fuzz), "N",
     "first seed (the campaign's; otherwise 1)"},
    {"horizon", 0, COUNT, AT(horizon), ON_RUNS, "STEPS",
     "steps of a run (the campaign's, else the recipe's)"},
    {"calibration", 0, COUNT, AT(calibration), ON_RUNS, "N",
     "healthy runs per recipe that make the bounds (the campaign's)"},
    {"false-alarms", 0, COUNT, AT(false_alarms), ON_RUNS, "N",
     "further healthy runs per recipe that must raise nothing (the campaign's)"},
    {"dose", 0, TEXT, AT(doses), ON(run), "LIST",
     "doses: smallest, usual, largest or numbers, comma separated (the campaign's)"},
    {"changed-since", 0, TEXT, AT(changed_since), ON(run), "REV",
     "only faults whose site's file or catalogue changed since this git revision"},
    {"baseline", 0, TEXT, AT(baseline), ON(run) | ON(gate), "FILE",
     "results.json of an earlier campaign; what it detected must be detected (gate)"},
    {"iterate", 0, FLAG, AT(iterate), ON(run), NULL, "skip faults that the baseline detected"},
    {"shard", 0, TEXT, AT(shard), ON(run), "K/N", "only part K of N, from 1; see merge"},
    {"slurm", 0, COUNT, AT(slurm), ON(run), "N",
     "run N shards as a Slurm job array, wait, merge into --out"},
    {"resume", 0, FLAG, AT(resume), ON_RUNS, NULL,
     "go on where the same command stopped; this is always so"},
    {"seeds", 0, COUNT, AT(seeds), ON(effect), "N", "seeds, at least 5 (5)"},
    {"template-fault", 0, TEXT, AT(template_fault), ON(effect), "ID",
     "the template swap whose effect is compared (layout_choice.generic)"},
    {"pair", 0, COUNT, AT(pair), ON(replay), "N", "pair whose timeline is shown (1)"},
    {"schedule", 0, TEXT, AT(schedule), ON(replay), "KIND",
     "another schedule than the stored one: fifo, lazy, random, pct, aimed"},
    {"jobs", 'j', COUNT, AT(jobs), ON_RUNS | ON(effect) | ON(fuzz), "N",
     "child processes at once (one more than cores)"},
    {"dry-run", 'n', FLAG, AT(dry_run), ON(run), NULL,
     "print plan and time; runs only one healthy run per recipe"},
    {"first-verdict", 0, FLAG, AT(first_verdict), ON(run), NULL,
     "stop a fault at its first alarm; no per-check times then"},
    {"keep-traces", 0, FLAG, AT(keep_traces), ON_RUNS, NULL, "keep the traces of judged runs"},
    {"fail-under", 0, NUMBER, AT(fail_under), ON(gate), "PCT",
     "fail when the detection rate is below"},
    {"fail-under-family", 0, FAMILY_LIMIT, AT(family_under), ON(gate), "F=PCT",
     "the same for one family; may be repeated"},
    {"max-median-steps", 0, NUMBER, AT(max_median_steps), ON(gate), "N",
     "fail when the median of steps to detection is above"},
    {"max-false-alarms", 0, COUNT, AT(max_false_alarms), ON(gate), "N",
     "healthy runs that may raise an alarm (0)"},
    {"max-no-verdict", 0, COUNT, AT(max_no_verdict), ON(gate), "N",
     "faults that may stay without verdict (0)"},
    {"known", 0, TEXT, AT(known), ON(gate), "FILE",
     "known misses with reason and expiry (YAML); every other miss fails"},
    {"annotations", 0, TEXT, AT(annotations), ON(gate), "auto|github|none",
     "GitHub annotations on stdout (auto: where GITHUB_ACTIONS is true)"},
    {"summary", 0, TEXT, AT(summary), ON(gate), "FILE",
     "append a Markdown summary (GITHUB_STEP_SUMMARY)"},
    {"bounds", 0, TEXT, AT(bounds), ON(diff), "FILE|DIR",
     "calibrated bounds: a results folder, or a file of its table bounds; else bit for bit"},
    {"format", 0, TEXT, AT(format), ON(report), "text|json|csv|junit|markdown|stryker|sarif",
     "format on stdout (text)"},
    {"against", 0, TEXT, AT(against), ON(report), "DIR",
     "only compare with these results of the same faults, e.g. of the other mode"},
    {"json", 0, FLAG, AT(json), ALL_COMMANDS & ~(ON(run) | ON(null)), NULL, "print JSON"},
    {"quiet", 'q', FLAG, AT(quiet), ON_RUNS | ON(effect) | ON(fuzz), NULL, "no progress"},
    {"fuzzers", 0, TEXT, AT(fuzzers), ON(fuzz), "DIR",
     "folder of the fuzzers (FAULTLINE_FUZZERS; beside this program, or build/fuzz/tests)"},
    {"train", 0, TEXT, AT(train), ON_PROGRAMS, "FILE", "trainer under test (FAULTLINE_TRAIN)"},
    {"train-production", 0, TEXT, AT(train_production), ON_PROGRAMS, "FILE",
     "trainer without fault sites (FAULTLINE_TRAIN_PRODUCTION)"},
    {"train-lanes", 0, TEXT, AT(train_lanes), ON_PROGRAMS, "FILE",
     "trainer with emulated lanes (FAULTLINE_TRAIN_LANES)"},
    {"also-train", 0, TEXT, AT(also_train), ON_RUNS, "FILE",
     "second healthy build, e.g. of another compiler, for half of the healthy runs (the "
     "campaign's)"},
    {"ref", 0, TEXT, AT(ref), ON_PROGRAMS, "FILE", "reference trainer (FAULTLINE_REF)"},
    {"init", 0, TEXT, AT(init), ON_PROGRAMS, "FILE", "maker of initial weights (FAULTLINE_INIT)"},
    {"text-stage", 0, TEXT, AT(text_stage), ON_PROGRAMS, "FILE",
     "text stage of the reference (FAULTLINE_TEXT_STAGE)"},
    {"python", 0, TEXT, AT(python), ON_PROGRAMS, "FILE",
     "Python that runs it (FAULTLINE_PYTHON, /usr/bin/python3)"},
    {"help", 'h', FLAG, AT(help), ALL_COMMANDS, NULL, "this text"},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const char *const command_names[] = {
#define HAR_ROW_(name, operands, text) #name,
    HAR_SUBCOMMANDS(HAR_ROW_)
#undef HAR_ROW_
};
static const char *const command_operands[] = {
#define HAR_ROW_(name, operands, text) operands,
    HAR_SUBCOMMANDS(HAR_ROW_)
#undef HAR_ROW_
};
static const char *const command_texts[] = {
#define HAR_ROW_(name, operands, text) text,
    HAR_SUBCOMMANDS(HAR_ROW_)
#undef HAR_ROW_
};

const char *har_subcommand_name(enum har_subcommand command)
{
    return command < HAR_SUBCOMMAND_COUNT ? command_names[command] : "?";
}

bool har_subcommand_find(const char *name, enum har_subcommand *out)
{
    for (int i = 0; i < HAR_SUBCOMMAND_COUNT; i++) {
        if (strcmp(command_names[i], name) == 0) {
            *out = (enum har_subcommand)i;
            return true;
        }
    }
    return false;
}

static enum har_status take_number(const struct row *row, const char *value, double *out,
                                   struct har_error *error)
{
    char *end = NULL;
    errno = 0;
    *out = strtod(value, &end);
    if (end == value || *end != '\0' || errno != 0 || !isfinite(*out) || *out < 0.0) {
        return har_fail(error, HAR_EUSAGE, "--%s needs a number from 0, not '%s'", row->name,
                        value);
    }
    return HAR_OK;
}

static enum har_status take_whole(const struct row *row, const char *value, int64_t most,
                                  int64_t *out, struct har_error *error)
{
    char *end = NULL;
    errno = 0;
    *out = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || *out < 0 || *out > most) {
        return har_fail(error, HAR_EUSAGE, "--%s needs a whole number from 0 to %lld, not '%s'",
                        row->name, (long long)most, value);
    }
    return HAR_OK;
}

static enum har_status take_family_limit(const struct row *row, const char *value, double *limits,
                                         struct har_error *error)
{
    const char *const equals = strchr(value, '=');
    for (int i = 0; equals != NULL && i < MUT_FAMILY_COUNT; i++) {
        const char *const name = mut_family_name((enum mut_family)i);
        if (strlen(name) == (size_t)(equals - value) &&
            strncmp(name, value, (size_t)(equals - value)) == 0) {
            return take_number(row, equals + 1, &limits[i], error);
        }
    }
    return har_fail(error, HAR_EUSAGE,
                    "--%s needs FAMILY=PERCENT with a family of faultline list, not '%s'",
                    row->name, value);
}

static enum har_status take_value(const struct row *row, const char *value,
                                  struct har_options *options, struct har_error *error)
{
    char *const place = (char *)options + row->place;
    int64_t whole = 0;
    enum har_status status = HAR_OK;
    switch (row->kind) {
    case FLAG:
        *(bool *)place = true;
        break;
    case TEXT:
        *(const char **)place = value;
        break;
    case COUNT:
        status = take_whole(row, value, 1000000, &whole, error);
        *(int *)place = (int)whole;
        break;
    case SEED:
        status = take_whole(row, value, INT64_MAX / 2, &whole, error);
        *(int64_t *)place = whole;
        break;
    case NUMBER:
        status = take_number(row, value, (double *)place, error);
        break;
    case FAMILY_LIMIT:
        status = take_family_limit(row, value, (double *)place, error);
        break;
    case PATTERN: {
        struct har_patterns *const patterns = (struct har_patterns *)place;
        if (patterns->count == HAR_PATTERNS_MAX) {
            return har_fail(error, HAR_EUSAGE, "--%s stands more than %d times", row->name,
                            HAR_PATTERNS_MAX);
        }
        patterns->items[patterns->count++] = value;
        break;
    }
    }
    return status;
}

static void set_absent(struct har_options *options)
{
    memset(options, 0, sizeof *options);
    options->repeats = options->horizon = options->jobs = options->calibration = -1;
    options->false_alarms = options->seeds = options->pair = options->slurm = -1;
    options->seed = options->runs = -1;
    options->seconds = -1;
    options->fail_under = options->max_median_steps = -1.0;
    options->max_false_alarms = options->max_no_verdict = -1;
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        options->family_under[i] = -1.0;
    }
}

static void build_getopt(enum har_subcommand command, struct option *longs, char *shorts)
{
    size_t used = 0;
    *shorts++ = ':';
    for (int i = 0; i < ROW_COUNT; i++) {
        if ((rows[i].commands & 1u << command) == 0) {
            continue;
        }
        const int argument = rows[i].kind == FLAG ? no_argument : required_argument;
        longs[used++] = (struct option){rows[i].name, argument, NULL, 1000 + i};
        if (rows[i].letter != 0) {
            *shorts++ = rows[i].letter;
            if (argument == required_argument) {
                *shorts++ = ':';
            }
        }
    }
    longs[used] = (struct option){NULL, 0, NULL, 0};
    *shorts = '\0';
}

static const struct row *row_of(int result)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        if (result == 1000 + i || (rows[i].letter != 0 && result == rows[i].letter)) {
            return &rows[i];
        }
    }
    return NULL;
}

static enum har_status check_operands(enum har_subcommand command,
                                      const struct har_options *options, struct har_error *error)
{
    const size_t wanted = command == HAR_SUBCOMMAND_diff      ? 2
                          : command == HAR_SUBCOMMAND_explain ? 1
                          : command == HAR_SUBCOMMAND_replay  ? 1
                                                              : 0;
    const bool several = command == HAR_SUBCOMMAND_merge;
    if (options->help ||
        (several ? options->operands.count > 0 : options->operands.count == wanted)) {
        return HAR_OK;
    }
    if (several) {
        return har_fail(error, HAR_EUSAGE, "needs the folders of all shards");
    }
    if (wanted == 0) {
        return har_fail(error, HAR_EUSAGE, "unexpected argument '%s'", options->operands.items[0]);
    }
    return har_fail(error, HAR_EUSAGE, "needs %zu argument%s: %s", wanted, wanted == 1 ? "" : "s",
                    command_operands[command]);
}

enum har_status har_options_parse(enum har_subcommand command, int argc, char **argv,
                                  struct har_options *out, struct har_error *error)
{
    struct option longs[ROW_COUNT + 1];
    char shorts[2 * ROW_COUNT + 2];
    set_absent(out);
    build_getopt(command, longs, shorts);
    opterr = 0;
    optind = 0;
    int result;
    while ((result = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        const struct row *const row = row_of(result);
        if (row == NULL) {
            const char *const word = argv[optind > 0 ? optind - 1 : 0];
            return har_fail(error, HAR_EUSAGE,
                            result == ':' ? "option '%s' needs a value" : "unknown option '%s'",
                            word);
        }
        const enum har_status status = take_value(row, optarg, out, error);
        if (status != HAR_OK) {
            return status;
        }
    }
    for (int i = optind; i < argc; i++) {
        if (out->operands.count == HAR_PATTERNS_MAX) {
            return har_fail(error, HAR_EUSAGE, "more than %d arguments", HAR_PATTERNS_MAX);
        }
        out->operands.items[out->operands.count++] = argv[i];
    }
    return check_operands(command, out, error);
}

static void add_words(const struct row *row, const struct har_options *options,
                      struct har_args *out)
{
    const char *const place = (const char *)options + row->place;
    const struct har_patterns *const patterns = (const struct har_patterns *)place;
    switch (row->kind) {
    case FLAG:
        if (*(const bool *)place) {
            har_args_addf(out, "--%s", row->name);
        }
        break;
    case TEXT:
        if (*(const char *const *)place != NULL) {
            har_args_addf(out, "--%s=%s", row->name, *(const char *const *)place);
        }
        break;
    case COUNT:
        if (*(const int *)place >= 0) {
            har_args_addf(out, "--%s=%d", row->name, *(const int *)place);
        }
        break;
    case SEED:
        if (*(const int64_t *)place >= 0) {
            har_args_addf(out, "--%s=%lld", row->name, (long long)*(const int64_t *)place);
        }
        break;
    case NUMBER:
        if (*(const double *)place >= 0.0) {
            har_args_addf(out, "--%s=%.17g", row->name, *(const double *)place);
        }
        break;
    case PATTERN:
        for (size_t i = 0; i < patterns->count; i++) {
            har_args_addf(out, "--%s=%s", row->name, patterns->items[i]);
        }
        break;
    case FAMILY_LIMIT:
        for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
            if (((const double *)place)[i] >= 0.0) {
                har_args_addf(out, "--%s=%s=%.17g", row->name, mut_family_name((enum mut_family)i),
                              ((const double *)place)[i]);
            }
        }
        break;
    }
}

void har_options_words(enum har_subcommand command, const struct har_options *options,
                       struct har_args *out)
{
    har_args_add(out, command_names[command]);
    for (int i = 0; i < ROW_COUNT; i++) {
        if ((rows[i].commands & 1u << command) != 0) {
            add_words(&rows[i], options, out);
        }
    }
}

/* Codes from the highest precedence to the lowest; meanings of one code share its line. */
static void print_exit_codes(FILE *stream)
{
    static const struct {
        int code;
        const char *text;
    } codes[] = {
#define HAR_ROW_(name, exit_code, text) {exit_code, text},
        HAR_STATUS(HAR_ROW_)
#undef HAR_ROW_
    };
    fputs("\nexit codes, highest first:\n", stream);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (i > 0 && codes[i].code == codes[i - 1].code) {
            fprintf(stream, "; %s", codes[i].text);
        } else {
            fprintf(stream, "%s  %3d  %s", i > 0 ? "\n" : "", codes[i].code, codes[i].text);
        }
    }
    fputs("\n    0  pass; no difference\n", stream);
}

void har_options_help(enum har_subcommand command, FILE *stream)
{
    fprintf(stream, "usage: faultline %s [options]%s%s\n%s\n\n", command_names[command],
            command_operands[command][0] != '\0' ? " " : "", command_operands[command],
            command_texts[command]);
    for (int i = 0; i < ROW_COUNT; i++) {
        if ((rows[i].commands & 1u << command) == 0) {
            continue;
        }
        char left[64];
        const char letter[3] = {rows[i].letter != 0 ? '-' : ' ',
                                rows[i].letter != 0 ? rows[i].letter : ' ', '\0'};
        snprintf(left, sizeof left, "%s --%s%s%s", letter, rows[i].name,
                 rows[i].operand != NULL ? " " : "",
                 rows[i].operand != NULL ? rows[i].operand : "");
        fprintf(stream, "  %-32s %s\n", left, rows[i].text);
    }
    print_exit_codes(stream);
}

void har_options_overview(FILE *stream)
{
    fputs("usage: faultline COMMAND [options]; faultline COMMAND --help shows its options\n\n",
          stream);
    for (int i = 0; i < HAR_SUBCOMMAND_COUNT; i++) {
        fprintf(stream, "  %-8s %-12s %s\n", command_names[i], command_operands[i],
                command_texts[i]);
    }
    print_exit_codes(stream);
}
