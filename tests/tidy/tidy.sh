#!/usr/bin/env bash
# Rules of the tree that a compiler does not check. Prints each violation as file:line: rule.
#   tidy.sh TOP          checks the sources that git knows
set -uo pipefail
cd "${1:?usage: tidy.sh TOP}"
found=0
checked=0
bad() { printf '%s\n' "$*"; found=$((found + 1)); }

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cu')
[ ${#sources[@]} -gt 20 ] || { echo "tidy: found only ${#sources[@]} sources"; exit 1; }

declare -A home # header name -> its path
for file in "${sources[@]}"; do
    name=${file##*/}
    [ -n "${home[$name]:-}" ] && bad "$file:1: file name stands twice, also ${home[$name]}"
    home[$name]=$file
done

# Which folders a folder's files may include from.
allowed() { # from to
    case $1:$2 in
    mutants/*:mutants/* | corpus/*:corpus/* | tests/*:*) true ;;
    kernels/*:kernels/* | kernels/*:mutants/fault.h | kernels/*:mutants/select.h) true ;;
    engine/*:engine/* | engine/*:kernels/* | engine/*:mutants/*) true ;;
    oracles/reference/*:oracles/reference/* | oracles/checks/*:oracles/checks/*) true ;;
    harness/*:harness/* | harness/*:oracles/checks/orc_check.h | harness/*:mutants/registry.h) true ;;
    *) false ;;
    esac
}
for file in "${sources[@]}"; do
    while IFS=: read -r line text; do
        header=$(sed -E 's/.*"([^"]+)".*/\1/' <<<"$text")
        target=${home[${header##*/}]:-}
        [ -z "$target" ] && continue
        checked=$((checked + 1))
        allowed "$file" "$target" || bad "$file:$line: may not include $target"
    done < <(grep -nE '^ *# *include +"' "$file")
done
[ "$checked" -gt 50 ] || bad "tidy:0: only $checked includes were checked"

# Shape of files and functions.
for file in "${sources[@]}"; do
    lines=$(wc -l <"$file")
    case $file in
    *.h)
        grep -q '^#pragma once' "$file" || bad "$file:1: header without #pragma once"
        [ "$lines" -le 300 ] || bad "$file:$lines: header longer than 300 lines"
        ;;
    *) [ "$lines" -le 600 ] || bad "$file:$lines: longer than 600 lines" ;;
    esac
    head -n 1 "$file" | grep -q '^/\*' || bad "$file:1: does not open with what it is"
    case $file in tests/*) continue ;; esac
    awk -v file="$file" '
        /^\{/ { start = NR }
        /^\}/ { if (start && NR - start > 70) printf "%s:%d: function of %d lines\n", file, start, NR - start; start = 0 }
        /^ *# *if/ { if (++conditions > 1) printf "%s:%d: second #if\n", file, NR }
        { if (gsub(/(^|[^A-Z_a-z])FAULT\(/, "&") > 1 && !/^#define/) printf "%s:%d: two FAULT in one line\n", file, NR }
        length($0) > 100 { printf "%s:%d: longer than 100 columns\n", file, NR }' "$file" >/tmp/tidy.$$
    while read -r violation; do bad "$violation"; done </tmp/tidy.$$
done
rm -f /tmp/tidy.$$

# Every catalogue list has a site, in the source file of the same name.
for def in mutants/*.def; do
    base=$(basename "$def" .def)
    while read -r site; do
        grep -rlE "FAULT\($site\b" kernels engine --include="$base.*" | grep -q . ||
            bad "$def:1: FAULTS_$site has no site in a source named $base"
    done < <(sed -nE 's/^#define FAULTS_([a-z0-9_]+)\(M\).*/\1/p' "$def")
done

# Each folder's README tours its files.
for file in "${sources[@]}"; do
    folder=${file%/*}
    case $folder in tests/* | kernels/*/* | harness/web*) continue ;; esac
    [ -f "$folder/README.md" ] || { bad "$folder:0: has no README.md"; continue; }
    stem=${file##*/}
    stem=${stem%.*}
    grep -q -- "$stem" "$folder/README.md" || bad "$folder/README.md:1: does not mention $stem"
done

# Words and flags that must not appear.
while IFS= read -r hit; do bad "$hit"; done < <(git grep -nIE \
    '\b(TODO|FIXME|XXX)\b|-ffast-math|-Ofast' -- '*.c' '*.h' '*.cu' '*.txt' '*.cmake' \
    ':!tests/tidy' ':!tests/bench' | cut -c1-150)

echo "tidy: ${#sources[@]} sources, $checked includes, $found violations"
[ "$found" -eq 0 ]
