/* Fault state of a mutable build: parsing --fault, the step clock, the reach record.
 * Called by the trainer; must not know the engine. */
#include "select.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "registry.h"

uint32_t mut_selected;
float mut_dose;
int32_t mut_step;
uint8_t mut_watch[MUT_SITE_COUNT];
int32_t mut_first_step[MUT_SITE_COUNT];

static struct {
    const struct mut_fault *fault;
    int32_t from_step;
    float dose;
    char twin_file[128]; /* "" = none, "all" = every file */
} armed;

static void watch_reset(void)
{
    for (size_t i = 0; i < MUT_SITE_COUNT; i++) {
        mut_watch[i] = 0;
        mut_first_step[i] = -1;
    }
}

static bool parse_twin(const char *file, char *error, size_t error_size)
{
    if (strcmp(file, "all") == 0) {
        memset(mut_watch, 1, sizeof mut_watch);
        snprintf(armed.twin_file, sizeof armed.twin_file, "all");
        return true;
    }
    bool found = false;
    for (size_t i = 0; i < mut_site_count(); i++) {
        if (strcmp(mut_site_at(i)->file, file) == 0) {
            mut_watch[i] = 1;
            found = true;
        }
    }
    if (!found) {
        snprintf(error, error_size, "no fault site in a file named '%s'", file);
        return false;
    }
    snprintf(armed.twin_file, sizeof armed.twin_file, "%s", file);
    return true;
}

/* Reads "[:dose][@step]" behind the id. */
static bool parse_suffix(const char *text, char *error, size_t error_size)
{
    char *end = (char *)text;
    if (*text == ':') {
        const struct mut_dose_range *range = &armed.fault->dose;
        errno = 0;
        armed.dose = strtof(text + 1, &end);
        if (range->unit == NULL) {
            snprintf(error, error_size, "fault '%s' takes no dose", armed.fault->id);
            return false;
        }
        if (end == text + 1 || errno != 0 ||
            !(armed.dose >= range->smallest && armed.dose <= range->largest)) {
            snprintf(error, error_size, "dose of '%s' must lie in [%g, %g] %s", armed.fault->id,
                     (double)range->smallest, (double)range->largest, range->unit);
            return false;
        }
    }
    if (*end == '@') {
        const char *digits = end + 1;
        const long step = strtol(digits, &end, 10);
        if (end == digits || step < 1 || step > INT32_MAX) {
            snprintf(error, error_size, "step behind '@' must be a whole number from 1");
            return false;
        }
        armed.from_step = (int32_t)step;
    }
    if (*end != '\0') {
        snprintf(error, error_size, "cannot read '%s' behind fault '%s'", end, armed.fault->id);
        return false;
    }
    return true;
}

bool mut_select(const char *spec, char *error, size_t error_size)
{
    watch_reset();
    memset(&armed, 0, sizeof armed);
    mut_selected = 0;
    mut_dose = 0.0f;
    mut_step = 0;
    if (strcmp(spec, "none") == 0) {
        return true;
    }
    if (strncmp(spec, "none:", 5) == 0) {
        return parse_twin(spec + 5, error, error_size);
    }
    char id[128];
    const size_t length = strcspn(spec, ":@");
    if (length >= sizeof id) {
        snprintf(error, error_size, "fault name is too long");
        return false;
    }
    memcpy(id, spec, length);
    id[length] = '\0';
    armed.fault = mut_fault_find(id);
    if (armed.fault == NULL) {
        snprintf(error, error_size, "unknown fault '%s' (faultline list shows all)", id);
        return false;
    }
    armed.dose = armed.fault->dose.usual;
    if (!parse_suffix(spec + length, error, error_size)) {
        return false;
    }
    const struct mut_site_info *site = mut_site_find(armed.fault->site);
    mut_watch[site - mut_site_at(0)] = 1;
    snprintf(armed.twin_file, sizeof armed.twin_file, "%s", site->file);
    mut_dose = armed.dose;
    mut_enter_step(0);
    return true;
}

void mut_enter_step(int32_t step)
{
    mut_step = step;
    mut_selected = armed.fault != NULL && step >= armed.from_step ? armed.fault->number : 0;
}

bool mut_twin_wanted(const char *file)
{
    return strcmp(armed.twin_file, "all") == 0 || strcmp(armed.twin_file, file) == 0;
}

int mut_reached_step(size_t site_index)
{
    return site_index < MUT_SITE_COUNT ? mut_first_step[site_index] : -1;
}

unsigned mut_armed_number(void)
{
    return armed.fault == NULL ? 0 : armed.fault->number;
}

float mut_armed_dose(void)
{
    return armed.dose;
}

int mut_armed_from_step(void)
{
    return armed.from_step;
}

bool mut_armed_too_early(void)
{
    if (armed.fault == NULL || armed.from_step == 0) {
        return false;
    }
    return mut_reached_step((size_t)(mut_site_find(armed.fault->site) - mut_site_at(0))) == 0;
}
