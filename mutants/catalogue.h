/* All rows of the catalogue. One .def per source file that holds sites, same base name.
 *
 * A row, in the list of its site:
 *
 *   M(site, name, number, FAMILY, CLASS, EXPECT, DOSE, faulty expression, trigger, why, source)
 *
 * - number: stable, never reused; high byte = file, low byte counts up. A duplicate does not
 *   compile.
 * - FAMILY: TEMPLATE TOKENIZER MASK DATA LOSS NUMERICS OPTIMIZER SCHEDULE STREAM ALLOCATOR HOST
 *   CHECKPOINT PRECISION
 * - CLASS: where it first shows: BYTES IDS LABELS ACTIVATIONS LOSS GRADIENT UPDATE LATER MEMORY
 *   ORDER METRIC
 * - EXPECT: KILL | EQUIVALENT("reason") | GAP("reason")
 * - DOSE: NONE | DOSE("unit", smallest, usual, largest); the expression reads mut_dose
 * - trigger: feature names (corpus/RECIPE.md) the recipe must have, blank separated; "" = none
 * - why: what goes wrong, one sentence
 * - source: public report the row imitates, "" when there is none */
#pragma once

#include "mut_defs.h" /* generated: includes every mutants/<file>.def */
