/* The engine's ordering calls by source line, and leaving one of them out. For the wait sweep of
 * the tests: called by dev_events.c; must not know what the calls do. */
#include <string.h>

#include "dev_internal.h"

bool dev_site_omitted(dev *d, const char *verb)
{
    struct dev_sites *all = &d->sites;
    if (!d->conf.list_sites) {
        return false;
    }
    int i = 0;
    while (i < all->count &&
           (strcmp(all->items[i].where, d->where) != 0 || strcmp(all->items[i].verb, verb) != 0)) {
        i++;
    }
    if (i == DEV_SITES_MAX) {
        return false;
    }
    if (i == all->count) {
        all->items[all->count++] = (struct dev_site){.where = d->where, .verb = verb};
    }
    all->items[i].calls++;
    return i + 1 == d->conf.omit_site;
}

const struct dev_site *dev_sites(const dev *d, int *count)
{
    *count = d->sites.count;
    return d->sites.items;
}
