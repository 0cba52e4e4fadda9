/* The faults of the trainer under test: those of the built-in registry, or what a trainer of the
 * user publishes by --faults --json (README). Used by plan, controls and reports; must not know how
 * a trainer is run. */
#pragma once

#include <stdint.h>

#include "har_status.h"
#include "registry.h"

/* {0} is the built-in registry. */
struct har_catalogue {
    struct mut_fault *faults;    /* owned; texts belong to published */
    struct mut_site_info *sites; /* owned; one each, file NULL = none was given */
    size_t count;
    uint64_t hash;            /* of the published text */
    struct json_t *published; /* NULL = the registry */
};

/* Reads what `name` published. Files of faults stand relative to `base` (a file; NULL = as they
 * are). HAR_EUSAGE names the fault and the cause. Released by har_catalogue_fini. */
HAR_CHECKED enum har_status har_catalogue_parse(const char *text, const char *base,
                                                const char *name, struct har_catalogue *out,
                                                struct har_error *error);
void har_catalogue_fini(struct har_catalogue *catalogue);
/* The text that parse reads back, files resolved; caller frees, NULL without memory and for the
 * registry. */
char *har_catalogue_text(const struct har_catalogue *catalogue);

size_t har_catalogue_count(const struct har_catalogue *catalogue);
const struct mut_fault *har_catalogue_at(const struct har_catalogue *catalogue, size_t index);
/* NULL when unknown. */
const struct mut_fault *har_catalogue_find(const struct har_catalogue *catalogue, const char *id);
/* Where a fault stands, NULL when that is not known or fault is NULL. */
const struct mut_site_info *har_catalogue_site(const struct har_catalogue *catalogue,
                                               const struct mut_fault *fault);
