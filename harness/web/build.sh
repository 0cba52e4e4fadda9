#!/usr/bin/env bash
# Bundles the page of report.html into OUT/page.html. Never fails a build: without npm or the network
# it says so, leaves an empty page, and the program writes all reports but report.html.
#   build.sh WEB_SOURCES OUT ON|OFF
set -uo pipefail
source=${1:?usage: build.sh WEB_SOURCES OUT ON|OFF}
out=${2:?usage: build.sh WEB_SOURCES OUT ON|OFF}
mkdir -p "$out"
without() {
    printf 'harness/web: %s: report.html will not be written, all other reports will (remove %s to try again)\n' \
        "$*" "$out/page.html" >&2
    : >"$out/page.html"
    exit 0
}
[ "${3:-ON}" = ON ] || without "FL_WEB is off"
command -v npm >/dev/null && command -v node >/dev/null || without "npm is not installed"
cp "$source"/package.json "$source"/package-lock.json "$out"/ || exit 1
if ! cmp -s "$out/package-lock.json" "$out/node_modules/.installed-lock.json"; then
    (cd "$out" && timeout 300 npm ci --omit=dev --no-audit --no-fund >npm.log 2>&1) ||
        without "npm ci failed ($(grep -m1 -E 'npm (error|ERR!)' "$out/npm.log" || echo "see $out/npm.log"))"
    cp "$out/package-lock.json" "$out/node_modules/.installed-lock.json"
fi
# A mistake in our own sources is a build error.
node "$source/bundle.mjs" "$source" "$out"
