/* Compares a device with the host, kernel by kernel: row programs (production, twin with nothing
 * armed, twin with each fault armed) and products. Run by check.sh and ctest. Prints one line for
 * each set; exit 0 = equal, 1 = some differ, 77 = no device here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dev_cuda_load.h"
#include "k_cases.h"
#include "registry.h"
#include "select.h"

#include "fault.h"

enum { SKIPPED = 77, STREAM = 1 };

/* What the row programs of k_cases run on: they know no context. */
static struct {
    const struct dev_cuda_driver *driver;
    dev_cuda_context *context;
    struct dev_cuda_memory memory;
    void *event;
    enum k_id kernel;
    bool twin;
} on;

static void require(int result, const struct dev_cuda_error *error)
{
    if (result != 0) {
        printf("FAILED %s\n", error->text);
        exit(1);
    }
}

static void finish(void)
{
    struct dev_cuda_error error;
    require(on.driver->event_record(on.context, on.event, STREAM, &error), &error);
    require(on.driver->event_sync(on.context, on.event, &error), &error);
}

static void run_on_device(const void *args, int row_begin, int row_end)
{
    struct dev_cuda_error error;
    const struct dev_cuda_launch launch = {
        .kernel = on.kernel,
        .twin = on.twin,
        .rows = row_end - row_begin,
        .args = args,
        .fault = {.selected = mut_selected, .dose = mut_dose, .step = mut_step}};
    if (row_begin != 0) {
        abort();
    }
    require(on.driver->launch(on.context, STREAM, &launch, &error), &error);
    finish();
}

static uint64_t device_hash(enum k_id id, int variant, bool twin)
{
    on.kernel = id;
    on.twin = twin;
    return k_case_run_in(id, variant, run_on_device, 1, on.memory.pinned).hash;
}

static uint64_t host_hash(enum k_id id, int variant, bool twin)
{
    const struct k_kernel *k = k_kernel_at(id);
    return k_case_run(id, variant, twin ? k->rows_twin : k->rows, 1).hash;
}

static int compare_programs(const char *set, bool twin)
{
    int compared = 0;
    int differ = 0;
    for (int id = 0; id < K_ID_COUNT; id++) {
        for (int v = 0; v < K_CASE_VARIANTS; v++) {
            compared++;
            if (device_hash((enum k_id)id, v, twin) != host_hash((enum k_id)id, v, false)) {
                differ++;
                printf("DIFFERS %s variant %d, %s\n", k_kernel_at((enum k_id)id)->name, v, set);
            }
        }
    }
    printf("%s: %d cases of %d programs, %d differ from the host\n", set, compared, K_ID_COUNT,
           differ);
    return differ;
}

/* A fault of lanes has no meaning on the host, and one that reads a neighbour's row may race there.
 */
static void compare_armed(void)
{
    int same = 0;
    int tried = 0;
    char error[MUT_ERROR_MAX];
    for (size_t i = 0; i < mut_fault_count(); i++) {
        const struct mut_fault *fault = mut_fault_at(i);
        const char *file = mut_site_find(fault->site)->file;
        if (strncmp(file, "kernels/", 8) != 0 || strcmp(fault->trigger, "lanes") == 0) {
            continue;
        }
        bool equal = mut_select(fault->id, error, sizeof error);
        for (int id = 0; equal && id < K_ID_COUNT; id++) {
            for (int v = 0;
                 v < K_CASE_VARIANTS && strcmp(k_kernel_at((enum k_id)id)->file, file) == 0; v++) {
                equal &= device_hash((enum k_id)id, v, true) == host_hash((enum k_id)id, v, true);
            }
        }
        tried++;
        same += equal;
        if (!equal) {
            printf("note: armed %s has other bits than on the host\n", fault->id);
        }
    }
    (void)mut_select("none", error, sizeof error);
    printf("armed twins: %d faults, %d with the host's bits\n", tried, same);
}

/* A product on the device, operands and result in pinned memory seen by both. */
struct product {
    int m, n, k;
    bool trans_a, trans_b, accumulate;
    int outer, inner;
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void fill_random(float *x, size_t count, uint64_t *state)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)(next_random(state) >> 40) / (float)(1 << 23) - 1.0f;
    }
}

struct tally {
    size_t elements, same, over; /* compared; with the host's bits; beyond the bound or no number */
    double worst;                /* largest error as a share of its bound */
};

/* Error bound of one element: k eps (|A| |B|) for each side, whatever the order of its sum (Higham,
 * Accuracy and Stability, 3.5). */
static void compare_product(const struct product *p, float *pool, struct tally *tally)
{
    const size_t problems = (size_t)p->outer * (size_t)p->inner;
    const size_t a_count = (size_t)p->m * (size_t)p->k;
    const size_t b_count = (size_t)p->k * (size_t)p->n;
    const size_t c_count = (size_t)p->m * (size_t)p->n;
    float *a = pool;
    float *b = a + a_count * problems;
    float *c = b + b_count * problems;
    float *host = malloc(3 * c_count * problems * sizeof *host);
    float *size = host + c_count * problems;
    void *workspace = aligned_alloc(64, (k_gemm_workspace_bytes() / 64 + 1) * 64);
    struct dev_cuda_error error;
    uint64_t state = (uint64_t)p->m * 31 + (uint64_t)p->k;
    fill_random(a, a_count * problems, &state);
    fill_random(b, b_count * problems, &state);
    fill_random(c, c_count * problems, &state);
    memcpy(host, c, c_count * problems * sizeof *c);
    struct k_gemm_args g = {.a = a,
                            .b = b,
                            .c = c,
                            .m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .lda = p->trans_a ? p->m : p->k,
                            .ldb = p->trans_b ? p->k : p->n,
                            .ldc = p->n,
                            .trans_a = p->trans_a,
                            .trans_b = p->trans_b,
                            .accumulate = p->accumulate,
                            .batch_outer = p->outer,
                            .batch_inner = p->inner,
                            .a_outer = a_count * (size_t)p->inner,
                            .a_inner = a_count,
                            .b_outer = b_count * (size_t)p->inner,
                            .b_inner = b_count,
                            .c_outer = c_count * (size_t)p->inner,
                            .c_inner = c_count};
    require(on.driver->gemm(on.context, STREAM, &g, &error), &error);
    finish();
    g.c = host;
    k_gemm_part(&g, 0, 1, workspace);
    /* |A| |B| + |C|, by the host's product */
    float *old = size + c_count * problems;
    for (size_t i = 0; i < (a_count + b_count) * problems; i++) {
        a[i] = fabsf(a[i]);
    }
    for (size_t i = 0; i < c_count * problems; i++) {
        old[i] = size[i] = p->accumulate ? 1.0f : 0.0f;
    }
    g.c = size;
    g.accumulate = true;
    k_gemm_part(&g, 0, 1, workspace);
    for (size_t i = 0; i < c_count * problems; i++) {
        const double bound = 2.0 * (p->k + 1) * ldexp(1.0, -24) * (double)size[i];
        const double ratio = fabs((double)c[i] - (double)host[i]) / bound;
        tally->worst = ratio > tally->worst ? ratio : tally->worst;
        tally->over += !(ratio <= 1.0);
        tally->same += memcmp(&c[i], &host[i], sizeof c[i]) == 0;
        tally->elements++;
    }
    free(workspace);
    free(host);
}

static int compare_products(const char *set, bool exact)
{
    static const struct product products[] = {
        {37, 45, 77, false, false, false, 1, 1}, {37, 45, 77, true, false, true, 1, 1},
        {37, 45, 77, false, true, false, 1, 1},  {128, 256, 64, true, true, true, 1, 1},
        {45, 45, 16, false, true, false, 3, 2},  {45, 16, 45, false, false, true, 2, 3},
        {256, 96, 300, true, false, false, 1, 4}};
    struct tally tally = {.worst = 0.0};
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        compare_product(&products[i], on.memory.pinned, &tally);
    }
    printf("%s: %zu elements, %zu with the host's bits, %zu beyond the bound, largest error %.3f "
           "of it\n",
           set, tally.elements, tally.same, tally.over, tally.worst);
    return (exact ? tally.same != tally.elements : tally.over > 0) || tally.elements == 0;
}

static int open_device(const char *name, bool exact, size_t sites)
{
    char device[128];
    struct dev_cuda_error error;
    void *library = NULL;
    const struct dev_cuda_request request = {
        .slab_bytes = 1 << 20, .pinned_bytes = 8 << 20, .sites = sites, .exact_products = exact};
    on.driver = dev_cuda_load(name, &library, &error);
    if (on.driver == NULL ||
        on.driver->open(&request, &on.context, &on.memory, device, sizeof device, &error) != 0) {
        printf("no device: %s\n", error.text);
        return SKIPPED;
    }
    printf("device: %s\n", device);
    require(on.driver->stream_open(on.context, STREAM, &error), &error);
    require(on.driver->event_create(on.context, &on.event, &error), &error);
    if (sites > 0) {
        int32_t *unwatched = malloc(sites * sizeof *unwatched);
        for (size_t i = 0; i < sites; i++) {
            unwatched[i] = MUT_SITE_UNWATCHED;
        }
        require(on.driver->watch(on.context, unwatched, &error), &error);
        free(unwatched);
    }
    return 0;
}

int main(void)
{
    char error[MUT_ERROR_MAX];
    if (!mut_select("none", error, sizeof error)) {
        return 1;
    }
    int bad = open_device("libfaultline-cuda.so", true, mut_site_count());
    if (bad != 0) {
        return bad;
    }
    bad += compare_programs("row programs", false);
    bad += compare_programs("twins, nothing armed", true);
    compare_armed();
    bad += compare_products("exact products", true);
    on.driver->close(on.context);
    if (open_device("libfaultline-cuda.so", false, 0) != 0) {
        return 1;
    }
    bad += compare_products("library products", false);
    on.driver->close(on.context);
    return bad == 0 ? 0 : 1;
}
