/* Chains of device operations that stop at the first failure.
 * Called by the passes; must not know what they compute. */
#include "model_params.h"

/* The lines named are those of the passes. */
#undef eng_chain_malloc
#undef eng_chain_free
#undef eng_chain_copy
#undef eng_chain_gemm
#undef eng_chain_launch
#undef eng_chain_linear

static dev *device_of(const struct eng_chain *c)
{
    return dev_at(c->model->device, c->where != NULL ? c->where : "");
}

enum eng_status eng_model_device_status(const eng_model *model, enum dev_status status,
                                        struct eng_error *error)
{
    if (status == DEV_OK) {
        return ENG_OK;
    }
    const enum eng_status result = status == DEV_EOOM       ? ENG_EDEVICEMEM
                                   : status == DEV_EHOSTMEM ? ENG_EHOSTMEM
                                                            : ENG_EDEVICE;
    return eng_fail(error, result, "%s: %s", dev_status_text(status), dev_error(model->device));
}

float *eng_chain_malloc(struct eng_chain *c, size_t elements, const char *what)
{
    void *ptr = NULL;
    if (c->status == DEV_OK) {
        c->status = (dev_malloc)(device_of(c), c->stream, elements * sizeof(float), what, &ptr);
    }
    return (float *)ptr;
}

/* Frees also in a failed chain: what was allocated must go back. */
void eng_chain_free(struct eng_chain *c, float **ptr)
{
    if (*ptr != NULL) {
        const enum dev_status status = (dev_free)(device_of(c), *ptr);
        if (c->status == DEV_OK) {
            c->status = status;
        }
        *ptr = NULL;
    }
}

void eng_chain_copy(struct eng_chain *c, float *dst, const float *src, size_t elements,
                    const char *what)
{
    if (c->status == DEV_OK) {
        c->status = (dev_copy)(device_of(c), c->stream, dst, src, elements * sizeof(float), what);
    }
}

void eng_chain_gemm(struct eng_chain *c, const struct k_gemm_args *args, const char *what)
{
    if (c->status == DEV_OK) {
        c->status = (dev_gemm)(device_of(c), c->stream, args, what);
    }
}

void eng_chain_launch(struct eng_chain *c, enum k_id kernel, int rows, const void *args,
                      const struct dev_span *spans, size_t span_count, const char *what)
{
    if (c->status == DEV_OK) {
        c->status =
            (dev_launch)(device_of(c), c->stream, kernel, rows, args, spans, span_count, what);
    }
}

struct k_gemm_args eng_linear_product(const struct eng_model *m, float *y, const float *x,
                                      const float *weight, int out, int in)
{
    return (struct k_gemm_args){.a = x,
                                .b = weight,
                                .c = y,
                                .m = m->tokens,
                                .n = out,
                                .k = in,
                                .lda = in,
                                .ldb = in,
                                .ldc = out,
                                .trans_b = true,
                                .batch_outer = 1,
                                .batch_inner = 1};
}

void eng_chain_linear(struct eng_chain *c, float *y, const float *x, const float *weight, int out,
                      int in, bool accumulate, const char *what)
{
    struct k_gemm_args args = eng_linear_product(c->model, y, x, weight, out, in);
    args.accumulate = accumulate;
    eng_chain_gemm(c, &args, what);
}

const int32_t *eng_model_marks(enum k_id program, const int32_t *marks)
{
    return k_kernel_is_plain(program) ? marks : NULL;
}
