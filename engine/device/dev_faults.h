/* The armed fault as a back end needs it that runs kernels outside this process's memory. Used by
 * dev_cuda.c; two files, one for each kind of build; must not know devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fault_launch.h"
#include "kernel.h"

/* Name of the CUDA library that has the same kernels as this build. */
const char *dev_faults_library(void);
/* Fault sites of the build; 0 in production. */
size_t dev_faults_sites(void);
/* The reach record as it stands: MUT_SITE_UNWATCHED, MUT_SITE_NOT_REACHED or a step. */
int32_t dev_faults_first_step(size_t site);
/* A kernel on the device ran a watched site first in `step`. */
void dev_faults_reached(size_t site, int32_t step);
/* State of the step at hand, for a launch. */
struct mut_launch dev_faults_launch(void);
