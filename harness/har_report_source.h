/* Where a fault site stands in its source file, to the column.
 * Used by the report writers; must not know outcomes. */
#pragma once

#include "registry.h"

/* Lines and columns from 1; the end is one past the last character. */
struct har_source_range {
    int line, column, end_line, end_column;
};

/* Text of a file of the tree this program was built from; NULL when it is not there, is not UTF-8
 * or is larger than a source file has reason to be. Caller frees. */
char *har_source_read(const char *path);
/* The range of FAULT(site, ...) in the text; of the site's line alone, without columns, when the
 * text is another version and does not hold it there. */
void har_source_find(const char *text, const struct mut_site_info *site,
                     struct har_source_range *out);
