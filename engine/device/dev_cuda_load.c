/* Loads the CUDA library at run time, so that a trainer starts, and starts quickly, where there is
 * none. Called by dev_cuda.c; must not know what is done with it. */
#include "dev_cuda_load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Path of `name` in the folder of the running program. */
static bool beside_program(const char *name, char *out, size_t bytes)
{
    const ssize_t length = readlink("/proc/self/exe", out, bytes - 1);
    if (length <= 0) {
        return false;
    }
    out[length] = '\0';
    char *const slash = strrchr(out, '/');
    if (slash == NULL || (size_t)(slash + 1 - out) + strlen(name) >= bytes) {
        return false;
    }
    memcpy(slash + 1, name, strlen(name) + 1);
    return true;
}

static void fail(struct dev_cuda_error *error, const char *path, const char *cause)
{
    snprintf(error->text, sizeof error->text, "%.120s: %.120s", path, cause);
}

const struct dev_cuda_driver *dev_cuda_load(const char *name, void **library,
                                            struct dev_cuda_error *error)
{
    char path[PATH_MAX];
    const char *const given = getenv("FAULTLINE_CUDA_LIBRARY");
    const bool is_given = given != NULL && given[0] != '\0';
    *library = NULL;
    if (!is_given && (!beside_program(name, path, sizeof path) || access(path, R_OK) != 0)) {
        fail(error, name, "not beside this program: it was built where no nvcc was found");
        return NULL;
    }
    void *const opened = dlopen(is_given ? given : path, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) {
        fail(error, name, dlerror());
        return NULL;
    }
    /* POSIX lets a function's address pass through void *; C has no cast for it. */
    dev_cuda_entry_fn *entry = NULL;
    void *const symbol = dlsym(opened, DEV_CUDA_ENTRY);
    memcpy(&entry, &symbol, sizeof entry);
    const struct dev_cuda_driver *const driver = entry != NULL ? entry() : NULL;
    if (driver == NULL || driver->version != DEV_CUDA_VERSION) {
        fail(error, is_given ? given : path, "no CUDA library of this version of Faultline");
        dlclose(opened);
        return NULL;
    }
    *library = opened;
    return driver;
}
