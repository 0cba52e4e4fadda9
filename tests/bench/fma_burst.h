/* Independent fused multiply-adds in registers: what achieved GFLOP/s are divided by. */
#pragma once

/* Floating-point operations of one step: a multiply and an add in each lane of each chain. */
enum { FMA_CHAINS = 12, FMA_LANES = 16, FMA_STEP_FLOP = 2 * FMA_CHAINS * FMA_LANES };

/* Runs `steps` steps on the calling thread. The value returned depends on all of them. */
float fma_burst(long steps);
