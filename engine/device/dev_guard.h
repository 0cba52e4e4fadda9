/* Guard mode: memory that nobody declared cannot be touched. Used by dev_host.c and dev_alloc.c;
 * must not know streams.
 *
 * Device memory is out of reach but for the pages of the spans of the operation at hand, and those
 * that it only reads cannot be written; pinned memory is in reach of the host, and of operations
 * that declare it. Each block lies on pages of its own, its end at the end of a page, so an overrun
 * is caught at its first byte. Whoever touches more ends the process with a sentence that names
 * both. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dev.h"

enum {
    DEV_GUARD_EXIT = 10,   /* exit status of the process */
    DEV_GUARD_STRETCH = 16 /* addresses per byte of budget: a page for each granule */
};

struct dev_op;

/* Takes device memory out of reach and sets the handler. One device at a time. */
enum dev_status dev_guard_open(dev *d);
void dev_guard_close(dev *d); /* nothing when it was not open */
/* Before and after an operation runs; nothing without guard mode. */
void dev_guard_enter(dev *d, const struct dev_op *op);
void dev_guard_leave(dev *d, const struct dev_op *op);
/* A block has been handed out: ends the process when it overlaps a live one in the heap, for its
 * pages would hide that. Nothing without guard mode. */
void dev_guard_handed_out(const dev *d, int block);
/* Where a block of `bytes` at `offset` of the heap lies behind the start of device memory. */
size_t dev_guard_offset(size_t offset, size_t bytes);
