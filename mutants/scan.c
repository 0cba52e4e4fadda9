/* Build tool: finds every FAULT(site, healthy) in the given sources and writes the site list.
 * Called by CMake; must not know the catalogue.
 *
 *   mut_scan OUT_DIR TOP_DIR FILE...
 * writes OUT_DIR/mut_sites.h (enum mut_site) and OUT_DIR/mut_sites.inc (one MUT_SITE_ROW_ each),
 * and leaves a file alone when its text is unchanged. A site used twice is an error. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 1024, TEXT_MAX = 1 << 20 };

struct site {
    char name[80];
    char file[160];
    int line;
    char healthy[512];
};

static struct site sites[SITES_MAX];
static size_t site_count;

static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("mut_scan: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* Blanks out comments and keeps line ends, so that an example in a comment is no site. */
static void strip_comments(char *text)
{
    char quote = 0;
    for (char *p = text; *p != '\0'; p++) {
        if (quote != 0) {
            if (*p == '\\' && p[1] != '\0') {
                p++;
            } else if (*p == quote) {
                quote = 0;
            }
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        } else if (p[0] == '/' && p[1] == '/') {
            while (*p != '\n' && *p != '\0') {
                *p++ = ' ';
            }
            p--;
        } else if (p[0] == '/' && p[1] == '*') {
            while (*p != '\0' && !(p[0] == '*' && p[1] == '/')) {
                if (*p != '\n') {
                    *p = ' ';
                }
                p++;
            }
            if (*p != '\0') {
                p[0] = p[1] = ' ';
                p++;
            }
        }
    }
}

/* Copies the healthy expression with runs of white space as one blank; returns its end. */
static const char *copy_healthy(const char *p, char *out, size_t size)
{
    size_t used = 0;
    int depth = 0;
    for (; *p != '\0' && !(depth == 0 && *p == ')'); p++) {
        depth += *p == '(';
        depth -= *p == ')';
        const bool blank = isspace((unsigned char)*p) != 0;
        if (blank && (used == 0 || out[used - 1] == ' ')) {
            continue;
        }
        if (used + 1 < size) {
            out[used++] = blank ? ' ' : *p;
        }
    }
    out[used] = '\0';
    return p;
}

static void add_site(const char *file, const char *text, const char *at)
{
    struct site *s = &sites[site_count];
    if (++site_count > SITES_MAX) {
        die("more than %d sites", SITES_MAX);
    }
    s->line = 1;
    for (const char *p = text; p < at; p++) {
        s->line += *p == '\n';
    }
    const char *p = at + strlen("FAULT(");
    while (isspace((unsigned char)*p)) {
        p++;
    }
    size_t length = 0;
    while ((isalnum((unsigned char)*p) || *p == '_') && length + 1 < sizeof s->name) {
        s->name[length++] = *p++;
    }
    while (isspace((unsigned char)*p)) {
        p++;
    }
    if (length == 0 || *p != ',') {
        die("%s:%d: FAULT( needs a site name and a comma", file, s->line);
    }
    snprintf(s->file, sizeof s->file, "%s", file);
    copy_healthy(p + 1, s->healthy, sizeof s->healthy);
    for (size_t i = 0; i + 1 < site_count; i++) {
        if (strcmp(sites[i].name, s->name) == 0) {
            die("%s:%d: site '%s' stands already at %s:%d", file, s->line, s->name, sites[i].file,
                sites[i].line);
        }
    }
}

static void scan_file(const char *top, const char *path)
{
    static char text[TEXT_MAX];
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        die("%s: cannot be read", path);
    }
    const size_t length = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    if (length == sizeof text - 1) {
        die("%s: larger than %d bytes", path, TEXT_MAX - 1);
    }
    text[length] = '\0';
    strip_comments(text);
    const char *shown = path;
    if (strncmp(path, top, strlen(top)) == 0) {
        shown += strlen(top) + 1;
    }
    for (const char *p = text; (p = strstr(p, "FAULT(")) != NULL; p++) {
        const bool word = p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (!word) {
            add_site(shown, text, p);
        }
    }
}

static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s != '\0'; s++) {
        if (*s == '"' || *s == '\\') {
            fputc('\\', f);
        }
        fputc(*s, f);
    }
    fputc('"', f);
}

/* Moves the new text over the old only when they differ, so that nothing is rebuilt in vain. */
static void replace_if_changed(const char *fresh, const char *target)
{
    FILE *a = fopen(fresh, "rb");
    FILE *b = fopen(target, "rb");
    bool same = a != NULL && b != NULL;
    for (int c = 0; same && c != EOF;) {
        c = getc(a);
        same = c == getc(b);
    }
    if (a != NULL) {
        fclose(a);
    }
    if (b != NULL) {
        fclose(b);
    }
    if (same ? remove(fresh) != 0 : rename(fresh, target) != 0) {
        die("%s: cannot be written", target);
    }
}

static void write_lists(const char *out_dir)
{
    char target[2][512];
    char fresh[2][520];
    FILE *f[2];
    const char *const names[2] = {"mut_sites.h", "mut_sites.inc"};
    for (int i = 0; i < 2; i++) {
        snprintf(target[i], sizeof target[i], "%s/%s", out_dir, names[i]);
        snprintf(fresh[i], sizeof fresh[i], "%s.new", target[i]);
        f[i] = fopen(fresh[i], "wb");
        if (f[i] == NULL) {
            die("%s: cannot be written", fresh[i]);
        }
    }
    fputs(
        "/* Generated by mut_scan from the FAULT( occurrences. */\n#pragma once\nenum mut_site {\n",
        f[0]);
    for (size_t i = 0; i < site_count; i++) {
        fprintf(f[0], "    MUT_SITE_%s,\n", sites[i].name);
        fprintf(f[1], "MUT_SITE_ROW_(%s, \"%s\", %d, ", sites[i].name, sites[i].file,
                sites[i].line);
        put_string(f[1], sites[i].healthy);
        fputs(")\n", f[1]);
    }
    fputs("    MUT_SITE_COUNT\n};\n", f[0]);
    for (int i = 0; i < 2; i++) {
        if (fclose(f[i]) != 0) {
            die("%s: cannot be written", fresh[i]);
        }
        replace_if_changed(fresh[i], target[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        die("usage: mut_scan OUT_DIR TOP_DIR FILE...");
    }
    for (int i = 3; i < argc; i++) {
        scan_file(argv[2], argv[i]);
    }
    write_lists(argv[1]);
    return 0;
}
