/* Methods of texts by name; `index` and `count` serve lists and tuples too.
 * Used by jinja_methods; must not know syntax. */
#pragma once

#include "jinja_value.h"

/* `a` holds `count` arguments; a table says how many a method takes. */
typedef struct jv eng_jinja_method(struct jmem *m, struct jv object, const struct jv *a,
                                   size_t count);

eng_jinja_method eng_jinja_m_capitalize;
eng_jinja_method eng_jinja_m_center;
eng_jinja_method eng_jinja_m_count;
eng_jinja_method eng_jinja_m_endswith;
eng_jinja_method eng_jinja_m_find;
eng_jinja_method eng_jinja_m_format;
eng_jinja_method eng_jinja_m_index;
eng_jinja_method eng_jinja_m_isalnum;
eng_jinja_method eng_jinja_m_isalpha;
eng_jinja_method eng_jinja_m_isascii;
eng_jinja_method eng_jinja_m_isdecimal;
eng_jinja_method eng_jinja_m_isdigit;
eng_jinja_method eng_jinja_m_islower;
eng_jinja_method eng_jinja_m_isnumeric;
eng_jinja_method eng_jinja_m_isspace;
eng_jinja_method eng_jinja_m_isupper;
eng_jinja_method eng_jinja_m_join;
eng_jinja_method eng_jinja_m_ljust;
eng_jinja_method eng_jinja_m_lower;
eng_jinja_method eng_jinja_m_lstrip;
eng_jinja_method eng_jinja_m_partition;
eng_jinja_method eng_jinja_m_removeprefix;
eng_jinja_method eng_jinja_m_removesuffix;
eng_jinja_method eng_jinja_m_replace;
eng_jinja_method eng_jinja_m_rfind;
eng_jinja_method eng_jinja_m_rindex;
eng_jinja_method eng_jinja_m_rjust;
eng_jinja_method eng_jinja_m_rpartition;
eng_jinja_method eng_jinja_m_rsplit;
eng_jinja_method eng_jinja_m_rstrip;
eng_jinja_method eng_jinja_m_split;
eng_jinja_method eng_jinja_m_splitlines;
eng_jinja_method eng_jinja_m_startswith;
eng_jinja_method eng_jinja_m_strip;
eng_jinja_method eng_jinja_m_swapcase;
eng_jinja_method eng_jinja_m_title;
eng_jinja_method eng_jinja_m_upper;
eng_jinja_method eng_jinja_m_zfill;
