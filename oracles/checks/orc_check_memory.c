/* Check memory: the subject's own ledger and events against rules that hold for any allocator.
 * Called through the table of checks; must not know the subject's allocator. No calibration. */
#include "orc_probe.h"

/* Steps at the start of a process in which pools and buffers are still being made. */
enum { WARM_UP_STEPS = 2 };
/* Steps in a row in which bytes waiting to be freed may reach a new maximum. Random schedules make
 * the backlog of a healthy run vary; four records in a row after two earlier values happen once in
 * 360 runs even if every step's backlog were an independent draw, and a bounded one runs out of
 * them. */
enum { BACKLOG_RECORDS = 4 };
/* The same for all memory taken from the heap, caches included. */
enum { POOL_RECORDS = 8 };
/* The same for host memory of one component. Caches that fill up grow too, but not in every step,
 * or not for so long. */
enum { HOST_RECORDS = 10, HOST_COMPONENTS_MAX = 16 };

/* Things that may need a buffer of their own the first time they happen. */
enum { FLAG_EVAL = 1, FLAG_CHECKPOINT = 2, FLAG_OOM = 4 };
static unsigned step_flags(const struct orc_step *step)
{
    unsigned flags = step->scalar[ORC_SCALAR_eval_loss].given ? FLAG_EVAL : 0;
    for (size_t i = 0; i < step->event_count; i++) {
        const enum orc_event_kind kind = step->events[i].kind;
        if (kind == ORC_EVENT_checkpoint) {
            flags |= FLAG_CHECKPOINT;
        } else if (kind != ORC_EVENT_other) {
            flags |= FLAG_OOM;
        }
    }
    return flags;
}

static double used(const struct orc_step *step)
{
    const double *l = step->ledger;
    return l[ORC_LEDGER_live] + l[ORC_LEDGER_cached] + l[ORC_LEDGER_pending] +
           l[ORC_LEDGER_deferred];
}

static double backlog(const struct orc_step *step)
{
    return step->ledger[ORC_LEDGER_pending] + step->ledger[ORC_LEDGER_deferred];
}

static void conservation(struct orc_probe *probe, const struct orc_step *step)
{
    const double *l = step->ledger;
    const double sum = used(step) + l[ORC_LEDGER_free];
    orc_probe_exact(probe, step->number, sum == l[ORC_LEDGER_budget],
                    "live + cached + pending + deferred + free = %.0f bytes, budget %.0f", sum,
                    l[ORC_LEDGER_budget]);
    orc_probe_exact(probe, step->number, l[ORC_LEDGER_frees] <= l[ORC_LEDGER_mallocs],
                    "%.0f frees of %.0f allocations", l[ORC_LEDGER_frees], l[ORC_LEDGER_mallocs]);
    orc_probe_exact(probe, step->number, l[ORC_LEDGER_peak] <= l[ORC_LEDGER_budget],
                    "peak %.0f bytes above the budget", l[ORC_LEDGER_peak]);
    orc_probe_exact(probe, step->number, l[ORC_LEDGER_spurious_ooms] == 0.0,
                    "%.0f out of memory although memory was there", l[ORC_LEDGER_spurious_ooms]);
}

/* How often in a row a quantity was above everything before. */
struct records {
    double max;
    int in_a_row;
};

static void take_record(struct records *r, double value, bool warm)
{
    const bool grown = value > r->max;
    r->in_a_row = grown && warm ? r->in_a_row + 1 : 0;
    r->max = grown ? value : r->max;
}

struct growth {
    double live_max;
    unsigned flags_seen;
    int excused_until;
    struct records backlog, pool, host[HOST_COMPONENTS_MAX];
};

/* Live bytes at the end of a step must not exceed all earlier ones, except in the first steps and
 * at (or right after) the first evaluation, checkpoint or answered OOM. Bytes waiting to be freed,
 * and the pool, depend on the schedule; they must not climb step after step. */
static void leaks(struct orc_probe *probe, const struct orc_step *step, int first, struct growth *g)
{
    const double live = step->ledger[ORC_LEDGER_live];
    const unsigned news = step_flags(step) & ~g->flags_seen;
    const bool warm = step->number >= first + WARM_UP_STEPS;
    if (news != 0 || !warm) {
        g->excused_until = step->number + (news != 0 ? 1 : 0);
    }
    g->flags_seen |= news;
    if (step->number > g->excused_until) {
        orc_probe_exact(probe, step->number, live <= g->live_max,
                        "leak: %.0f bytes live at the end of the step, never above %.0f before",
                        live, g->live_max);
    }
    g->live_max = live > g->live_max ? live : g->live_max;
    take_record(&g->backlog, backlog(step), warm);
    orc_probe_exact(probe, step->number, g->backlog.in_a_row < BACKLOG_RECORDS,
                    "more bytes wait to be freed in each of %d steps, now %.0f",
                    g->backlog.in_a_row, g->backlog.max);
    take_record(&g->pool, used(step), warm);
    orc_probe_exact(probe, step->number, g->pool.in_a_row < POOL_RECORDS,
                    "pool grew in each of %d steps, to %.0f bytes", g->pool.in_a_row, g->pool.max);
}

/* Memory of the host, by component in the order of the trace. */
static void host_leaks(struct orc_probe *probe, const struct orc_step *step, int first,
                       struct growth *g)
{
    const bool warm = step->number >= first + WARM_UP_STEPS;
    for (size_t i = 0; i < step->host_count && i < HOST_COMPONENTS_MAX; i++) {
        const struct orc_host *h = &step->host[i];
        take_record(&g->host[i], h->bytes, warm);
        orc_probe_exact(probe, step->number, g->host[i].in_a_row < HOST_RECORDS,
                        "leak: host memory of '%.40s' grew in each of %d steps, to %.0f bytes",
                        h->component, g->host[i].in_a_row, h->bytes);
    }
}

/* Every OOM is answered by a retry, or the run stops; nothing is skipped because of one. */
static void answered(struct orc_probe *probe, const orc_trace *trace, const struct orc_step *step,
                     double ooms_before)
{
    const bool counted = step->ledger_given && step->ledger[ORC_LEDGER_ooms] > ooms_before;
    bool open = counted, any = counted;
    const char *what = "";
    if (!step->events_given) {
        return;
    }
    for (size_t i = 0; i < step->event_count; i++) {
        const struct orc_event *event = &step->events[i];
        if (event->kind == ORC_EVENT_oom) {
            open = any = true;
            what = event->what;
        } else if (event->kind == ORC_EVENT_retry) {
            open = false;
        } else if (event->kind == ORC_EVENT_skip) {
            orc_probe_exact(probe, step->number, !any, "skipped (%.60s) after out of memory",
                            event->what);
        }
    }
    const bool went_on = step->number < orc_trace_last_step(trace) || trace->ended;
    orc_probe_exact(probe, step->number, !open || !went_on,
                    "out of memory (%.60s) without a retry, and the run went on", what);
}

/* What was trained on is what was supervised. */
static void accounted(struct orc_probe *probe, const struct orc_step *step)
{
    const struct orc_number supervised = step->scalar[ORC_SCALAR_supervised];
    if (step->trained.given && supervised.given) {
        orc_probe_exact(probe, step->number, step->trained.value == supervised.value,
                        "trained on %.0f of %.0f supervised tokens", step->trained.value,
                        supervised.value);
    }
}

void orc_check_run_memory(const struct orc_case *c, struct orc_probe *probe)
{
    const struct orc_range range = orc_range_of(c->subject);
    struct growth growth = {.excused_until = 0};
    double ooms = 0.0;
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *step = orc_trace_step(c->subject, s);
        if (step == NULL) {
            continue;
        }
        if (step->ledger_given) {
            conservation(probe, step);
            leaks(probe, step, range.first, &growth);
        }
        host_leaks(probe, step, range.first, &growth);
        answered(probe, c->subject, step, ooms);
        accounted(probe, step);
        ooms = step->ledger_given ? step->ledger[ORC_LEDGER_ooms] : ooms;
    }
    if (c->subject->stopped_inside && c->subject->unfinished.ledger_given) {
        conservation(probe, &c->subject->unfinished);
    }
}
