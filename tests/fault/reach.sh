#!/usr/bin/env bash
# Every site of the catalogue runs in at least one recipe: a reach-map run of each, and a resumed one.
#   reach.sh BUILD RECIPE_FOLDER
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: reach.sh BUILD RECIPE_FOLDER" >&2; exit 1; }
build=$(readlink -f "$1")
recipes=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train=$build/engine/faultline-train
reach() { # recipe option...
    local recipe=$1
    shift
    "$train" --recipe "$recipe" --seed 1 --threads 1 --level full \
        --trace "$work/trace" --fault none:all --quiet "$@" || true # a refusal still says what it reached
    tail -n 1 "$work/trace" | grep -o '"reach":{[^}]*}' | grep -oE '"[a-z0-9_]+":-?[0-9]+' >>"$work/reach"
}
for recipe in "$recipes"/pico*.yaml; do
    case $recipe in *-long.yaml) continue ;; esac
    "$build/corpus/faultline-init" --recipe "$recipe" --seed 1 --out "$work/w.safetensors"
    reach "$recipe" --weights "$work/w.safetensors"
    reach "$recipe" --weights "$work/w.safetensors" --schedule lazy --driver tasks
    rm -rf "$work/checkpoints"
    reach "$recipe" --weights "$work/w.safetensors" --no-sync --checkpoint-dir "$work/checkpoints"
    for checkpoint in "$work"/checkpoints/step-8; do
        [ -d "$checkpoint" ] && reach "$recipe" --resume "$checkpoint"
    done
done
sites=$(grep -oE '^"[a-z0-9_]+"' "$work/reach" | sort -u)
reached=$(grep -vE ':-1$' "$work/reach" | grep -oE '^"[a-z0-9_]+"' | sort -u)
missing=$(comm -23 <(echo "$sites") <(echo "$reached"))
echo "reach: $(wc -l <<<"$sites") sites, $(wc -l <<<"$reached") reached in $(wc -l <"$work/reach") observations"
[ -z "$missing" ] || { echo "never reached:"; echo "$missing"; exit 1; }
[ "$(wc -l <<<"$sites")" -gt 50 ]
