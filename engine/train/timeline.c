/* The timeline's lines. Called by the trainer's life; must not know the trace. */
#include "timeline.h"

#include <stdlib.h>

#include "linefile.h"
#include "textbuf.h"

struct eng_timeline {
    eng_linefile *file;
    struct eng_text line;
    enum eng_status status;
    struct eng_error error;
};

enum eng_status eng_timeline_open(const char *path, struct eng_timeline **out,
                                  struct eng_error *error)
{
    struct eng_timeline *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return eng_fail(error, ENG_EHOSTMEM, "timeline: host memory exhausted");
    }
    const enum eng_status status = eng_linefile_open(path, &t->file, error);
    if (status != ENG_OK) {
        free(t);
        return status;
    }
    *out = t;
    return ENG_OK;
}

static void member(struct eng_text *line, const char *key, const char *value)
{
    eng_text_puts(line, ",\"");
    eng_text_puts(line, key);
    eng_text_puts(line, "\":");
    eng_text_string(line, value);
}

void eng_timeline_moment(void *timeline, const struct dev_moment *m)
{
    struct eng_timeline *t = timeline;
    struct eng_text *l = &t->line;
    if (t->status != ENG_OK) {
        return;
    }
    eng_text_clear(l);
    eng_text_puts(l, "{\"kind\":");
    eng_text_string(l, m->kind == DEV_MOMENT_ISSUE ? "issue" : "run");
    eng_text_puts(l, ",\"op\":");
    eng_text_uint(l, m->op);
    member(l, "what", m->what);
    member(l, "where", m->where);
    member(l, "stream", m->stream);
    eng_text_puts(l, ",\"step\":");
    eng_text_int(l, m->step);
    eng_text_puts(l, "}");
    t->status = l->failed ? eng_fail(&t->error, ENG_EHOSTMEM, "timeline: host memory exhausted")
                          : eng_linefile_write(t->file, l->data, l->size, &t->error);
}

enum eng_status eng_timeline_status(const struct eng_timeline *t, struct eng_error *error)
{
    if (t == NULL || t->status == ENG_OK) {
        return ENG_OK;
    }
    *error = t->error;
    return t->status;
}

void eng_timeline_close(struct eng_timeline *t)
{
    if (t == NULL) {
        return;
    }
    eng_linefile_close(t->file, NULL);
    eng_text_fini(&t->line);
    free(t);
}
