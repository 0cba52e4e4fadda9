/* The seeded scheduler of the host back end: which stream goes on, and when the host does.
 * Called by dev_sched.c and through the back end's table; must not know what operations do. A
 * function of (program, seed) but for DEV_SCHED_THREADS, where the machine decides. */
#include "dev_fibers.h"
#include "dev_sched.h"
#include "eng_assert.h"

static uint64_t next_random(dev *d)
{
    uint64_t z = (d->random += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Uniform over 0 ... count - 1. */
static int draw(dev *d, int count)
{
    return (int)(next_random(d) % (uint64_t)count);
}

/* The tile of the new period at which the running stream loses its priority. Periods are about as
 * long as the one before. */
static void draw_change(dev *d)
{
    d->tiles_before = d->tiles_run;
    d->tiles_run = 0;
    d->change_at =
        d->depth > 0 && d->tiles_before > 0 ? 1 + next_random(d) % d->tiles_before : UINT64_MAX;
}

void dev_draw_priorities(dev *d)
{
    const int actors = d->stream_count + 1;
    for (int i = 0; i < actors; i++) {
        d->priority[i] = i;
    }
    for (int i = actors - 1; i > 0; i--) {
        const int j = draw(d, i + 1);
        const int kept = d->priority[i];
        d->priority[i] = d->priority[j];
        d->priority[j] = kept;
    }
    d->steps_since_draw = 0;
}

enum dev_status dev_policy_open(dev *d)
{
    static const int periods[] = {1, 3, 10, 0};
    enum { DEEP_ONE_IN = 4 };
    d->random = d->conf.seed;
    d->redraw_period = periods[draw(d, sizeof periods / sizeof *periods)];
    d->depth = d->conf.sched == DEV_SCHED_PCT && draw(d, DEEP_ONE_IN) == 0;
    d->change_at = UINT64_MAX;
    d->schedule_hash = 0xCBF29CE484222325u;
    switch (d->conf.sched) {
    case DEV_SCHED_AIMED:
        return dev_aim_open(d);
    case DEV_SCHED_THREADS:
        return dev_threads_open(d);
    default:
        return DEV_OK;
    }
}

void dev_policy_close(dev *d)
{
    dev_aim_close(d);
    dev_threads_close(d);
}

void dev_policy_step(dev *d)
{
    d->steps_since_draw++;
    if (d->redraw_period > 0 && d->steps_since_draw >= d->redraw_period) {
        dev_draw_priorities(d);
        draw_change(d);
    } else if (d->redraw_period == 0) {
        draw_change(d);
    }
}

/* The ready stream of highest priority above `floor`, 0 when there is none. */
static dev_stream most_urgent(const dev *d, int floor)
{
    dev_stream best = 0;
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        if (d->priority[s] > floor && dev_ready(d, s)) {
            best = s;
            floor = d->priority[s];
        }
    }
    return best;
}

/* Makes an actor the least urgent of all. */
static void demote(dev *d, int actor)
{
    for (int i = 0; i <= d->stream_count; i++) {
        d->priority[i] += d->priority[i] < d->priority[actor];
    }
    d->priority[actor] = 0;
}

static void run_by_priority(dev *d, dev_stream stream)
{
    dev_run_tile(d, stream);
    if (d->tiles_run == d->change_at) {
        demote(d, stream);
    }
}

/* One of the ready streams, each as likely, or 0: nobody is ready or, with_host, the host's turn.
 */
static dev_stream any_ready(dev *d, bool with_host)
{
    dev_stream ready[DEV_STREAMS_MAX + 1];
    int count = 0;
    if (with_host) {
        ready[count++] = 0;
    }
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        if (dev_ready(d, s)) {
            ready[count++] = s;
        }
    }
    return count > (with_host ? 1 : 0) ? ready[draw(d, count)] : 0;
}

/* The stream whose first operation is ready, not held, and was issued first; 0 when there is none.
 */
static dev_stream oldest_free(const dev *d)
{
    dev_stream best = 0;
    for (dev_stream s = 1; s <= d->stream_count; s++) {
        const struct dev_op *op = d->queue[s].head;
        if (dev_ready(d, s) && !dev_aim_holds(d, op) &&
            (best == 0 || op->order < d->queue[best].head->order)) {
            best = s;
        }
    }
    return best;
}

/* The stream whose next operation brings `stream` forward: itself, or one that it waits for. */
static dev_stream blocker_of(const dev *d, dev_stream stream)
{
    while (!dev_ready(d, stream)) {
        eng_assert(d->queue[stream].head != NULL);
        stream = d->queue[stream].head->u.wait.stream;
    }
    return stream;
}

void dev_policy_yield(dev *d)
{
    d->calls++;
    dev_stream s = 0;
    switch (d->conf.sched) {
    case DEV_SCHED_RANDOM:
        while ((s = any_ready(d, true)) != 0) {
            dev_run_tile(d, s);
        }
        break;
    case DEV_SCHED_PCT:
        while ((s = most_urgent(d, d->priority[DEV_HOST])) != 0) {
            run_by_priority(d, s);
        }
        break;
    case DEV_SCHED_AIMED:
        dev_aim_settle(d);
        while ((s = oldest_free(d)) != 0) {
            dev_run_tile(d, s);
        }
        break;
    default:
        break;
    }
}

/* Nothing is free: gives up on what holds back the operation the host waits for. */
static dev_stream let_go(dev *d, dev_stream stream)
{
    const dev_stream blocker = blocker_of(d, stream);
    dev_aim_release(d, d->queue[blocker].head);
    return blocker;
}

/* Under lazy a coin decides for each wait of the host: either only what is waited for, or streams
 * in a fresh order, which lets some run far ahead. */
static bool lazy_by_priority(dev *d)
{
    if (d->conf.sched != DEV_SCHED_LAZY || draw(d, 2) != 0) {
        return false;
    }
    dev_draw_priorities(d);
    return true;
}

/* Runs streams until the point is passed. */
static void bring_to(dev *d, struct dev_point point)
{
    const bool by_priority = d->conf.sched == DEV_SCHED_PCT || lazy_by_priority(d);
    while (!dev_passed(d, point)) {
        dev_stream s = 0;
        if (d->conf.sched == DEV_SCHED_RANDOM) {
            s = any_ready(d, false);
        } else if (d->conf.sched == DEV_SCHED_AIMED) {
            s = oldest_free(d);
            s = s != 0 ? s : let_go(d, point.stream);
        } else {
            s = by_priority ? most_urgent(d, -1) : blocker_of(d, point.stream);
        }
        eng_assert(s != 0);
        run_by_priority(d, s);
    }
}

void dev_policy_run_until(dev *d, struct dev_point point)
{
    d->calls++;
    dev_aim_settle(d);
    if (d->conf.sched == DEV_SCHED_THREADS) {
        dev_threads_wait(d, point);
    } else if (!dev_passed(d, point)) {
        bring_to(d, point);
    }
    dev_fibers_waited(d, point);
}

/* Operations are cut where something else can run in between. */
static void cut(dev *d, struct dev_op *op)
{
    const bool between =
        d->conf.sched == DEV_SCHED_RANDOM || (d->conf.sched == DEV_SCHED_PCT && d->depth > 0);
    if (between && op->kind != DEV_OP_WAIT) {
        op->tiles = 1 + draw(d, DEV_TILES_MAX);
    }
}

void dev_policy_issued(dev *d, dev_stream stream, struct dev_op *op)
{
    switch (d->conf.sched) {
    case DEV_SCHED_FIFO:
        d->calls++;
        dev_run_tile(d, stream);
        break;
    case DEV_SCHED_THREADS:
        dev_threads_wake(d);
        break;
    default:
        cut(d, op);
        dev_policy_yield(d);
        break;
    }
}
