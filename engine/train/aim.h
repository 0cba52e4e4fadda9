/* Finds what an aimed run aims at. Called by train_main; must not know how a step goes. */
#pragma once

#include "trainer.h"

/* Runs the program once with the same seeds and no trace, under fifo and, when that reports no
 * race, under lazy, and fills `aims` (room for DEV_AIMS_MAX) with the races found. A run that ends
 * early counts as far as it came: only usage and input errors are passed on. */
ENG_CHECKED enum eng_status eng_aim_find(const struct eng_recipe *recipe,
                                         const struct eng_train_options *options,
                                         struct dev_aim *aims, size_t *count,
                                         struct eng_error *error);
