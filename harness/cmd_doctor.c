/* faultline doctor: is this installation fit to run a campaign? */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "har_cmd.h"
#include "har_control.h"
#include "har_provenance.h"
#include "har_run.h"

static const char default_recipe[] = "corpus/recipes/pico.yaml";

struct findings {
    json_t *list;
    bool json;
    enum har_status worst;
};

static void report(struct findings *f, const char *what, enum har_status status, const char *detail)
{
    json_t *const o = json_object();
    json_object_set_new(o, "check", json_string(what));
    json_object_set_new(o, "passed", json_boolean(status == HAR_OK));
    json_object_set_new(o, "detail", json_string(detail));
    json_array_append_new(f->list, o);
    if (!f->json) {
        printf("%-6s %-22s %s\n", status == HAR_OK ? "ok" : "FAILED", what, detail);
    }
    f->worst = har_status_worse(f->worst, status);
}

/* Runs a short command of the installation; its last line is the detail. */
static void try_command(struct har_lab *lab, struct findings *f, const char *what,
                        const char *const *words, struct har_error *error)
{
    struct har_command command = {.timeout_s = 60.0};
    struct har_exit end = {0};
    char log[4096];
    char line[512];
    for (size_t i = 0; words[i] != NULL; i++) {
        har_args_add(&command.args, words[i]);
    }
    snprintf(log, sizeof log, "%s/doctor.log", lab->out);
    command.log_path = strdup(log);
    enum har_status status = har_pool_run_one(&lab->pool, &command, &end, error);
    if (status != HAR_OK) {
        report(f, what, status, error->text);
        return;
    }
    har_lab_last_line(log, line, sizeof line);
    report(f, what, end.end == HAR_END_done ? HAR_OK : HAR_EUSAGE, line);
}

static void check_disk(const char *dir, struct findings *f)
{
    enum { NEEDED_MIB = 512 };
    struct statvfs facts;
    char text[128];
    if (statvfs(dir, &facts) != 0) {
        report(f, "disk space", HAR_EIO, "cannot be found out");
        return;
    }
    const unsigned long long mib = (unsigned long long)facts.f_bavail * facts.f_frsize >> 20;
    snprintf(text, sizeof text, "%llu MiB free at %s, at least %d wanted", mib, dir, NEEDED_MIB);
    report(f, "disk space", mib >= NEEDED_MIB ? HAR_OK : HAR_EIO, text);
}

static void check_controls(struct har_lab *lab, struct findings *f)
{
    struct har_error error = {{0}};
    char text[160];
    enum har_status status = har_run_plan(lab, true, &error);
    if (status == HAR_OK) {
        status = har_control_identity(lab, &error);
    }
    snprintf(text, sizeof text, "%zu sites, %zu faults: unarmed equals production bit for bit",
             mut_site_count(), mut_fault_count());
    report(f, "controls", status, status == HAR_OK ? text : error.text);
}

static void check_all(struct har_lab *lab, struct findings *f, bool plan_only)
{
    struct har_error error = {{0}};
    const char *const recipe = lab->benches[0].recipe.path;
    const char *const plan[] = {lab->programs.train, "--recipe", recipe, "--plan", NULL};
    const char *const train[] = {lab->programs.train, "--version", NULL};
    const char *const production[] = {lab->programs.train_production, "--version", NULL};
    const char *const modules[] = {lab->programs.python, "-c",
                                   "import sys, jinja2, regex; print('Python', "
                                   "sys.version.split()[0], 'jinja2', jinja2.__version__)",
                                   NULL};
    try_command(lab, f, "memory plan", plan, &error);
    if (plan_only) {
        return;
    }
    char cpu[256];
    char text[400];
    har_provenance_cpu(cpu, sizeof cpu);
    snprintf(text, sizeof text, "%s, %d cores, compiler %s", cpu, har_pool_cores(), HAR_COMPILER);
    report(f, "machine", HAR_OK, text);
    try_command(lab, f, "trainer", train, &error);
    try_command(lab, f, "production trainer", production, &error);
    try_command(lab, f, "python modules", modules, &error);
    check_disk(lab->out, f);
    check_controls(lab, f);
}

enum har_status har_cmd_doctor(const struct har_options *options, struct har_error *error)
{
    struct har_lab lab;
    struct findings findings = {.list = json_array(), .json = options->json};
    const char *const temporary = getenv("TMPDIR");
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/faultline-doctor-XXXXXX", temporary != NULL ? temporary : "/tmp");
    if (mkdtemp(dir) == NULL) {
        json_decref(findings.list);
        return har_fail(error, HAR_EIO, "%s: cannot be made", dir);
    }
    enum har_status status = har_lab_open_recipe(options, default_recipe, dir, &lab, error);
    if (status == HAR_OK) {
        report(&findings, "programs", HAR_OK, lab.programs.train);
        check_all(&lab, &findings, options->recipe != NULL);
        har_lab_close(&lab);
    } else {
        report(&findings, "programs", status, error->text);
        error->text[0] = '\0';
    }
    if (options->json) {
        json_dumpf(findings.list, stdout, JSON_INDENT(1));
        fputc('\n', stdout);
    }
    json_decref(findings.list);
    char *const slash = strrchr(dir, '/');
    *slash = '\0';
    char root[4096];
    snprintf(root, sizeof root, "%s", dir);
    *slash = '/';
    har_lab_remove(root, dir);
    return findings.worst;
}
