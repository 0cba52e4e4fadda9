/* Reads sources and finds the extent of a FAULT( in them.
 * Used by the report writers; must not know outcomes. */
#include "har_report_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_programs.h"
#include "har_text.h"

enum { SOURCE_BYTES_MAX = 1 << 20 };

char *har_source_read(const char *path)
{
    char *const ours = har_programs_source(path);
    char *const found = ours != NULL ? ours : strdup(path); /* a fault of the user's trainer */
    FILE *const file = found != NULL ? fopen(found, "rbe") : NULL;
    char *text = NULL;
    if (file != NULL) {
        text = calloc(SOURCE_BYTES_MAX + 1, 1);
        const size_t size = text != NULL ? fread(text, 1, SOURCE_BYTES_MAX + 1, file) : 0;
        if (size == 0 || size > SOURCE_BYTES_MAX || memchr(text, '\0', size) != NULL) {
            free(text);
            text = NULL;
        }
        fclose(file);
    }
    free(found);
    return text;
}

static const char *line_at(const char *text, int line)
{
    for (int i = 1; text != NULL && i < line; i++) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text;
}

/* One past the parenthesis that closes the one at `open`; NULL when it never closes. Sources under
 * test have no parenthesis in a string or comment inside a site. */
static const char *closing(const char *open)
{
    int depth = 0;
    for (const char *p = open; *p != '\0'; p++) {
        depth += (*p == '(') - (*p == ')');
        if (depth == 0) {
            return p + 1;
        }
    }
    return NULL;
}

void har_source_find(const char *text, const struct mut_site_info *site,
                     struct har_source_range *out)
{
    char start[160];
    const char *const line = line_at(text, site->line);
    const char *const line_end = line != NULL ? line + strcspn(line, "\n") : NULL;
    snprintf(start, sizeof start, "FAULT(%s,", site->site);
    const char *const at = line != NULL ? strstr(line, start) : NULL;
    const char *const end = at != NULL && at < line_end ? closing(at + strlen("FAULT")) : NULL;
    *out = (struct har_source_range){site->line, 1, site->line, 2};
    if (end == NULL) {
        return;
    }
    out->column = (int)(at - line) + 1;
    const char *last_line = line;
    for (const char *p = at; p < end; p++) {
        if (*p == '\n') {
            out->end_line++;
            last_line = p + 1;
        }
    }
    out->end_column = (int)(end - last_line) + 1;
}
