/* fsync by path. Called as eng_sync.h says. */
#include "eng_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum eng_status eng_sync(const char *path, struct eng_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    /* EINVAL: a file system that has no such thing, as some have not for folders. */
    const bool synced = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    const int cause = errno;
    if (fd >= 0) {
        close(fd);
    }
    return synced ? ENG_OK : eng_fail(error, ENG_EIO, "%s: %s", path, strerror(cause));
}
