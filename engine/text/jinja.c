/* Parsing and rendering, put together.
 * Called by template; must not know roles, recipes or tokens. */
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

#include "jinja_run.h"
#include "text_utf8.h"

enum { PARSE_BYTES_MAX = 64 << 20, SOURCE_BYTES_MAX = 4 << 20 };

const struct eng_jinja_limits eng_jinja_usual_limits = {.memory_bytes = (size_t)256 << 20,
                                                        .output_bytes = (size_t)64 << 20,
                                                        .steps = 100000000,
                                                        .milliseconds = 10000};

static enum eng_status report(const struct jmem *m, const char *name, struct eng_error *error)
{
    return eng_fail(error, ENG_EINPUT, "%.200s:%u:%u: %s", name, m->line, m->column, m->cause);
}

static bool is_utf8(const char *source, size_t size)
{
    for (size_t at = 0, n = 0; at < size; at += n) {
        n = eng_utf8_length(source + at, size - at);
        if (n == 0) {
            return false;
        }
    }
    return true;
}

enum eng_status eng_jinja_parse(const char *name, const char *source, size_t size, eng_jinja **out,
                                struct eng_error *error)
{
    if (size > SOURCE_BYTES_MAX) {
        return eng_fail(error, ENG_EINPUT, "%s: a template of more than %d bytes", name,
                        SOURCE_BYTES_MAX);
    }
    if (!is_utf8(source, size)) {
        return eng_fail(error, ENG_EINPUT, "%s: not UTF-8", name);
    }
    eng_jinja *const t = calloc(1, sizeof *t);
    if (t == NULL || !eng_jinja_mem_init(&t->mem) || (t->name = strdup(name)) == NULL) {
        eng_jinja_destroy(t);
        return eng_fail(error, ENG_EHOSTMEM, "%s: no memory for a template", name);
    }
    t->mem.used_max = PARSE_BYTES_MAX;
    t->mem.output_max = SOURCE_BYTES_MAX;
    t->mem.steps_max = UINT64_MAX;
    struct jparser p = {.template = t, .mem = &t->mem};
    eng_jinja_lex(&p, source, size);
    if (!t->mem.failed) {
        eng_jinja_parse_template(&p);
    }
    if (!t->mem.failed) {
        eng_jinja_resolve(&p);
    }
    if (t->mem.failed) {
        const enum eng_status status = report(&t->mem, name, error);
        eng_jinja_destroy(t);
        return status;
    }
    *out = t;
    return ENG_OK;
}

void eng_jinja_destroy(eng_jinja *template)
{
    if (template == NULL) {
        return;
    }
    eng_jinja_mem_fini(&template->mem);
    free(template->name);
    free(template);
}

bool eng_jinja_has_generation(const eng_jinja *template)
{
    return template->has_generation;
}

bool eng_jinja_reads(const eng_jinja *template, const char *name)
{
    for (size_t i = 0; i < template->global_count; i++) {
        if (jv_is(template->globals[i].name, name, strlen(name))) {
            return true;
        }
    }
    return false;
}

bool eng_jinja_trims(const eng_jinja *template)
{
    return template->trims;
}

enum eng_status eng_jinja_init(struct eng_jinja_renderer *renderer,
                               const struct eng_jinja_limits *limits, struct eng_error *error)
{
    renderer->limits = *limits;
    renderer->count = 0;
    renderer->clock = 0;
    if (!eng_jinja_mem_init(&renderer->mem)) {
        return eng_fail(error, ENG_EHOSTMEM, "no memory to render templates");
    }
    renderer->mem.used_max = limits->memory_bytes;
    renderer->mem.output_max = limits->output_bytes;
    renderer->mem.steps_max = limits->steps;
    renderer->mem.now_ms = limits->now_ms;
    return ENG_OK;
}

void eng_jinja_fini(struct eng_jinja_renderer *renderer)
{
    eng_jinja_mem_fini(&renderer->mem);
    renderer->count = 0;
}

void eng_jinja_begin(struct eng_jinja_renderer *renderer)
{
    eng_jinja_mem_reset(&renderer->mem);
    renderer->count = 0;
}

void eng_jinja_variable(struct eng_jinja_renderer *renderer, const char *name, struct jv value)
{
    if (renderer->count == sizeof renderer->names / sizeof renderer->names[0]) {
        eng_jinja_fail(&renderer->mem, "too many variables");
        return;
    }
    renderer->names[renderer->count] = eng_jinja_literal(name);
    renderer->values[renderer->count++] = value;
}

/* The value of a name that the template does not set. */
static struct jv global_value(const struct eng_jinja_renderer *renderer, struct jv name)
{
    for (size_t i = renderer->count; i > 0; i--) {
        if (jv_is(name, renderer->names[i - 1].as.s, renderer->names[i - 1].size)) {
            return renderer->values[i - 1];
        }
    }
    const unsigned function = eng_jinja_function_find(name);
    return function == 0 ? jv_missing() : (struct jv){.type = J_FUNCTION, .id = (uint16_t)function};
}

enum eng_status eng_jinja_render(struct eng_jinja_renderer *renderer, const eng_jinja *template,
                                 const struct jbuf **out, struct eng_error *error)
{
    struct jmem *const m = &renderer->mem;
    struct jactivation root = {
        .slots = eng_jinja_array(m, (size_t) template->slots + 1, sizeof *root.slots)};
    struct jinja_render_state r = {
        .m = m, .template = template, .activation = &root, .clock = renderer->clock};
    m->deadline_ms = m->now_ms == NULL ? 0 : m->now_ms() + renderer->limits.milliseconds;
    r.globals = eng_jinja_array(m, template->global_count + 1, sizeof *r.globals);
    if (!m->failed) {
        memset(root.slots, 0, ((size_t) template->slots + 1) * sizeof *root.slots);
        for (size_t i = 0; i < template->global_count; i++) {
            r.globals[i] = global_value(renderer, template->globals[i].name);
        }
        r.out = eng_jinja_open(m);
        for (size_t i = 0; i < template->frame.load_count; i++) {
            const struct jload *const load = &template->frame.loads[i];
            root.slots[load->slot] =
                load->kind == JL_GLOBAL ? r.globals[load->global] : jv_missing();
        }
        eng_jinja_run(&r, template->items, template->count);
    }
    if (m->failed) {
        return report(m, template->name, error);
    }
    *out = r.out;
    return ENG_OK;
}
