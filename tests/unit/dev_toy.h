/* A toy training pipeline on the device: four streams, double-buffered pinned input, statistics on
 * a side stream, a loss read back. Each of its waits can be left out. Used by the device tests. */
#pragma once

#include "dev.h"

/* Row programs of the tests, under numbers of the trainer's table. */
static const enum k_id TOY_FORWARD = (enum k_id)0;
static const enum k_id TOY_BACKWARD = (enum k_id)1;
static const enum k_id TOY_STATISTICS = (enum k_id)2;
static const enum k_id TOY_UPDATE = (enum k_id)3;
static const enum k_id TOY_COUNT_ROWS = (enum k_id)4; /* row i of out grows by i + 1 */

struct toy_args {
    float *w, *x, *act, *grad, *stat, *loss;
};
struct toy_count_args {
    int *out;
};

enum toy_omission {
    TOY_COMPLETE,
    TOY_NO_STAGE_WAIT,    /* the host refills a pinned buffer before its copy is done */
    TOY_NO_CONSUMED_WAIT, /* a copy overwrites input that is still read */
    TOY_NO_COPIED_WAIT,   /* compute does not wait for its input */
    TOY_NO_USED_ON,       /* a temporary is freed while the side stream reads it */
    TOY_NO_READ_WAIT,     /* the host reads the loss before its copy is done */
    TOY_NO_GRAD_WAIT,     /* the side stream does not wait for the gradient */
    TOY_OMISSIONS
};

enum { TOY_AIMS_MAX = 256 };

struct toy_result {
    enum dev_status status; /* first status that was not OK */
    char error[512];
    uint64_t numbers;  /* hash of all losses, weights and the statistic */
    uint64_t schedule; /* dev_schedule_hash */
    uint64_t races;
    size_t pairs;
    struct dev_race first;
    struct dev_aim aims[TOY_AIMS_MAX]; /* pairs an aimed run can force */
    size_t aim_count;
    struct dev_ledger ledger; /* before the final wait */
};

struct dev_conf toy_conf(enum dev_sched sched, uint64_t seed);
void toy_run(const struct dev_conf *conf, enum toy_omission omission, int steps,
             struct toy_result *out);

/* SplitMix64 for tests. */
uint64_t toy_random(uint64_t *state);
