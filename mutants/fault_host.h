/* Storage words of the fault state for host code. A CUDA twin would name __device__ here. */
#pragma once
#define MUT_STATE_ extern
#define MUT_INLINE_ static inline
