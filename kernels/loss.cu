/* Cross entropy with its gradient in place, and the sum of a step's losses. Launched by the model;
 * must not know why a label is ignored. */
#include "loss.h"

#include "row.h"

ROW_KERNEL(xent, 256)
{
    const int vocab = a->vocab;
    const int label = FAULT(xent_label, a->labels[row]);
    const bool train = a->inv_count > 0.0f;
    float *ROW_RESTRICT x = a->logits + (int64_t)row * vocab;
    if (label == K_LABEL_IGNORED) {
        ROW_ONE {
            a->nll[row] = 0.0f;
        }
        if (FAULT(xent_clear, train)) {
            ROW_FOR(i, vocab) {
                x[i] = 0.0f;
            }
        }
        return;
    }
    const float at_label = x[label]; /* read before the reduction below, where all lanes meet */
    float largest;
    float sum;
    ROW_MAX(largest, i, vocab, x[i]);
    if (train) {
        ROW_SUM(sum, i, vocab, x[i] = row_exp(x[i] - largest));
    } else {
        ROW_SUM(sum, i, vocab, row_exp(x[i] - largest));
    }
    const float nll = row_log(sum) + (largest - at_label);
    ROW_ONE {
        a->nll[row] = nll;
    }
    if (train) {
        const float seed = FAULT(xent_seed, a->inv_count);
        const float inverse = seed / sum;
        ROW_FOR(i, vocab) {
            x[i] *= inverse;
        }
        FAULT(xent_barrier, ROW_SYNC()); /* another lane wrote x[label] */
        ROW_ONE {
            x[label] = FAULT(xent_onehot, x[label] - seed);
        }
    }
}

ROW_KERNEL(loss_sum, 256)
{
    const float *ROW_RESTRICT nll = a->nll;
    float sum;
    ROW_SUM(sum, i, a->count, nll[i]);
    ROW_ONE {
        a->out[0] = FAULT(loss_add, a->accumulate != 0) ? a->out[0] + sum : sum;
    }
}
