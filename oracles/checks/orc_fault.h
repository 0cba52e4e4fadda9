/* ORC_FAULT(site, healthy): faults of the oracle itself, for its own calibration test.
 * Used by the comparator's sources; a deliberate twin of mutants/fault.h, which must not be shared:
 * the judge does not stand on the mechanism of the judged. Always compiled in, one comparison a
 * site.
 *
 * A row in orc_faults.def: M(site, name, number, faulty expression, why). Numbers are from 0xF000,
 * stable and never reused. Sites are not nested and hold no comma outside parentheses. */
#pragma once

#include <stdint.h>

#include "orc_faults.def"

/* The armed fault of this process, 0 = none. Written by orc_fault_select() alone. */
extern uint32_t orc_fault_selected;

#define ORC_FAULT_ARM_(site, name, number, faulty, why) orc_fault_selected == (number) ? (faulty):

#define ORC_FAULT(site, healthy) ((__typeof__(healthy))(ORC_FAULTS_##site(ORC_FAULT_ARM_)(healthy)))
