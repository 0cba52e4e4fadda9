#!/bin/sh
# k_no_fault_symbols.sh LIBRARY: passes when the library has symbols and none of them begins with mut_.
symbols=$(nm "$1") || exit 1
count=$(printf '%s\n' "$symbols" | grep -c ' T k_')
if [ "$count" -eq 0 ]; then
    echo "$1: no program found"
    exit 1
fi
if printf '%s\n' "$symbols" | grep ' mut_'; then
    echo "$1: holds fault symbols"
    exit 1
fi
