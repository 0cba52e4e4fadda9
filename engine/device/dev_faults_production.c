/* A build without faults. See dev_faults.h. */
#include "dev_faults.h"

const char *dev_faults_library(void)
{
    return "libfaultline-cuda-production.so";
}

size_t dev_faults_sites(void)
{
    return 0;
}

int32_t dev_faults_first_step(size_t site)
{
    (void)site;
    return MUT_SITE_UNWATCHED;
}

void dev_faults_reached(size_t site, int32_t step)
{
    (void)site;
    (void)step;
}

struct mut_launch dev_faults_launch(void)
{
    return (struct mut_launch){.selected = 0};
}
