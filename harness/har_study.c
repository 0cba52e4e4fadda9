/* Joins stored results into the statistics of a campaign.
 * Called by the reports; must not know formats. */
#include "har_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "har_stat_normal.h"

static const double confidence = 0.95;

/* Steps from reaching the site to an end, or to the horizon when there is none (0). */
static double steps_of(const struct har_result *e, int end)
{
    return har_outcome_steps(e->reached, end > 0 ? end : e->horizon);
}

/* Step at which check i, or any (-1), detected the entry; 0 = it did not. */
static int detected_at(const struct har_result *e, int check)
{
    return check < 0 ? e->detected : e->check_steps[check];
}

static bool keep_counted(const struct har_results *r, struct har_study *s)
{
    s->entries = calloc(r->count + 1, sizeof *s->entries);
    s->masks = calloc(r->count + 1, sizeof *s->masks);
    s->representative = calloc(r->count + 1, sizeof *s->representative);
    s->root = calloc(r->count + 1, sizeof *s->root);
    if (s->entries == NULL || s->masks == NULL || s->representative == NULL || s->root == NULL) {
        return false;
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        if (!har_results_counts(e)) {
            continue;
        }
        for (int c = 0; c < ORC_CHECK_COUNT; c++) {
            s->masks[s->count] |= e->check_steps[c] > 0 ? UINT32_C(1) << c : 0;
        }
        s->horizon = fmax(s->horizon, steps_of(e, 0));
        s->entries[s->count++] = e;
    }
    return true;
}

struct times {
    double *times;
    bool *events;
};

static bool make_times(const struct har_study *s, int check, struct times *out)
{
    out->times = calloc(s->count + 1, sizeof *out->times);
    out->events = calloc(s->count + 1, sizeof *out->events);
    for (size_t i = 0; out->times != NULL && out->events != NULL && i < s->count; i++) {
        const int at = detected_at(s->entries[i], check);
        out->events[i] = at > 0;
        out->times[i] = steps_of(s->entries[i], at);
    }
    return out->times != NULL && out->events != NULL;
}

static void free_times(struct times *t)
{
    free(t->times);
    free(t->events);
}

static void compare_pairs(const struct har_study *s, int check, struct har_study_check *out)
{
    for (size_t i = 0; i < s->count; i++) {
        const int mine = detected_at(s->entries[i], check);
        const int base = s->entries[i]->check_steps[ORC_CHECK_curve];
        out->detected += mine > 0;
        out->earlier += mine > 0 && (base == 0 || mine < base);
        out->later += base > 0 && (mine == 0 || base < mine);
        out->tied += mine == base;
    }
    out->sign_p = har_stat_sign_test(out->earlier, out->later);
}

/* check -1: all together. */
static bool study_check(struct har_study *s, int check, struct har_study_check *out)
{
    struct times mine = {NULL, NULL};
    struct times base = {NULL, NULL};
    bool good = make_times(s, check, &mine) && make_times(s, ORC_CHECK_curve, &base) &&
                har_stat_survival(mine.times, mine.events, s->count, confidence, &out->curve);
    if (good) {
        const struct har_group groups[2] = {{mine.times, mine.events, s->count},
                                            {base.times, base.events, s->count}};
        out->mean = har_stat_survival_mean(&out->curve, s->horizon);
        out->median = har_stat_survival_time(&out->curve, 0.5);
        good = har_stat_log_rank(&groups[0], &groups[1], &out->rank);
        compare_pairs(s, check, out);
    }
    free_times(&mine);
    free_times(&base);
    return good;
}

/* The runs that each check looks at; curve needs healthy runs of other seeds, made once. */
static void set_costs(const struct har_summary *summary, struct har_cover_cost *cost)
{
    const uint32_t subject = 1u << HAR_INPUT_subject;
    cost->input_count = HAR_INPUT_COUNT;
    for (int i = 0; i < HAR_INPUT_COUNT; i++) {
        cost->price[i] = isnan(summary->role_seconds[i]) ? 0.0 : summary->role_seconds[i];
    }
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        switch ((enum orc_check_id)c) {
        case ORC_CHECK_memory:
        case ORC_CHECK_races:
        case ORC_CHECK_invariants:
        case ORC_CHECK_curve:
            cost->inputs[c] = subject;
            break;
        case ORC_CHECK_repeat:
            cost->inputs[c] = subject | 1u << HAR_INPUT_repeat;
            break;
        case ORC_CHECK_resume:
            cost->inputs[c] = subject | 1u << HAR_INPUT_resumed;
            break;
        case ORC_CHECK_external: /* it is given all, and looks at what it likes */
            cost->inputs[c] = subject | 1u << HAR_INPUT_reference | 1u << HAR_INPUT_external;
            break;
        default:
            cost->inputs[c] = subject | 1u << HAR_INPUT_reference;
        }
    }
}

static void study_sets(const struct har_results *r, struct har_study *s)
{
    static const double shares[HAR_STUDY_GOALS] = {0.5, 0.8, 0.9, 0.95, 0.99};
    const uint32_t all = (UINT32_C(1) << ORC_CHECK_COUNT) - 1;
    set_costs(&r->summary, &s->cost);
    s->smallest = har_stat_cover_all(s->masks, s->count, all);
    for (int i = 0; i < HAR_STUDY_GOALS; i++) {
        struct har_study_goal *const g = &s->goals[i];
        g->share = shares[i];
        g->need = (size_t)ceil(shares[i] * (double)s->count);
        g->possible =
            s->count > 0 && har_stat_cover_reach(s->masks, s->count, all, g->need, &g->smallest) &&
            har_stat_cover_cheapest(s->masks, s->count, all, &s->cost, g->need, &g->cheapest);
        g->smallest_seconds = har_stat_cover_price(&s->cost, g->smallest);
        g->cheapest_seconds = har_stat_cover_price(&s->cost, g->cheapest);
    }
    s->roots = har_stat_subsume(s->masks, s->count, s->representative, s->root);
    for (size_t i = 0; i < s->count; i++) {
        s->roots_detected_by_curve += s->root[i] && (s->masks[i] >> ORC_CHECK_curve & 1) != 0;
    }
}

static void add_rate(struct har_study_rate *rate, const char *name, bool detected)
{
    rate->name = name;
    rate->n++;
    rate->detected += detected;
}

static void study_rates(struct har_study *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct har_result *const e = s->entries[i];
        const bool detected = e->outcome == HAR_OUTCOME_detected;
        add_rate(&s->families[e->family], mut_family_name(e->family), detected);
        for (int c = 0; c < MUT_CLASS_COUNT; c++) {
            const char *const name = mut_class_name((enum mut_class)c);
            if (strcmp(name, e->class_) == 0) {
                add_rate(&s->classes[c], name, detected);
            }
        }
    }
    for (int i = 0; i < MUT_FAMILY_COUNT; i++) {
        s->families[i].interval =
            har_stats_proportion(s->families[i].detected, s->families[i].n, confidence);
    }
    for (int i = 0; i < MUT_CLASS_COUNT; i++) {
        s->classes[i].interval =
            har_stats_proportion(s->classes[i].detected, s->classes[i].n, confidence);
    }
}

static struct har_study_dose *dose_of(const struct har_results *r, struct har_study *s,
                                      const struct har_result *e)
{
    for (size_t i = 0; i < s->dose_count; i++) {
        if (strcmp(s->doses[i].fault, e->fault) == 0) {
            return &s->doses[i];
        }
    }
    const struct mut_fault *const fault = har_catalogue_find(&r->catalogue, e->fault);
    struct har_study_dose *const d = &s->doses[s->dose_count++];
    d->fault = e->fault;
    d->unit = fault != NULL && fault->dose.unit != NULL ? fault->dose.unit : "";
    return d;
}

/* Every entry with a dose that reached its site, also where nothing was infected: a dose too small
 * to change a bit was tried and not detected. */
static bool study_doses(const struct har_results *r, struct har_study *s)
{
    s->doses = calloc(r->count + 1, sizeof *s->doses);
    if (s->doses == NULL) {
        return false;
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        if (!(e->dose > 0.0) || e->tried == 0) {
            continue;
        }
        struct har_study_dose *const d = dose_of(r, s, e);
        if (d->count < HAR_STUDY_DOSES_MAX) {
            d->points[d->count] = (struct har_dose_point){e->dose, e->detected_repeats, e->tried};
            d->loss_only[d->count++] =
                (struct har_dose_point){e->dose, e->check_fired[ORC_CHECK_loss_only], e->tried};
        }
    }
    for (size_t i = 0; i < s->dose_count; i++) {
        struct har_study_dose *const d = &s->doses[i];
        har_stat_dose(d->points, d->count, confidence, &d->fit);
        har_stat_dose(d->loss_only, d->count, confidence, &d->loss_only_fit);
    }
    return true;
}

bool har_study_blames_rightly(const char *class_, const char *stage)
{
    static const struct {
        const char *class_, *stages;
    } rows[] = {{"bytes", "text"},     {"ids", "tokens"},
                {"labels", "labels"},  {"activations", "activations"},
                {"loss", "loss"},      {"gradient", "gradients"},
                {"update", "updates"}, {"later", "state updates"},
                {"memory", "memory"},  {"order", "order races"},
                {"metric", "loss"}};
    const size_t length = strlen(stage);
    for (size_t i = 0; length > 0 && i < sizeof rows / sizeof rows[0]; i++) {
        const char *const at =
            strcmp(rows[i].class_, class_) == 0 ? strstr(rows[i].stages, stage) : NULL;
        if (at != NULL && (at[length] == '\0' || at[length] == ' ')) {
            return true;
        }
    }
    return false;
}

static void study_blame(struct har_study *s)
{
    struct har_study_blame *const b = &s->blame;
    for (size_t i = 0; i < s->count; i++) {
        const struct har_result *const e = s->entries[i];
        if (e->curve == NULL || e->curve[0] == '\0') {
            continue; /* a database of before blame was stored */
        }
        const bool right = har_study_blames_rightly(e->class_, e->blame);
        b->n++;
        b->right += right;
        for (int c = 0; c < MUT_CLASS_COUNT; c++) {
            const bool mine = strcmp(mut_class_name((enum mut_class)c), e->class_) == 0;
            b->by_class[c][0] += mine;
            b->by_class[c][1] += mine && right;
        }
    }
    b->interval = har_stats_proportion(b->right, b->n, confidence);
}

bool har_study_make(const struct har_results *r, struct har_study *out)
{
    memset(out, 0, sizeof *out);
    bool good = keep_counted(r, out) && study_check(out, -1, &out->any);
    for (int c = 0; good && c < ORC_CHECK_COUNT; c++) {
        good = study_check(out, c, &out->checks[c]);
    }
    /* Runs that stopped would count as not seen by whatever looks at all of them. */
    good = good && study_doses(r, out) && (r->cut > 0 || har_study_alarms_make(r, &out->alarms));
    if (!good) {
        har_study_fini(out);
        return false;
    }
    study_sets(r, out);
    study_rates(out);
    if (r->cut == 0) {
        study_blame(out);
    }
    return true;
}

void har_study_fini(struct har_study *s)
{
    har_stat_survival_fini(&s->any.curve);
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        har_stat_survival_fini(&s->checks[c].curve);
    }
    free(s->entries);
    free(s->masks);
    free(s->representative);
    free(s->root);
    free(s->doses);
    memset(s, 0, sizeof *s);
}
