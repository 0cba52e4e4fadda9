#!/usr/bin/env bash
# Rules of the tree that a compiler does not check. Prints each violation as file:line: rule.
#   tidy.sh TOP          checks the sources that git knows
set -uo pipefail
tidy=$(dirname "$(readlink -f "$0")")
cd "${1:?usage: tidy.sh TOP}" || exit 1
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cu' 'mutants/*.def')
awk -f "$tidy/tidy.awk" "${files[@]}"
shape=$?

# Words and flags that must not appear.
git grep -nIE '\b(TODO|FIXME|XXX)\b|-ffast-math|-Ofast' -- '*.c' '*.h' '*.cu' '*.txt' '*.cmake' \
    ':!tests/tidy' ':!tests/bench' | cut -c1-150 | grep . && exit 1
exit "$shape"
