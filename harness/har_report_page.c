/* Puts results, catalogue texts and losses as JSON into the page.
 * Called by har_report.c; must not know what the page does with them. */
#include "har_report_page.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "har_report_study.h"

/* The bundled page, see CMakeLists.txt: FAULTLINE_PAGE is its path, an empty file without npm. */
extern const char har_page_begin[];
extern const char har_page_end[];
__asm__(".pushsection .rodata\n"
        ".global har_page_begin\n.hidden har_page_begin\n"
        ".global har_page_end\n.hidden har_page_end\n"
        "har_page_begin:\n.incbin \"" FAULTLINE_PAGE "\"\nhar_page_end:\n.byte 0\n"
        ".popsection\n");

static const char place[] = "<!--FAULTLINE-DATA-->";

static size_t page_size(void)
{
    /* Through integers: the two symbols are the ends of one object that C does not know. */
    return (size_t)((uintptr_t)har_page_end - (uintptr_t)har_page_begin);
}

bool har_report_page_built(void)
{
    return page_size() > 0;
}

static json_t *details_json(const struct har_results *r, const struct har_result *e)
{
    const struct mut_fault *const fault = har_catalogue_find(&r->catalogue, e->fault);
    const struct mut_site_info *const site = har_catalogue_site(&r->catalogue, fault);
    json_t *const o = json_object();
    if (fault != NULL) {
        json_object_set_new(o, "faulty", json_string(fault->faulty));
        json_object_set_new(o, "why", json_string(fault->why));
        json_object_set_new(o, "source", har_report_text_or_null(fault->source));
        json_object_set_new(o, "trigger", har_report_text_or_null(fault->trigger));
        json_object_set_new(o, "expect_reason", har_report_text_or_null(fault->expect_reason));
        json_object_set_new(o, "unit", har_report_text_or_null(fault->dose.unit));
    }
    if (site != NULL) {
        json_object_set_new(o, "file", json_string(site->file));
        json_object_set_new(o, "line", json_integer(site->line));
        json_object_set_new(o, "healthy", json_string(site->healthy));
    }
    json_t *const curve = e->curve != NULL ? json_loads(e->curve, 0, NULL) : NULL;
    json_object_set_new(o, "curve", curve != NULL ? curve : json_null());
    json_object_set_new(o, "blame", har_report_text_or_null(e->blame));
    json_object_set_new(o, "blame_step", json_integer(e->blame_step));
    json_object_set_new(o, "blame_item", har_report_text_or_null(e->blame_item));
    return o;
}

static json_t *checks_json(void)
{
    json_t *const list = json_array();
    for (int c = 0; c < ORC_CHECK_COUNT; c++) {
        const enum orc_check_id id = (enum orc_check_id)c;
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b}", "name", orc_check_name(id), "text",
                                        orc_check_text(id), "calibrated", orc_check_is_bound(id)));
    }
    return list;
}

/* JSON inside a script element must not end it: "</" and "<!" only occur in strings, where a
 * solidus or an escape means the same. */
static void add_script_json(struct har_text *out, const char *json)
{
    const char *from = json;
    for (const char *p = strchr(json, '<'); p != NULL; p = strchr(p + 1, '<')) {
        har_text_add_bytes(out, from, (size_t)(p - from));
        har_text_add(out, "\\u003c");
        from = p + 1;
    }
    har_text_add(out, from);
}

static void add_member(json_t *root, const char *name, const struct har_text *text)
{
    json_object_set_new(root, name, json_loads(har_text_get(text), 0, NULL));
}

void har_report_page(const struct har_results *r, const struct har_study *study,
                     struct har_text *out)
{
    struct har_text results = {0};
    struct har_text mutants = {0};
    json_t *const root = json_object();
    json_t *const details = json_object();
    const char *const at = memmem(har_page_begin, page_size(), place, strlen(place));
    if (at == NULL) {
        json_decref(root);
        json_decref(details);
        return;
    }
    har_report_json(r, study, &results);
    har_report_stryker(r, study, &mutants);
    add_member(root, "results", &results);
    add_member(root, "mutation", &mutants);
    for (size_t i = 0; i < r->count; i++) {
        json_object_set_new(details, r->entries[i].id, details_json(r, &r->entries[i]));
    }
    json_object_set_new(root, "details", details);
    json_object_set_new(root, "checks", checks_json());
    char *const text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
    out->failed = out->failed || text == NULL || results.failed || mutants.failed;
    if (text != NULL) {
        har_text_add_bytes(out, har_page_begin, (size_t)(at - har_page_begin));
        add_script_json(out, text);
        const char *const rest = at + strlen(place);
        har_text_add_bytes(out, rest, page_size() - (size_t)(rest - har_page_begin));
    }
    free(text);
    json_decref(root);
    har_text_fini(&results);
    har_text_fini(&mutants);
}
