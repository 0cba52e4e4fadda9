/* Selection and listing of the comparator's own faults.
 * Called by the harness and the calibration test; must not know what a fault does. */
#include "orc_fault.h"

#include <stdio.h>
#include <string.h>

#include "orc_trace.h"

/* The one writable global of this library: one process judges with one fault, or with none. */
uint32_t orc_fault_selected = 0;

static const struct {
    const char *id, *why;
    uint32_t number;
} rows[] = {
#define ORC_ROW_(site, name, number, faulty, why) {#site "." #name, why, number},
#define ORC_SITE_(site) ORC_FAULTS_##site(ORC_ROW_)
    ORC_FAULT_SITES(ORC_SITE_)
#undef ORC_SITE_
#undef ORC_ROW_
};

/* A number used twice does not compile. */
static inline void numbers_are_unique(uint32_t number)
{
    switch (number) {
#define ORC_ROW_(site, name, number, faulty, why) case number:
#define ORC_SITE_(site) ORC_FAULTS_##site(ORC_ROW_)
        ORC_FAULT_SITES(ORC_SITE_)
#undef ORC_SITE_
#undef ORC_ROW_
    default:
        break;
    }
}

enum orc_status orc_fault_select(const char *id, struct orc_error *error)
{
    if (id == NULL) {
        return orc_fail(ORC_EARG, error, "no fault named");
    }
    if (strcmp(id, "none") == 0) {
        orc_fault_selected = 0;
        return ORC_OK;
    }
    for (size_t i = 0; i < orc_fault_count(); i++) {
        char number[16];
        (void)snprintf(number, sizeof number, "0x%04X", rows[i].number);
        if (strcmp(id, rows[i].id) == 0 || strcmp(id, number) == 0) {
            numbers_are_unique(rows[i].number);
            orc_fault_selected = rows[i].number;
            return ORC_OK;
        }
    }
    return orc_fail(ORC_EARG, error, "\"%.100s\" is not a fault of the oracle", id);
}

size_t orc_fault_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const char *orc_fault_id(size_t index)
{
    return index < orc_fault_count() ? rows[index].id : NULL;
}

const char *orc_fault_why(size_t index)
{
    return index < orc_fault_count() ? rows[index].why : NULL;
}
