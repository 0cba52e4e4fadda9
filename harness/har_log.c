/* A pipe into a file of bounded size.
 * Called by har_spawn.c and har_pool.c; must not know what a child is. */
#include "har_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A descriptor from 3 on, close-on-exec: where this process has no standard streams, open() may
 * give their numbers. */
static int move_up(int fd)
{
    const int moved = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    const int cause = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = cause;
    return moved;
}

enum har_status har_log_open(const char *path, struct har_log *out, struct har_error *error)
{
    int ends[2] = {-1, -1};
    const char *const target = path != NULL ? path : "/dev/null";
    memset(out, 0, sizeof *out);
    out->file_fd = move_up(open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (out->file_fd < 0) {
        out->file_fd = 0;
        return har_fail(error, HAR_EIO, "%s: %s", target, strerror(errno));
    }
    if (pipe2(ends, O_CLOEXEC) != 0 || (out->read_fd = move_up(ends[0])) < 0 ||
        (out->write_fd = move_up(ends[1])) < 0 || fcntl(out->read_fd, F_SETFL, O_NONBLOCK) != 0) {
        const int cause = errno;
        out->read_fd = out->read_fd > 0 ? out->read_fd : 0;
        out->write_fd = out->write_fd > 0 ? out->write_fd : 0;
        har_log_close(out);
        return har_fail(error, HAR_EIO, "no pipe for the log %s: %s", target, strerror(cause));
    }
    return HAR_OK;
}

static void close_one(int *fd)
{
    if (*fd > 0) {
        close(*fd);
    }
    *fd = 0;
}

void har_log_close_writer(struct har_log *log)
{
    close_one(&log->write_fd);
}

static void keep(struct har_log *log, const char *bytes, size_t count)
{
    size_t plain = HAR_LOG_BYTES_MAX - log->written;
    plain = plain < count ? plain : count;
    if (plain > 0) {
        (void)!write(log->file_fd, bytes, plain);
        log->written += plain;
    }
    for (size_t i = plain; i < count; i++) {
        log->tail[log->left_out++ % HAR_LOG_TAIL] = bytes[i];
    }
}

void har_log_drain(struct har_log *log)
{
    enum { BLOCK = 1 << 16, BLOCKS_MAX = 64 }; /* then others get their turn */
    char block[BLOCK];
    for (int i = 0; log->read_fd > 0 && i < BLOCKS_MAX; i++) {
        const ssize_t got = read(log->read_fd, block, sizeof block);
        if (got == 0) {
            close_one(&log->read_fd);
        }
        if (got <= 0) {
            break;
        }
        keep(log, block, (size_t)got);
    }
}

void har_log_close(struct har_log *log)
{
    har_log_close_writer(log);
    har_log_drain(log);
    if (log->file_fd > 0 && log->left_out > 0) {
        const size_t kept = log->left_out < HAR_LOG_TAIL ? log->left_out : HAR_LOG_TAIL;
        char text[HAR_LOG_TAIL + 64];
        size_t used = 0;
        if (log->left_out > kept) {
            used = (size_t)snprintf(text, sizeof text, "\n[%zu bytes left out]\n",
                                    log->left_out - kept);
        }
        for (size_t i = log->left_out - kept; i < log->left_out; i++) {
            text[used++] = log->tail[i % HAR_LOG_TAIL];
        }
        (void)!write(log->file_fd, text, used);
    }
    close_one(&log->read_fd);
    close_one(&log->file_fd);
}
