/* The mutable build's meaning of FAULT. Included by fault.h alone.
 * State lives in select.c, or with a kernel's launch; the harness never links it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "catalogue.h"
#include "mut_sites.h" /* generated: enum mut_site, one MUT_SITE_<site> per FAULT in the sources */

#if defined(__CUDACC__)
#include "fault_cuda.h"
#else
#include "fault_host.h"
#endif

#define MUT_ARM_(site, name, number, family, class_, expect, dose, faulty, ...)                    \
    mut_selected == (number) ? (faulty):

#define FAULT(site, healthy)                                                                       \
    ((__typeof__(healthy))(mut_here(MUT_SITE_##site), FAULTS_##site(MUT_ARM_)(healthy)))

/* Host code only: called when the loop enters a step and around each device operation. */
void mut_enter_step(int32_t step);
#define MUT_ENTER_STEP(step) mut_enter_step(step)
