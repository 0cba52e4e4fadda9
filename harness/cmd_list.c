/* faultline list and faultline explain: the catalogue, and what is stored about a fault. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_cmd.h"
#include "har_plan.h"
#include "har_results.h"
#include "har_text.h"
#include "registry.h"

static bool any_matches(const struct har_patterns *patterns, const char *text)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (har_text_matches(patterns->items[i], text)) {
            return true;
        }
    }
    return patterns->count == 0;
}

static bool wanted(const struct har_options *options, const struct mut_fault *fault)
{
    return any_matches(&options->faults, fault->id) &&
           any_matches(&options->families, mut_family_name(fault->family)) &&
           any_matches(&options->expects, mut_expect_name(fault->expect));
}

static json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_string(text) : json_null();
}

static json_t *fault_json(const struct mut_fault *fault, const struct mut_site_info *site)
{
    json_t *const o = json_object();
    json_object_set_new(o, "id", json_string(fault->id));
    json_object_set_new(o, "number", json_integer(fault->number));
    json_object_set_new(o, "family", json_string(mut_family_name(fault->family)));
    json_object_set_new(o, "class", json_string(mut_class_name(fault->class_)));
    json_object_set_new(o, "expectation", json_string(mut_expect_name(fault->expect)));
    json_object_set_new(o, "reason", text_or_null(fault->expect_reason));
    json_object_set_new(o, "trigger", json_string(fault->trigger));
    json_object_set_new(o, "faulty", json_string(fault->faulty));
    json_object_set_new(o, "why", json_string(fault->why));
    json_object_set_new(o, "source", text_or_null(fault->source));
    if (site != NULL) {
        json_object_set_new(o, "file", json_string(site->file));
        json_object_set_new(o, "line", json_integer(site->line));
        json_object_set_new(o, "healthy", json_string(site->healthy));
    }
    if (fault->dose.unit != NULL) {
        json_t *const dose = json_object();
        json_object_set_new(dose, "unit", json_string(fault->dose.unit));
        json_object_set_new(dose, "smallest", json_real((double)fault->dose.smallest));
        json_object_set_new(dose, "usual", json_real((double)fault->dose.usual));
        json_object_set_new(dose, "largest", json_real((double)fault->dose.largest));
        json_object_set_new(o, "dose", dose);
    }
    return o;
}

static void print_json(json_t *root)
{
    json_dumpf(root, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    fputc('\n', stdout);
    json_decref(root);
}

static void print_titles(void)
{
    printf("%-6s  %-10s  %-11s  %-10s  %-36s  %s\n", "number", "family", "class", "expected",
           "fault", "what goes wrong, what it needs, dose");
}

static void print_row(const struct mut_fault *fault)
{
    char dose[80] = "";
    if (fault->dose.unit != NULL) {
        char low[24];
        char high[24];
        har_plan_dose_text(fault->dose.smallest, low, sizeof low);
        har_plan_dose_text(fault->dose.largest, high, sizeof high);
        snprintf(dose, sizeof dose, "  dose %s..%s %s", low, high, fault->dose.unit);
    }
    printf("0x%04X  %-10s  %-11s  %-10s  %-36s  %s%s%s%s\n", fault->number,
           mut_family_name(fault->family), mut_class_name(fault->class_),
           mut_expect_name(fault->expect), fault->id, fault->why,
           fault->trigger[0] != '\0' ? "  needs " : "", fault->trigger, dose);
}

enum har_status har_cmd_list(const struct har_options *options, struct har_error *error)
{
    json_t *const list = json_array();
    size_t count = 0;
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *const fault = mut_fault_at(i);
        if (!wanted(options, fault)) {
            continue;
        }
        count++;
        if (options->json) {
            json_array_append_new(list, fault_json(fault, mut_site_find(fault->site)));
        } else {
            if (count == 1) {
                print_titles();
            }
            print_row(fault);
        }
    }
    if (options->json) {
        print_json(list);
    } else {
        printf("%zu of %zu faults\n", count, mut_fault_count());
        json_decref(list);
    }
    return count > 0 ? HAR_OK
                     : har_fail(error, HAR_EUSAGE, "no fault matches; faultline list shows all");
}

/* Stored outcomes of one fault. */
struct history {
    const char *id;
    json_t *list;
};

static void add_history(void *context, int columns, char **v)
{
    struct history *const h = context;
    const size_t length = strlen(h->id);
    (void)columns;
    if (v[0] == NULL || strncmp(v[0], h->id, length) != 0 ||
        (v[0][length] != '\0' && v[0][length] != ':')) {
        return;
    }
    static const char *const names[] = {"entry",       "recipe",   "seed",     "outcome",
                                        "first_check", "reached",  "detected", "detail",
                                        "finished_at", "reproduce"};
    json_t *const o = json_object();
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        json_object_set_new(o, names[i], text_or_null(v[i]));
    }
    json_array_append_new(h->list, o);
}

/* A folder without results is no error: the fault is explained all the same. */
static enum har_status load_history(const char *dir, const char *id, json_t **out,
                                    struct har_catalogue *catalogue, struct har_error *error)
{
    struct history history = {.id = id, .list = json_array()};
    har_store *store = NULL;
    *out = history.list;
    enum har_status status = har_store_open(dir, &store, error);
    if (status == HAR_EUSAGE) {
        return HAR_OK;
    }
    if (status == HAR_OK) {
        status = har_results_catalogue(store, catalogue, error);
    }
    if (status == HAR_OK) {
        status = har_store_query(
            store,
            "SELECT entry, recipe, seed, outcome, first_check, reached,"
            " detected, detail, finished_at, reproduce FROM cases WHERE kind IN ('fault',"
            " 'planted') ORDER BY finished_at",
            add_history, &history, error);
    }
    har_store_close(store);
    return status;
}

static const char *text_of(json_t *object, const char *key)
{
    const char *const text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "-";
}

static void print_history(json_t *history, const char *dir)
{
    size_t i;
    json_t *o;
    printf(json_array_size(history) > 0 ? "history:  of %s\n"
                                        : "history:  no stored result in %s (--out DIR reads "
                                          "another folder; ./fl demo fills results/demo)\n",
           dir);
    json_array_foreach(history, i, o)
    {
        printf("  %s  %s on %s seed %s: %s", text_of(o, "finished_at"), text_of(o, "entry"),
               text_of(o, "recipe"), text_of(o, "seed"), text_of(o, "outcome"));
        if (strcmp(text_of(o, "outcome"), "detected") == 0) {
            printf(" by %s at step %s (reached %s)", text_of(o, "first_check"),
                   text_of(o, "detected"), text_of(o, "reached"));
        }
        printf(": %s\n    %s\n", text_of(o, "detail"), text_of(o, "reproduce"));
    }
}

static void print_fault(const struct mut_fault *fault, const struct mut_site_info *site)
{
    printf("%s  (0x%04X)\n", fault->id, fault->number);
    if (site != NULL) {
        printf("healthy:  %s:%d: %s\n", site->file, site->line, site->healthy);
    }
    printf("faulty:   %s\nwhy:      %s\nfamily:   %s, first shows in: %s\nexpected: %s%s%s\n",
           fault->faulty, fault->why, mut_family_name(fault->family), mut_class_name(fault->class_),
           mut_expect_name(fault->expect), fault->expect_reason != NULL ? ": " : "",
           fault->expect_reason != NULL ? fault->expect_reason : "");
    printf("trigger:  %s\n", fault->trigger[0] != '\0' ? fault->trigger : "none");
    if (fault->dose.unit != NULL) {
        printf("dose:     smallest %g, usual %g, largest %g %s\n", (double)fault->dose.smallest,
               (double)fault->dose.usual, (double)fault->dose.largest, fault->dose.unit);
    }
    printf("source:   %s\n", fault->source[0] != '\0' ? fault->source : "none");
}

/* A fault of the stored campaign's catalogue, else of the registry. */
enum har_status har_cmd_explain(const struct har_options *options, struct har_error *error)
{
    static const struct har_catalogue registry = {0};
    char id[128];
    const char *const given = options->operands.items[0];
    const char *const dir = options->out != NULL ? options->out : "faultline.out";
    struct har_catalogue stored = {0};
    json_t *history = NULL;
    snprintf(id, sizeof id, "%.*s", (int)strcspn(given, ":@"), given);
    enum har_status status = load_history(dir, id, &history, &stored, error);
    const struct har_catalogue *const known =
        har_catalogue_find(&stored, id) != NULL ? &stored : &registry;
    const struct mut_fault *const fault = har_catalogue_find(known, id);
    const struct mut_site_info *const site = har_catalogue_site(known, fault);
    if (fault == NULL) {
        status = har_status_worse(status, har_fail(error, HAR_EUSAGE,
                                                   "unknown fault '%s' "
                                                   "(faultline list shows all)",
                                                   id));
    } else if (options->json) {
        json_t *const o = fault_json(fault, site);
        json_object_set(o, "history", history);
        print_json(o);
    } else {
        print_fault(fault, site);
        print_history(history, dir);
    }
    json_decref(history);
    har_catalogue_fini(&stored);
    return status;
}
