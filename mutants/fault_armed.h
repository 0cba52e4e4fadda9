/* The mutable build's meaning of FAULT. Included by fault.h alone.
 * State lives in select.c; the harness never links it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "mut_sites.h" /* generated: enum mut_site, one MUT_SITE_<site> per FAULT in the sources */

/* The armed fault of this process, 0 when healthy or before its first step. Written by mut_select()
 * and MUT_ENTER_STEP, read by every site. */
MUT_STATE_ uint32_t mut_selected;
/* Magnitude of the armed fault in the unit its row declares; 0 for faults without a dose. */
MUT_STATE_ float mut_dose;
/* Training step the running code belongs to; 0 during set-up. Device operations carry the step in
 * which they were enqueued. */
MUT_STATE_ int32_t mut_step;
/* 1 = record the first visit of this site (the armed site, or every site in a reach-map run). */
MUT_STATE_ uint8_t mut_watch[MUT_SITE_COUNT];
/* First step at which a watched site ran, -1 while it has not. */
MUT_STATE_ int32_t mut_first_step[MUT_SITE_COUNT];

MUT_INLINE_ void mut_here(enum mut_site site)
{
    if (mut_watch[site] != 0 && mut_first_step[site] < 0) {
        mut_first_step[site] = mut_step; /* same value from every lane: the race is benign */
    }
}

#define MUT_ARM_(site, name, number, family, class_, expect, dose, faulty, ...)                    \
    mut_selected == (number) ? (faulty) :

#define FAULT(site, healthy)                                                                       \
    ((__typeof__(healthy))(mut_here(MUT_SITE_##site), FAULTS_##site(MUT_ARM_)(healthy)))

/* Host code only: called when the loop enters a step and around each device operation. */
void mut_enter_step(int32_t step);
#define MUT_ENTER_STEP(step) mut_enter_step(step)
