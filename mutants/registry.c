/* Turns the catalogue rows and the generated site list into tables.
 * Called by select.c and the harness; must not know who asks. */
#include "registry.h"

#include <string.h>

#include "catalogue.h"
#include "mut_sites.h"

#define EXPECT_KILL MUT_EXPECT_KILL, NULL
#define EXPECT_EQUIVALENT(reason) MUT_EXPECT_EQUIVALENT, reason
#define EXPECT_GAP(reason) MUT_EXPECT_GAP, reason
#define DOSE_NONE {NULL, 0.0f, 0.0f, 0.0f}
#define DOSE_DOSE(unit, smallest, usual, largest) {unit, smallest, usual, largest}

#define TABLE_ROW(site, name, number, family, class_, expect, dose, faulty, trigger, why, source)  \
    {number, #site "." #name, #site, MUT_FAMILY_##family, MUT_CLASS_##class_, EXPECT_##expect,     \
     DOSE_##dose, #faulty, trigger, why, source},

static const struct mut_fault fault_table[] = {
#define MUT_SITE_ROW_(site, file, line, healthy) FAULTS_##site(TABLE_ROW)
#include "mut_sites.inc"
#undef MUT_SITE_ROW_
};

static const struct mut_site_info site_table[] = {
#define MUT_SITE_ROW_(site, file, line, healthy) {#site, file, line, healthy},
#include "mut_sites.inc"
#undef MUT_SITE_ROW_
};

size_t mut_fault_count(void)
{
    return sizeof fault_table / sizeof fault_table[0];
}

const struct mut_fault *mut_fault_at(size_t index)
{
    return index < mut_fault_count() ? &fault_table[index] : NULL;
}

const struct mut_fault *mut_fault_find(const char *id)
{
    for (size_t i = 0; i < mut_fault_count(); i++) {
        if (strcmp(fault_table[i].id, id) == 0) {
            return &fault_table[i];
        }
    }
    return NULL;
}

/* A number used twice is a duplicate case label: the catalogue does not compile. */
#define NUMBER_CASE(site, name, number, ...)                                                       \
    case number:                                                                                   \
        return mut_fault_find(#site "." #name);

const struct mut_fault *mut_fault_by_number(uint32_t number)
{
    switch (number) {
#define MUT_SITE_ROW_(site, file, line, healthy) FAULTS_##site(NUMBER_CASE)
#include "mut_sites.inc"
#undef MUT_SITE_ROW_
    default:
        return NULL;
    }
}

size_t mut_site_count(void)
{
    return sizeof site_table / sizeof site_table[0];
}

const struct mut_site_info *mut_site_at(size_t index)
{
    return index < mut_site_count() ? &site_table[index] : NULL;
}

const struct mut_site_info *mut_site_find(const char *site)
{
    for (size_t i = 0; i < mut_site_count(); i++) {
        if (strcmp(site_table[i].site, site) == 0) {
            return &site_table[i];
        }
    }
    return NULL;
}

const char *mut_family_name(enum mut_family family)
{
    static const char *const names[] = {
#define MUT_ROW_(upper, lower) #lower,
        MUT_FAMILIES(MUT_ROW_)
#undef MUT_ROW_
    };
    return family < MUT_FAMILY_COUNT ? names[family] : "?";
}

const char *mut_class_name(enum mut_class class_)
{
    static const char *const names[] = {
#define MUT_ROW_(upper, lower) #lower,
        MUT_CLASSES(MUT_ROW_)
#undef MUT_ROW_
    };
    return class_ < MUT_CLASS_COUNT ? names[class_] : "?";
}

const char *mut_expect_name(enum mut_expect expect)
{
    static const char *const names[] = {"KILL", "EQUIVALENT", "GAP"};
    return names[expect];
}
