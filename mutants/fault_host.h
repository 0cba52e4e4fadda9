/* Fault state of host code. Included by fault_armed.h alone; select.c defines the variables. */
#pragma once

#include <stdint.h>

/* The armed fault of this process, 0 when healthy or before its first step. Written by mut_select()
 * and MUT_ENTER_STEP, read by every site. */
extern uint32_t mut_selected;
/* Magnitude of the armed fault in the unit its row declares; 0 for faults without a dose. */
extern float mut_dose;
/* Training step the running code belongs to; 0 during set-up. Device operations carry the step in
 * which they were enqueued. */
extern int32_t mut_step;
/* 1 = record the first visit of this site (the armed site, or every site in a reach-map run). */
extern uint8_t mut_watch[MUT_SITE_COUNT];
/* First step at which a watched site ran, -1 while it has not. */
extern int32_t mut_first_step[MUT_SITE_COUNT];

static inline void mut_here(enum mut_site site)
{
    if (mut_watch[site] != 0 && mut_first_step[site] < 0) {
        mut_first_step[site] = mut_step; /* same value from every lane: the race is benign */
    }
}
