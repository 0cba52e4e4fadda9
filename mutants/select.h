/* Arms one fault for the life of this process. Called once by the trainer's main; must not know how
 * the choice was made. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MUT_ERROR_MAX 256

/* Purpose: parse and arm `spec`, the text of --fault:
 *     id[:dose][@step]   arm a fault, with its usual dose unless given, from a step on
 *     none               nothing armed, every kernel runs its production twin
 *     none:FILE          nothing armed, FILE's mutable twin runs
 *     none:all           nothing armed, every twin runs and keeps the reach map
 *
 * Returns false with a sentence in `error` (error_size bytes, MUT_ERROR_MAX are enough) on an
 * unknown id or file, a dose out of range or for a fault without one, a bad step. */
bool mut_select(const char *spec, char *error, size_t error_size);

/* Whether the mutable twin of a source file must run: the file of the armed fault, or the one named
 * by none:FILE. `file` is a path from the top of the tree. */
bool mut_twin_wanted(const char *file);

/* First step at which a site ran, -1 if it was not watched or has not run. */
int mut_reached_step(size_t site_index);
/* Number of the armed fault, 0 when none; unlike mut_selected this does not wait for @step. */
unsigned mut_armed_number(void);
/* Magnitude and first step as armed. */
float mut_armed_dose(void);
int mut_armed_from_step(void);
/* True when @step was given for a site that ran during set-up: the choice makes no sense. */
bool mut_armed_too_early(void);
