#!/usr/bin/env bash
# faultline fuzz: with fuzzers that only pretend, every way in which one can end; with real ones, where this build has them, two
# faults that must be noticed.
#   command.sh BUILD
set -euo pipefail
build=$(readlink -f "${1:?usage: command.sh BUILD}")
faultline=$build/harness/faultline
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { printf 'command.sh: %s\n' "$*" >&2; exit 1; }

expect() { # exit code, words in the output, command...
    local code=$1 words=$2 got=0
    shift 2
    "$@" >"$work/said" 2>&1 || got=$?
    [ "$got" = "$code" ] || { cat "$work/said" >&2; fail "exit code $got instead of $code: $*"; }
    grep -q -- "$words" "$work/said" || { cat "$work/said" >&2; fail "does not say '$words': $*"; }
}

# A fuzzer that ends as FAKE says, but healthy where nothing is armed (or HEALTHY says otherwise).
pretend() { # file
    cat >"$1" <<'FAKE'
#!/usr/bin/env bash
case $FAULTLINE_FAULT in
none | none:all) how=${HEALTHY:-quiet} ;;
*) how=${FAKE:-found} ;;
esac
echo "fuzz: armed $FAULTLINE_FAULT"; echo "fuzz: judges bpe_*"
[ "$FAULTLINE_FAULT" = none:all ] && { echo "fuzz: reached bpe_merge_order"; exit 0; }
stats="stat::number_of_executed_units: 40"
case $how in
quiet) echo "fuzz: reached bpe_merge_order"; echo "$stats" ;;
unreached) echo "$stats" ;;
found) echo "fuzz: reached bpe_merge_order"; echo "/x/fuzz_bpe.c:1: does not hold: a == b"; echo "$stats"; exit 77 ;;
unproven) echo "/x/fuzz_bpe.c:1: does not hold: a == b"; echo "$stats"; exit 77 ;;
crash) echo "SUMMARY: AddressSanitizer: heap-use-after-free"; echo "$stats"; exit 1 ;;
hang) echo "ERROR: libFuzzer: timeout after 20 seconds"; echo "$stats"; exit 70 ;;
refuse) echo "fuzz: FAULTLINE_FAULT=x: unknown fault 'x'"; exit 2 ;;
slow) sleep 1; echo "$stats" ;;
esac
FAKE
    chmod +x "$1"
}

mkdir "$work/bin"
pretend "$work/bin/fuzz_bpe"
export FAULTLINE_FUZZERS=$work/bin
fault=bpe_merge_order.last_first
run() { "$faultline" fuzz --target bpe --fault "$fault" --repeats 3 "$@"; }

expect 0 "$fault *3/3" run -o "$work/found"
expect 0 "fuzz_bpe.c:1: a == b" run -o "$work/found"
[ "$(wc -l <"$work/found/fuzz.jsonl")" = 6 ] || fail "a stored run was made again"
FAKE=quiet expect 0 "$fault *0/3" run -o "$work/quiet"
FAKE=unreached expect 0 "not reached" run -o "$work/unreached"
FAKE=crash expect 0 "$fault *0/3 *0 *3 .*heap-use-after-free" run -o "$work/crash"
FAKE=hang expect 0 "$fault *0/3 *0 *3 .*timeout" run -o "$work/hang"
FAKE=unproven expect 3 "$fault *0/3" run -o "$work/unproven"
HEALTHY=found expect 4 "with nothing armed" run -o "$work/alarm"
FAKE=refuse expect 6 "unknown fault" run -o "$work/refuse"
expect 1 "which?" "$faultline" fuzz -o "$work/none"
expect 1 "no fuzzer of a target 'nothing'" "$faultline" fuzz --target nothing -o "$work/none"
expect 1 "no fault 'nothing'" "$faultline" fuzz --fault nothing -o "$work/none"
expect 1 "no fuzzers there" "$faultline" fuzz --all --fuzzers "$work" -o "$work/none"
expect 0 "not reached by any target's seeds: norm_rstd.eps_outside" "$faultline" fuzz --fault norm_rstd.eps_outside -o "$work/none"

# Interrupted: what was finished is stored, and the same command goes on.
FAKE=slow HEALTHY=slow "$faultline" fuzz --target bpe --fault "$fault" --repeats 4 -j 1 -o "$work/cut" >/dev/null 2>&1 &
sleep 2.5
kill -INT $!
code=0; wait $! || code=$?
[ "$code" = 130 ] || fail "exit code $code instead of 130 after SIGINT"
stored=$(wc -l <"$work/cut/fuzz.jsonl")
{ [ "$stored" -ge 1 ] && [ "$stored" -lt 8 ]; } || fail "$stored runs were stored before the interruption"
[ -z "$(ls -A "$work/cut/runs" | head -c1)" ] || rm -rf "$work/cut/runs"
FAKE=slow HEALTHY=slow expect 0 "$fault *0/4" "$faultline" fuzz --target bpe --fault "$fault" --repeats 4 -o "$work/cut"
[ "$(wc -l <"$work/cut/fuzz.jsonl")" = 8 ] || fail "runs were lost or made twice"

# The real ones.
export FAULTLINE_FUZZERS=$build/tests
if [ ! -x "$build/tests/fuzz_bpe" ] || [ ! -x "$build/tests/fuzz_rows" ]; then
    echo "command.sh: this build has no fuzzers; only pretended ones were tried"
    exit 0
fi
expect 0 "never 0" "$faultline" fuzz --target bpe --target rows --fault "$fault" --fault labels_next.not_shifted --repeats 2 \
    --runs 20000 --seconds 20 -o "$work/real"
for row in "bpe *$fault *2/2" "rows *labels_next.not_shifted *2/2"; do
    grep -q "$row" "$work/said" || { cat "$work/said" >&2; fail "does not say '$row'"; }
done
expect 0 "not reached" "$faultline" fuzz --target bpe --fault labels_next.not_shifted --repeats 1 --runs 100 -o "$work/real"
echo "command.sh: pretended and real fuzzers"
