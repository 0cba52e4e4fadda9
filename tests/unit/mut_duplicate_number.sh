#!/usr/bin/env bash
# A catalogue in which two rows carry one number must be refused by the compiler, the real one accepted.
set -euo pipefail
compiler=$1 mutants=$2 generated=$3
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp "$mutants"/*.def "$mutants"/*.h "$mutants"/registry.c "$generated"/* "$copy"
compile() { "$compiler" -std=gnu11 -I"$copy" -fsyntax-only "$copy/registry.c" 2>"$copy/errors"; }
compile || { cat "$copy/errors"; echo "the real catalogue does not compile"; exit 1; }
grep -q 0x3101 "$copy/model_forward.def"
sed -i s/0x3101/0x3102/ "$copy/model_forward.def"
if compile; then echo "a duplicate number compiled"; exit 1; fi
grep -qi 'duplicate case' "$copy/errors"
