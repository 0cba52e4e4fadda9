/* The matrix product as a device computes it that may use TF32 unasked. For the fault site in
 * dev_host.c alone: the file is part of mutable builds only. */
#pragma once
#include "gemm.h"

/* Like k_gemm_part(), with both operands rounded to the 11 significant bits of TF32 (to nearest,
 * ties away from zero); sums stay fp32. Allocates copies of the operands and ends the process where
 * there is no memory. */
void dev_tf32_part(const struct k_gemm_args *args, int part, int parts, void *workspace);
