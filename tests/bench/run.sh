#!/usr/bin/env bash
# Benchmarks: everything is measured in this run against a named peer, and printed as a ratio.
#   run.sh BUILD [gemm|device|step|trace|checks|start|reference|mutants|twin|template|data|tokenizer|all]
# Elapsed times need a quiet machine; processor times also hold on a busy one.
set -euo pipefail
build=$(readlink -f "${1:?usage: run.sh BUILD [gemm|device|step|trace|checks|start|reference|mutants|twin|template|data|tokenizer|all]}")
what=${2:-all}
top=$(cd "$(dirname "$0")/../.." && pwd)
threads=$(nproc)

measure() { /usr/bin/python3 "$top/tests/bench/measure.py" "$@"; }

# OpenBLAS in its OpenMP flavour, and with the newest core type that Debian's knows and this processor has.
core=Haswell
grep -q ' avx512f ' /proc/cpuinfo && core=SkylakeX

bench_gemm() {
    local flavour=/usr/lib/x86_64-linux-gnu/openblas-openmp count
    echo "## GEMM against OpenBLAS and oneDNN (share of the FMA peak measured in the same rounds; ratios paired in interleaved rounds)"
    for count in $(printf '%s\n' 1 "$threads" | sort -nu); do
        LD_LIBRARY_PATH=$flavour OPENBLAS_CORETYPE=$core OMP_NUM_THREADS=$count \
            "$build/tests/gemm_bench" "$count" 0.5
    done
}

bench_device() {
    echo "## Cost of the device runtime"
    "$build/tests/dev_bench"
}

bench_template() {
    echo "## Chat templates against Jinja2"
    /usr/bin/python3 "$top/tests/bench/template_peer.py" "$build/tests/template_bench" "$top/corpus" "${@}"
}

bench_tokenizer() {
    echo "## Tokenizers against tiktoken and the native Hugging Face tokenizers (processor time of all threads)"
    bash "$top/tests/tokens/tokens.sh" "$build" bench
}

bench_step() {
    cmake --build "$build" --target corpus-tokenizers >/dev/null
    measure "$build" step
}

# FAULTLINE_CHATS names a file of chats; without it the corpus is repeated.
bench_data() {
    local work file order packing
    work=$(mktemp -d)
    file=$work/once.jsonl
    if [ -n "${FAULTLINE_CHATS:-}" ]; then
        gzip -dcf <"$FAULTLINE_CHATS" >"$file"
    else
        for _ in $(seq 60); do cat "$top/corpus/data/clinical.jsonl"; done | sed -E 's/"id": *"[^"]*", *//' >"$file"
    fi
    for _ in $(seq 10); do cat "$file"; done >"$work/ten.jsonl"
    echo "## JSON lines, $(wc -l <"$work/once.jsonl") of them, $(($(stat -c %s "$file") / 1000000)) MB (best of 3 interleaved rounds, processor time)"
    "$build/tests/json_bench" "$file" 3
    echo "## From file to packed steps, one epoch, context 512, one thread; then a ten times larger file"
    for packing in true first_fit wrapped; do
        for order in permutation cipher; do
            echo "packing $packing, order $order"
            for file in once ten; do
                "$build/tests/data_bench" "$work/$file.jsonl" "$top/corpus/tokenizers/clinical-2k.json" chatml 2048 512 \
                    "$packing" "$order"
            done
        done
    done
    rm -rf "$work"
}

bench_twin() {
    cmake --preset callgrind -S "$top" >/dev/null
    cmake --build "$top/build/callgrind" --target faultline-train faultline-train-production faultline-init >/dev/null
    measure "$top/build/callgrind" twin
}

case $what in
all)
    for what in gemm device template data tokenizer step trace checks start reference mutants twin; do bash "$0" "$build" "$what"; done
    echo "all benchmarks: $SECONDS s"
    ;;
gemm | device | template | step | twin | data | tokenizer) "bench_$what" ;;
trace | checks | start | reference | mutants) measure "$build" "$what" ;;
*) echo "run.sh: unknown benchmark '$what'" >&2; exit 1 ;;
esac
