/* Case and number properties of characters that utf8proc does not give, at Python 3.11's Unicode
 * 14. Called by jinja_text; must not know strings. */
#pragma once

#include <stdbool.h>

/* The upper (0), lower (1) or title (2) form of a character: 1 to 3 code points, unused ones 0. */
void eng_jinja_case_point(unsigned c, int which, unsigned out[3]);
/* Python's str.isdigit() beyond decimals (category Nd). */
bool eng_jinja_is_digit(unsigned c);
/* Python's str.isnumeric() beyond digits. */
bool eng_jinja_is_numeric(unsigned c);
