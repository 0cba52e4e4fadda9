/* Operations held back until another one has run: a reported race, forced the wrong way round.
 * Called by dev_sched.c and dev_policy.c; must not know what operations do. */
#include <stdlib.h>
#include <string.h>

#include "dev_sched.h"

static int by_held(const void *a, const void *b)
{
    const struct dev_aim *x = a;
    const struct dev_aim *y = b;
    return x->held != y->held ? (x->held > y->held) - (x->held < y->held)
                              : (x->until > y->until) - (x->until < y->until);
}

enum dev_status dev_aim_open(dev *d)
{
    struct dev_aiming *a = &d->aiming;
    if (d->conf.aim_count > DEV_AIMS_MAX) {
        return DEV_EARG;
    }
    if (d->conf.aim_count == 0) {
        return DEV_OK;
    }
    a->aims = malloc(d->conf.aim_count * sizeof *a->aims);
    if (a->aims == NULL) {
        return DEV_EHOSTMEM;
    }
    memcpy(a->aims, d->conf.aims, d->conf.aim_count * sizeof *a->aims);
    qsort(a->aims, d->conf.aim_count, sizeof *a->aims, by_held);
    a->count = a->left = d->conf.aim_count;
    return DEV_OK;
}

void dev_aim_close(dev *d)
{
    free(d->aiming.aims);
    d->aiming.aims = NULL;
    d->aiming.count = d->aiming.left = 0;
}

/* Index of the first aim that holds `operation`, or of the one behind. */
static size_t first_of(const struct dev_aiming *a, uint64_t operation)
{
    size_t low = 0;
    size_t high = a->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (a->aims[middle].held < operation) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool dev_aim_holds(const dev *d, const struct dev_op *op)
{
    const struct dev_aiming *a = &d->aiming;
    if (a->left == 0 || op->kind == DEV_OP_WAIT) {
        return false;
    }
    for (size_t i = first_of(a, op->id); i < a->count && a->aims[i].held == op->id; i++) {
        if (a->aims[i].until != 0) {
            return true;
        }
    }
    return false;
}

void dev_aim_release(dev *d, const struct dev_op *op)
{
    struct dev_aiming *a = &d->aiming;
    for (size_t i = first_of(a, op->id); i < a->count && a->aims[i].held == op->id; i++) {
        a->left -= a->aims[i].until != 0;
        a->aims[i].until = 0;
    }
}

void dev_aim_ran(dev *d, uint64_t operation)
{
    struct dev_aiming *a = &d->aiming;
    for (size_t i = 0; a->left > 0 && operation != 0 && i < a->count; i++) {
        if (a->aims[i].until == operation) {
            a->aims[i].until = 0;
            a->left--;
        }
    }
}

void dev_aim_settle(dev *d)
{
    const uint64_t touched = d->aiming.touching;
    if (touched != 0) {
        d->aiming.touching = 0;
        dev_aim_ran(d, touched);
    }
}
