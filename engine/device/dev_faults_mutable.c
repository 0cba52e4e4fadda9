/* The armed fault of a mutable build. See dev_faults.h. */
#include "dev_faults.h"
#include "fault.h"

const char *dev_faults_library(void)
{
    return "libfaultline-cuda.so";
}

size_t dev_faults_sites(void)
{
    return MUT_SITE_COUNT;
}

int32_t dev_faults_first_step(size_t site)
{
    return mut_watch[site] == 0 ? (int32_t)MUT_SITE_UNWATCHED : mut_first_step[site];
}

void dev_faults_reached(size_t site, int32_t step)
{
    if (mut_watch[site] != 0 && (mut_first_step[site] < 0 || step < mut_first_step[site])) {
        mut_first_step[site] = step;
    }
}

struct mut_launch dev_faults_launch(void)
{
    return (struct mut_launch){.selected = mut_selected, .dose = mut_dose, .step = mut_step};
}
