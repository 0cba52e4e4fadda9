#!/usr/bin/env bash
# Bad input, table-driven: every program says file, line where there is one, and cause, ends with the
# documented code, and leaves what was there before.
#   bad_input.sh BUILD_DIR SOURCE_DIR
set -uo pipefail
build=$(readlink -f "${1:?usage: bad_input.sh BUILD_DIR SOURCE_DIR}")
source=$(readlink -f "${2:?usage: bad_input.sh BUILD_DIR SOURCE_DIR}")
corpus=$source/corpus
train=$build/engine/faultline-train
ref=$build/oracles/reference/faultline-ref
init=$build/corpus/faultline-init
faultline=$build/harness/faultline
stage=(/usr/bin/python3 "$source/oracles/text/text_stage.py")
work=$(mktemp -d)
mounted=
cleanup() {
    [ -n "$mounted" ] && umount "$mounted"
    rm -rf "$work"
}
trap cleanup EXIT
chmod 755 "$work"
cd "$work" || exit 1
# In a sanitizer build a finding must not look like the expected code 1.
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99
checked=0
failed=0

fail() {
    echo "FAILED: $*"
    failed=$((failed + 1))
}
expect() { # what expected actual
    checked=$((checked + 1))
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# bad TITLE CODE 'WORD;WORD...' COMMAND...: exit code, every word in the message, kept/ as it was.
bad() {
    local title=$1 code=$2 words=$3 word
    shift 3
    timeout 120 "$@" >out.txt 2>err.txt </dev/null
    expect "$title: exit code" "$code" $?
    while IFS= read -r word; do
        [ -n "$word" ] || continue
        checked=$((checked + 1))
        grep -qF -- "$word" err.txt || fail "$title: '$word' is not said: $(head -c 400 err.txt)"
    done < <(tr ';' '\n' <<<"$words")
    checked=$((checked + 1))
    if ! diff -rq --exclude=lock before kept >differences.txt; then
        fail "$title: earlier results were touched: $(tr '\n' ' ' <differences.txt)"
        rm -rf kept && cp -a before kept
    fi
}

# Before a command: a user whom file modes bind, also when this runs as root.
as_user=()
[ "$(id -u)" -eq 0 ] && as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# recipe NAME SED...: a recipe made from pico; prints its path.
recipe() {
    local name=$1
    shift
    sed -e "s#\.\./#$corpus/#g" "$@" "$corpus/recipes/pico.yaml" >"recipes/$name.yaml"
    echo "$work/recipes/$name.yaml"
}
line_of() { grep -n -m1 -- "$2" "$1" | cut -d: -f1; } # file pattern

chat='{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b c d"}]}'
# data NAME SECOND-LINE: a file with a good first line; prints its path.
data() {
    printf '%s\n%b\n' "$chat" "$2" >"data/$1.jsonl"
    echo "$work/data/$1.jsonl"
}

# ---- what stands before ----
mkdir recipes data kept kept/campaign broken
good=$(recipe good)
weights=$work/weights.safetensors
"$init" --recipe "$good" --seed 1 --out "$weights" || exit 1
"$train" --recipe "$good" --weights "$weights" --steps 8 --trace kept/trace.jsonl --checkpoint-dir kept/checkpoints \
    --save kept/model --quiet || exit 1
cp "$weights" kept/weights.safetensors
echo 'not to be lost' >kept/text.jsonl
campaign() { # NAME TEXT: prints the path of a campaign
    printf 'name: %s\nrecipes: [%s]\n%b\n' "$1" "$good" "$2" >"recipes/campaign_$1.yaml"
    echo "recipes/campaign_$1.yaml"
}
smoke=$(campaign smoke 'faults: [norm_rstd.eps_outside]\ncalibration: 3\nfalse_alarms: 0')
"$faultline" run -c "$smoke" --out kept/campaign --quiet >out.txt 2>err.txt
expect 'a first campaign' 0 $?
chmod -R a+rwX kept
cp -a kept before
before=$(find before -type f | wc -l)
[ "$before" -ge 8 ] || fail "only $before files stand before"

T=("$train" --weights "$weights" --trace kept/trace.jsonl --checkpoint-dir kept/checkpoints --quiet)
R=("$ref" --weights "$weights" --trace kept/trace.jsonl)
I=("$init" --seed 1 --out kept/weights.safetensors)
S=("${stage[@]}" --template "$corpus/templates/chatml.jinja" --tokenizer "$corpus/tokenizers/clinical-2k.json"
    --mask assistant --out kept/text.jsonl)

# ---- data: the three readers, one table: NAME|CODE|WORDS|SECOND LINE ----
while IFS='|' read -r name code place cause line; do
    file=$(data "$name" "$line")
    [ -n "$place" ] && place="data/$name.jsonl:$place"
    bad "train, data $name" "$code" "${place:-data/$name.jsonl};$cause" "${T[@]}" --recipe "$good" --data "$file"
    bad "ref, data $name" "$code" "${place:-data/$name.jsonl}" "${R[@]}" --recipe "$good" --data "$file"
    bad "text stage, data $name" "$code" "${place:-data/$name.jsonl}" "${S[@]}" --data "$file"
done <<'TABLE'
cut|1|2|expected|{"messages":[{"role":"user","content":"a"}
not_json|1|2||messages
utf8|1|2|UTF-8|{"messages":[{"role":"user","content":"\xff"},{"role":"assistant","content":"b"}]}
duplicate|1|2|duplicate key 'id'|{"id":"a","id":"b","messages":[]}
roles|1|2|user is expected|{"messages":[{"role":"assistant","content":"a"},{"role":"user","content":"b"}]}
last|1|2|assistant|{"messages":[{"role":"user","content":"a"}]}
system_late|1|2|system|{"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}
role|1|2|tool|{"messages":[{"role":"tool","content":"a"}]}
role_unknown|1|2|critic|{"messages":[{"role":"critic","content":"a"}]}
call_answered|1|2|tool is expected, not user|{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{}]},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]}
call_of_user|1|2|tool_calls|{"messages":[{"role":"user","content":"a","tool_calls":[{}]},{"role":"assistant","content":"b"}]}
calls_shape|1|2|tool_calls|{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":{}}]}
call_shape|1|2|not an object|{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","tool_calls":[1]}]}
call_id|1|2|tool_call_id|{"messages":[{"role":"user","content":"a","tool_call_id":"1"},{"role":"assistant","content":"b"}]}
no_content|1|2|no content|{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[]}]}
tools_shape|1|2|tools|{"tools":"a","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}
tools_unnamed|1|2|tools, which the template does not name|{"tools":[],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}
reasoning_unnamed|1|2|reasoning_content|{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","reasoning_content":"c"}]}
no_messages|1|2|messages|{"text":"a"}
wrong_type|1|2|string|{"messages":[{"role":"user","content":3},{"role":"assistant","content":"b"}]}
empty_line|1|2|empty|
surrogate|1|2|surrogate|{"messages":[{"role":"user","content":"\\ud800"},{"role":"assistant","content":"b"}]}
trailing|1|2|follows|{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]} x
TABLE
: >data/empty.jsonl
cp data/roles.jsonl data/unreadable.jsonl
chmod 000 data/unreadable.jsonl
mkfifo data/pipe
"${as_user[@]}" test -x "$train" || echo "not run: unreadable files, since $train is closed to other users"
while IFS='|' read -r name code path words; do
    bad "train, data $name" "$code" "$path;$words" "${as_user[@]}" "${T[@]}" --recipe "$good" --data "$path"
    bad "ref, data $name" "$code" "$path" "${as_user[@]}" "${R[@]}" --recipe "$good" --data "$path"
    [ "$name" = empty ] || bad "text stage, data $name" "$code" "$path" "${as_user[@]}" "${S[@]}" --data "$path"
done <<'TABLE'
missing|74|data/none.jsonl|No such file
folder|74|data|
pipe|74|data/pipe|not a regular file
unreadable|74|data/unreadable.jsonl|Permission denied
empty|1|data/empty.jsonl|0 records
TABLE
# ---- the other formats: FORMAT|NAME|WORDS|SECOND LINE, behind a good first one ----
declare -A first=(
    [sharegpt]='{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b c d"}]}'
    [alpaca]='{"instruction":"a","input":"b","output":"c d"}'
    [completion]='{"prompt":"a","completion":"b c d"}')
while IFS='|' read -r format name cause line; do
    file=data/${format}_$name.jsonl
    printf '%s\n%b\n' "${first[$format]}" "$line" >"$file"
    formatted=$(recipe "$format" -e "s/  packing: true/  format: $format\n&/" -e 's/eval: .*/eval: []/' -e 's/eval_every: 8/eval_every: 0/')
    bad "train, $format $name" 1 "$file:2;$cause" "${T[@]}" --recipe "$formatted" --data "$file"
    bad "ref, $format $name" 1 "$file:2" "${R[@]}" --recipe "$formatted" --data "$file"
    bad "text stage, $format $name" 1 "$file:2" "${S[@]}" --format "$format" --data "$file"
done <<'TABLE'
sharegpt|other_format|conversations|{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}
sharegpt|tool|observation|{"conversations":[{"from":"observation","value":"a"},{"from":"gpt","value":"b"}]}
sharegpt|no_value|value|{"conversations":[{"from":"human"},{"from":"gpt","value":"b"}]}
sharegpt|two_systems|system|{"system":"s","conversations":[{"from":"system","value":"t"},{"from":"human","value":"a"},{"from":"gpt","value":"b"}]}
alpaca|no_output|output|{"instruction":"a","input":""}
alpaca|null_input|string|{"instruction":"a","input":null,"output":"b"}
alpaca|history|history|{"instruction":"a","output":"b","history":[["q"]]}
alpaca|duplicate|duplicate|{"instruction":"a","output":"b","output":"c"}
completion|no_prompt|prompt|{"completion":"b"}
completion|number|array|{"prompt":3,"completion":"b"}
completion|two_answers|completion|{"prompt":"a","completion":[{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}
completion|utf8|UTF-8|{"prompt":"\xc0","completion":"b"}
TABLE

# ---- compressed data: NAME|WORDS of the trainer ----
gzip -n <"$corpus/data/short.jsonl" >data/whole.gz
zstd -qc "$corpus/data/short.jsonl" >data/whole.zst
size=$(stat -c %s data/whole.gz)
head -c $((size / 2)) data/whole.gz >data/cut.gz
{ cat data/whole.gz; echo more; } >data/behind.gz
{ cat data/whole.gz; head -c 100 /dev/zero; } >data/zeros.gz
{ head -c $((size - 8)) data/whole.gz; printf '12345678'; } >data/checksum.gz
{ head -c $((size / 2)) data/whole.gz; head -c 200 /dev/zero; tail -c $((size / 2)) data/whole.gz; } >data/damaged.gz
head -c $(($(stat -c %s data/whole.zst) / 2)) data/whole.zst >data/cut.zst
{ cat data/whole.zst; echo more; } >data/behind.zst
{ cat data/whole.gz; printf '{"messages":\n' | gzip -n; } >data/line.gz
{ head -c 3 data/whole.gz; printf '\200'; tail -c +5 data/whole.gz; } >data/flag.gz
cat data/whole.zst data/whole.gz >data/other.zst
while IFS='|' read -r name words; do
    bad "train, data $name" 1 "data/$name;$words" "${T[@]}" --recipe "$good" --data "data/$name"
    bad "ref, data $name" 1 "data/$name" "${R[@]}" --recipe "$good" --data "data/$name"
done <<'TABLE'
cut.gz|cut off
behind.gz|member
zeros.gz|member
checksum.gz|checksum
damaged.gz|gzip
cut.zst|cut off
behind.zst|byte
line.gz|data/line.gz:151;array
flag.gz|reserved flag
other.zst|byte
TABLE
bad 'train, no scratch folder' 74 'data/whole.gz;scratch;broken/none' env TMPDIR=broken/none "${T[@]}" --recipe "$good" --data data/whole.gz

# ---- rules that a document may break: an error only when the recipe asks for it ----
strict=$(recipe strict -e 's/  packing: true/  on_unlearned: error\n&/' -e 's/context: 64/context: 16/' -e 's/eval: .*/eval: []/' \
    -e 's/eval_every: 8/eval_every: 0/')
bad 'train, nothing to learn in a document' 1 'data/short.jsonl:;learned' "$train" --weights "$weights" --quiet --trace unlearned.jsonl \
    --recipe "$strict"
bad 'ref, nothing to learn in a document' 1 'data/short.jsonl:;learned' "$ref" --weights "$weights" --trace unlearned.jsonl \
    --recipe "$strict"
strict=$(recipe prefix -e 's/  packing: true/  on_prefix: error\n&/' -e 's/template: .*/template: llama2/' -e 's/eval: .*/eval: []/' \
    -e 's/eval_every: 8/eval_every: 0/')
bad 'train, prompt no prefix' 1 'data/short.jsonl:;prefix' "$train" --weights "$weights" --quiet --trace prefix.jsonl --recipe "$strict"
bad 'ref, prompt no prefix' 1 'data/short.jsonl:;prefix' "$ref" --weights "$weights" --trace prefix.jsonl --recipe "$strict"

short=$(recipe short_context -e 's/context: 64/context: 2/' -e 's/eval: .*/eval: []/' -e 's/eval_every: 8/eval_every: 0/')
# Known only when the first step is made, so that the trace tells of it.
bad 'train, nothing to learn' 1 'data/cut_off.jsonl;no record' "$train" --weights "$weights" --trace nothing.jsonl --quiet \
    --recipe "$short" \
    --data "$(printf '%s\n' "$chat" >data/cut_off.jsonl && echo data/cut_off.jsonl)"

# ---- recipes: NAME|WORDS|SED; trainer and reference, and faultline-init where it reads that section ----
while IFS='|' read -r name who words edit; do
    file=$(recipe "$name" -e "$edit")
    bad "train, recipe $name" 1 "recipes/$name.yaml;$words" "${T[@]}" --recipe "$file"
    bad "ref, recipe $name" 1 "recipes/$name.yaml" "${R[@]}" --recipe "$file"
    [ "$who" = all ] && bad "init, recipe $name" 1 "recipes/$name.yaml" "${I[@]}" --recipe "$file"
done <<'TABLE'
unknown_key|all|:7:;depth|s/  layers: 1/&\n  depth: 2/
unknown_section|all|extra|$aextra: 1
repeated_key|all|:7:;layers|s/  layers: 1/&\n  layers: 2/
missing_key|all|layers|/  layers: 1/d
missing_section|two|device|/^device:/,$d
text_for_number|all|:6:;layers|s/layers: 1/layers: one/
list_for_number|all|:6:|s/layers: 1/layers: [1]/
number_for_list|two|:21:|s/train: \[.*/train: 3/
fraction|two|rows;whole number|s/  rows: 2/  rows: 2.5/
negative_rows|two|rows;-2|s/  rows: 2/  rows: -2/
negative_layers|all|layers;-1|s/layers: 1/layers: -1/
zero_steps|two|steps;0|s/  steps: 16/  steps: 0/
huge|all|vocab|s/vocab: 2048/vocab: 99999999999999999999/
not_finite|two|lr|s/  lr: 3.0e-3/  lr: nan/
context_1|two|context;1|s/context: 64/context: 1/
heads|all|heads;width|s/  heads: 4/  heads: 5/
kv_heads|all|kv_heads|s/kv_heads: 2/kv_heads: 3/
odd_head|all|head_dim|s/width: 32/width: 36/
arch|all|llama|s/arch: llama/arch: gpt2/
mask|two|mask|s/mask: assistant/mask: user/
template|two|nonsense|s/template: chatml/template: nonsense/
truncate|two|truncate|s/truncate: keep_start/truncate: middle/
packing|two|packing|s/packing: true/packing: maybe/
format|two|format|s/  packing: true/  format: xml\n&/
order|two|order|s/  packing: true/  order: random\n&/
on_unlearned|two|on_unlearned|s/  packing: true/  on_unlearned: ignore\n&/
on_prefix|two|on_prefix|s/  packing: true/  on_prefix: maybe\n&/
weights_count|two|weights|s/  packing: true/  weights: [1, 2]\n&/
weights_zero|two|weights|s/  packing: true/  weights: [0]\n&/
weights_fraction|two|weights|s/  packing: true/  weights: [1.5]\n&/
weights_number|two|weights|s/  packing: true/  weights: 2\n&/
warmup|two|warmup|s/warmup: 4/warmup: 16/
eval_none|two|eval_every|s/eval: .*/eval: []/
syntax|all||s/arch: llama/arch: [llama/
tab|all||s/^  layers/\tlayers/
TABLE
# ---- templates by path: NAME|CODE|WORDS|FILE ----
while IFS='|' read -r name code words text; do
    [ -n "$text" ] && printf '%b' "$text" >"broken/$name.json"
    file=$(recipe "path_$name" -e "s#template: .*#template: ../broken/$name.json#")
    bad "train, template $name" "$code" "broken/$name.json$words" "${T[@]}" --recipe "$file"
    bad "ref, template $name" "$code" "broken/$name.json$words" "${R[@]}" --recipe "$file"
done <<'TABLE'
none|1|;No such file|
no_template|1|: no chat_template|{"bos_token": "a"}
number|1|:2: chat_template is neither|{\n"chat_template": 1}
no_names|1|:1: chat_template holds|{"chat_template": [1]}
no_default|1|: no chat_template called default|{"chat_template": [{"name": "a", "template": ""}]}
token|1|:3: eos_token is no text|{"chat_template": "a",\n\n"eos_token": 3}
cut_off|1|:|{"chat_template": "a"
array|1|: not an object|["chat_template"]
unknown|1|: chat_template:2|{"chat_template": "a\\n{{ x | shout }}"}
TABLE
# ---- templates that would not end, or need more stack than there is: NAME|WORDS|REPEATED|TIMES|IN FRONT|BEHIND ----
while IFS='|' read -r name words repeated times front behind; do
    { printf '%s' "$front"; yes "$repeated" | head -n "$times" | tr -d '\n'; printf '%s' "$behind"; } >"broken/$name.jinja"
    file=$(recipe "path_$name" -e "s#template: .*#template: ../broken/$name.jinja#")
    bad "train, template $name" 1 "broken/$name.jinja:1:;$words" "${T[@]}" --recipe "$file"
    bad "ref, template $name" 1 "broken/$name.jinja" "${R[@]}" --recipe "$file"
done <<'TABLE'
sum|operations in each other| + 1|20000|{{ 1| }}
brackets|nested|(|5000|{{ |
TABLE
while IFS='|' read -r name words text; do
    printf '%s' "$text" >"broken/$name.jinja"
    file=$(recipe "path_$name" -e "s#template: .*#template: ../broken/$name.jinja#")
    bad "train, template $name" 1 "broken/$name.jinja:1:;$words" "${T[@]}" --recipe "$file"
    bad "ref, template $name" 1 "data/short.jsonl:1" "${R[@]}" --recipe "$file"
done <<'TABLE'
calls|nested|{% macro f() %}{{ 0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (0 + (f())))))))))))))))))))) }}{% endmacro %}{{ f() }}
length|writes more|{{ 'a' * 10 ** 10 }}
number|64 bits|{{ 9 ** 9999999 }}
TABLE
# A misspelt path is an error that names the recipe's line.
bad 'train, template path' 1 'recipes/path_none.yaml:18:;broken/none.json' "${T[@]}" --recipe recipes/path_none.yaml
bad 'ref, template path' 1 'recipes/path_none.yaml:18:;broken/none.json' "${R[@]}" --recipe recipes/path_none.yaml
bad 'run, template path' 1 'broken/none.json' "$faultline" run --out kept/campaign --quiet -c \
    "$(sed 's#good.yaml#path_none.yaml#' "$smoke" >recipes/campaign_path.yaml && echo recipes/campaign_path.yaml)"
for program in train ref init; do
    case $program in
    train) command=("${T[@]}") ;;
    ref) command=("${R[@]}") ;;
    init) command=("${I[@]}") ;;
    esac
    bad "$program, recipe missing" 74 'recipes/none.yaml;No such file' "${command[@]}" --recipe recipes/none.yaml
    bad "$program, recipe a folder" 74 'recipes' "${command[@]}" --recipe recipes
    : >recipes/empty.yaml
    bad "$program, recipe empty" 1 'recipes/empty.yaml' "${command[@]}" --recipe recipes/empty.yaml
    bad "$program, unknown option" 1 '--nonsense' "${command[@]}" --recipe "$good" --nonsense 1
    bad "$program, option without value" 1 'seed' "${command[@]}" --recipe "$good" --seed
    bad "$program, seed no number" 1 'seed;x1' "${command[@]}" --recipe "$good" --seed x1
    bad "$program, seed negative" 1 'seed;-1' "${command[@]}" --recipe "$good" --seed -1
done
bad 'text stage, unknown option' 1 '--nonsense' "${S[@]}" --data "$corpus/data/short.jsonl" --nonsense
bad 'text stage, no data' 1 '--data' "${S[@]}"
bad 'train, no recipe' 1 '--recipe' "${T[@]}"
bad 'ref, no recipe' 1 'recipe' "${R[@]}"

# ---- tokenizer and vocabulary ----
other_vocab=$(recipe vocab -e 's/vocab: 2048/vocab: 2047/')
bad 'train, vocabulary' 1 'clinical-2k.json;2048;2047' "${T[@]}" --recipe "$other_vocab"
bad 'ref, vocabulary' 1 '2048;2047' "${R[@]}" --recipe "$other_vocab"
pad=$(recipe pad -e 's/pad: .*/pad: "<none>"/')
bad 'train, pad token' 1 '<none>' "${T[@]}" --recipe "$pad"
bad 'ref, pad token' 1 '<none>' "${R[@]}" --recipe "$pad"
while IFS='|' read -r name words edit; do
    sed -e "$edit" "$corpus/tokenizers/clinical-2k.json" >"broken/tokenizer_$name.json"
    cmp -s "$corpus/tokenizers/clinical-2k.json" "broken/tokenizer_$name.json" && fail "tokenizer $name: not changed"
    file=$(recipe "tokenizer_$name" -e "s#tokenizer: .*#tokenizer: $work/broken/tokenizer_$name.json#")
    bad "train, tokenizer $name" 1 "broken/tokenizer_$name.json;$words" "${T[@]}" --recipe "$file"
    bad "ref, tokenizer $name" 1 "broken/tokenizer_$name.json" "${R[@]}" --recipe "$file"
done <<'TABLE'
large_id|token '~' has id 4194304|s/"~": *[0-9]*/"~": 4194304/
flag|special is neither|s/"special": *true/"special": "true"/
normalizer|'Lowercase'|s/"normalizer": *null/"normalizer": {"type": "Lowercase"}/
TABLE
plain_pad=$(recipe plain_pad -e 's/pad: .*/pad: "a"/')
bad 'train, pad token that is no control token' 1 "'a'" "${T[@]}" --recipe "$plain_pad"
bad 'ref, pad token that is no control token' 1 'control token a' "${R[@]}" --recipe "$plain_pad"
head -c 3000 "$corpus/tokenizers/clinical-2k.json" >broken/tokenizer.json
cut_tokenizer=$(recipe tokenizer -e "s#tokenizer: .*#tokenizer: $work/broken/tokenizer.json#")
bad 'train, tokenizer cut' 1 'broken/tokenizer.json:' "${T[@]}" --recipe "$cut_tokenizer"
bad 'ref, tokenizer cut' 1 'broken/tokenizer.json' "${R[@]}" --recipe "$cut_tokenizer"
no_tokenizer=$(recipe no_tokenizer -e "s#tokenizer: .*#tokenizer: $work/broken/none.json#")
bad 'train, tokenizer missing' 74 'broken/none.json;No such file' "${T[@]}" --recipe "$no_tokenizer"
bad 'ref, tokenizer missing' 74 'broken/none.json' "${R[@]}" --recipe "$no_tokenizer"
bad 'text stage, template missing' 74 'broken/none.jinja' "${stage[@]}" --template broken/none.jinja --mask all \
    --tokenizer "$corpus/tokenizers/clinical-2k.json" --out kept/text.jsonl --data "$corpus/data/short.jsonl"
echo '{% if %}' >broken/bad.jinja
bad 'text stage, template broken' 1 'broken/bad.jinja' "${stage[@]}" --template broken/bad.jinja --mask all \
    --tokenizer "$corpus/tokenizers/clinical-2k.json" --out kept/text.jsonl --data "$corpus/data/short.jsonl"

# ---- weights ----
"$init" --recipe "$(recipe wide -e 's/width: 32/width: 64/')" --seed 1 --out broken/wide.safetensors
head -c 5000 "$weights" >broken/cut.safetensors
head -c 100 "$weights" >broken/header.safetensors
: >broken/empty.safetensors
while IFS='|' read -r name code words; do
    bad "train, weights $name" "$code" "broken/$name.safetensors;$words" "$train" --recipe "$good" \
        --weights "broken/$name.safetensors" --trace kept/trace.jsonl --quiet
    bad "ref, weights $name" "$code" "broken/$name.safetensors" "$ref" --recipe "$good" \
        --weights "broken/$name.safetensors" --trace kept/trace.jsonl
done <<'TABLE'
wide|1|model.embed_tokens.weight
cut|1|
header|1|header
empty|1|safetensors
none|74|No such file
TABLE

# ---- faults, memory ----
R1=("${T[@]}" --recipe "$good")
bad 'train, unknown fault' 1 'nonsense' "${R1[@]}" --fault nonsense
bad 'train, unknown name of a site' 1 'norm_rstd.nonsense' "${R1[@]}" --fault norm_rstd.nonsense
bad 'train, dose no number' 1 'bpe_merges_read.list_cut;much' "${R1[@]}" --fault bpe_merges_read.list_cut:much
bad 'train, dose out of range' 1 'bpe_merges_read.list_cut;0.9' "${R1[@]}" --fault bpe_merges_read.list_cut:5
bad 'train, dose not finite' 1 'bpe_merges_read.list_cut' "${R1[@]}" --fault bpe_merges_read.list_cut:nan
bad 'train, dose of a fault without' 1 'norm_rstd.eps_outside;dose' "${R1[@]}" --fault norm_rstd.eps_outside:3
bad 'train, step no number' 1 'late' "${R1[@]}" --fault norm_rstd.eps_outside@late
bad 'train, step negative' 1 '-3' "${R1[@]}" --fault norm_rstd.eps_outside@-3
bad 'train, step of a site before step 1' 1 'before the first step' "${R1[@]}" --fault split_pattern.bare_words@5
bad 'train, fault of the environment' 1 'nonsense' env FAULTLINE_FAULT=nonsense "${R1[@]}"
# Refused while it runs, so that the trace tells of it; and refused before.
plan=$("$train" --recipe "$good" --weights "$weights" --plan | sed -E 's/.*"plan_bytes":([0-9]+).*/\1/')
bad 'train, budget too small' 8 "budget;allocation ';bytes in step" "$train" --recipe "$good" --weights "$weights" \
    --quiet --trace budget.jsonl --budget $((plan * 85 / 100))
expect 'budget too small: the trace tells' 1 "$(tail -n 1 budget.jsonl | grep -c '"kind":"oom"')"
bad 'train, budget below the parameters' 8 "budget;allocation 'parameters'" "${R1[@]}" --budget 1000
bad 'ref, threads no number' 1 'threads;many' "${R[@]}" --recipe "$good" --threads many
bad 'train, budget of one byte' 1 "budget of 1 bytes;at least 256" "${R1[@]}" --budget 1
bad 'train, budget no number' 1 'budget' "${R1[@]}" --budget lots
bad 'train, schedule unknown' 1 'schedule' "${R1[@]}" --schedule never
bad 'train, aim without aimed' 1 'aimed' "${R1[@]}" --aim 1:2
bad 'train, aim that is no pair' 1 'aim' "${R1[@]}" --schedule aimed --aim 1:2,3
bad 'train, guard with threads' 1 'guard' "${R1[@]}" --schedule threads --guard
bad 'train, call left out that is not there' 1 'omit-wait' "$train" --recipe "$good" --weights "$weights" \
    --quiet --trace omitted.jsonl --omit-wait 64
bad 'train, timeline of threads' 1 'timeline' "${R1[@]}" --schedule threads --timeline t
bad 'train, timeline in no folder' 74 'no-such' "${R1[@]}" --timeline no-such/t

# ---- where results go ----
bad 'train, trace in a missing folder' 74 'none/trace.jsonl;No such file' "$train" --recipe "$good" \
    --weights "$weights" --trace none/trace.jsonl --quiet
bad 'ref, trace in a missing folder' 74 'none/trace.jsonl;No such file' "$ref" --recipe "$good" \
    --weights "$weights" --trace none/trace.jsonl
bad 'init, weights in a missing folder' 74 'none/w.safetensors;No such file' "$init" --recipe "$good" --seed 1 \
    --out none/w.safetensors
bad 'text stage, output in a missing folder' 74 'none/text.jsonl' "${S[@]}" --out none/text.jsonl \
    --data "$corpus/data/short.jsonl"
bad 'train, trace is a folder' 74 'recipes' "$train" --recipe "$good" --weights "$weights" --trace recipes --quiet
bad 'train, disk full for the trace' 74 '/dev/full;No space left' "$train" --recipe "$good" --weights "$weights" \
    --trace /dev/full --quiet
bad 'ref, disk full for the trace' 74 '/dev/full;No space left' "$ref" --recipe "$good" --weights "$weights" \
    --trace /dev/full
# What is written beside and renamed must not replace a pipe or a device.
mkfifo pipe
bad 'init, output is a pipe' 74 'pipe;not a regular file' "$init" --recipe "$good" --seed 1 --out pipe
bad 'text stage, output is a pipe' 74 'pipe;not a regular file' "${S[@]}" --out pipe --data "$corpus/data/short.jsonl"
expect 'the pipe' pipe "$(find pipe -type p)"
# A full disk for the rest: a small file system where one may be mounted.
if [ "$(id -u)" -eq 0 ] && mkdir full && mount -t tmpfs -o size=100k tmpfs full 2>/dev/null; then
    mounted=$work/full
    bad 'train, disk full for checkpoints' 74 'full/checkpoints;No space left' "$train" --recipe "$good" \
        --weights "$weights" --trace trace-full.jsonl --checkpoint-dir full/checkpoints --quiet
    expect 'no half checkpoint' '' "$(find full -name 'step-*' -type d ! -name '*.tmp*')"
    bad 'train, disk full for the model' 74 'full/model;No space left' "$train" --recipe "$good" \
        --weights "$weights" --steps 1 --save full/model --quiet
    rm -rf full/*
    bad 'init, disk full' 74 'full/w.safetensors;No space left' "$init" --recipe "$good" --seed 1 --out full/w.safetensors
    expect 'nothing left by init' '' "$(ls full)"
    bad 'ref, disk full' 74 'full/trace.jsonl;No space left' "$ref" --recipe "$good" --weights "$weights" --level full \
        --contents --trace full/trace.jsonl
    umount full && mounted=
else
    echo 'not run: full disk for checkpoints and weights (needs root and tmpfs)'
fi

# ---- checkpoints ----
resume() { # TITLE CODE WORDS CHECKPOINT [OPTION...]
    bad "$1" "$2" "$3" "$train" --recipe "$good" --resume "$4" --quiet "${@:5}"
}
resume 'train, no checkpoint' 74 'broken/none' broken/none
mkdir broken/nothing
resume 'train, folder without checkpoint' 1 'broken/nothing;holds no checkpoint' broken/nothing
for part in state.json model.safetensors moment1.safetensors moment2.safetensors; do
    rm -rf broken/step-8
    cp -r kept/checkpoints/step-8 broken/step-8
    truncate -s 60 "broken/step-8/$part"
    resume "train, checkpoint with $part cut" 1 "broken/step-8/$part" broken/step-8
    rm "broken/step-8/$part"
    case $part in # a folder without it is none
    state.json) resume 'train, checkpoint without state.json' 1 'broken/step-8;holds no checkpoint' broken/step-8 ;;
    *) resume "train, checkpoint without $part" 74 "broken/step-8/$part;No such file" broken/step-8 ;;
    esac
done
rm -rf broken/step-8
cp -r kept/checkpoints/step-8 broken/step-8
chmod 000 broken/step-8/state.json
bad 'train, checkpoint unreadable' 74 'broken/step-8/state.json;Permission denied' "${as_user[@]}" "$train" --recipe "$good" \
    --resume broken/step-8 --quiet
bad 'train, checkpoint of another recipe' 1 'step-8;recipe' "$train" --recipe "$(recipe other -e 's/lr: 3.0e-3/lr: 2.0e-3/')" \
    --resume kept/checkpoints --quiet
resume 'train, checkpoint of another seed' 1 'step-8;seed' kept/checkpoints --seed 2

# ---- interruption ----
long=$(recipe long -e 's/  steps: 16/  steps: 1000000/' -e 's/schedule_steps: 16/schedule_steps: 1000000/')
steps_in() { grep -c '"type":"step"' "$1" 2>/dev/null; }
# Starts the command, waits until its trace has some steps, sends the signal; the exit code is in $code.
interrupt() { # SIGNAL TRACE COMMAND...
    "${@:3}" --trace "$2" 2>err.txt &
    local victim=$!
    for _ in $(seq 300); do
        [ "$(steps_in "$2")" -ge 3 ] 2>/dev/null && break
        sleep 0.1
    done
    kill "-$1" "$victim"
    wait "$victim" 2>/dev/null
    code=$?
}
for program in train ref; do
    case $program in
    train) command=("$train" --recipe "$long" --weights "$weights" --quiet) ;;
    ref) command=("$ref" --recipe "$long" --weights "$weights") ;;
    esac
    for signal in INT TERM; do
        # A shell's children in the background ignore SIGINT unless it is reset.
        interrupt "$signal" "$program-$signal.jsonl" env "--default-signal=$signal" "${command[@]}"
        expect "$program, SIG$signal: exit code" 130 "$code"
        expect "$program, SIG$signal: last line" '"type":"end"' \
            "$(tail -n 1 "$program-$signal.jsonl" | grep -o '"type":"end"')"
        expect "$program, SIG$signal: says so" interrupted \
            "$(tail -n 1 "$program-$signal.jsonl" | grep -o interrupted | head -n 1)"
        bad "$program, SIG$signal: trace can be compared" 0 '' "$faultline" diff "$program-$signal.jsonl" "$program-$signal.jsonl"
    done
    interrupt KILL "$program-KILL.jsonl" "${command[@]}"
    expect "$program, SIGKILL: exit code" 137 "$code"
    expect "$program, SIGKILL: whole lines before the last" 0 "$(head -n -1 "$program-KILL.jsonl" | grep -vc '}$')"
    printf '{"type":"step","step":' >>"$program-KILL.jsonl"
    bad "$program, SIGKILL: trace can be read" 0 '' "$faultline" diff "$program-KILL.jsonl" "$program-KILL.jsonl"
done

# ---- the harness ----
H=("$faultline" run --out kept/campaign --quiet)
while IFS='|' read -r name words text; do
    bad "run, campaign $name" 1 "campaign_$name.yaml;$words" "${H[@]}" -c "$(campaign "$name" "$text")"
done <<'TABLE'
unknown_key|:3:;speed|speed: 3
unknown_fault|nonsense|faults: [nonsense*]
unknown_family|nonsense|families: [nonsense]
unknown_check|nonsense|checks: [nonsense]
unknown_planted|nonsense|planted: nonsense
wrong_type|:3:;repeats|repeats: many
negative|repeats;-1|repeats: -1
negative_seed|seed|seed: -1
dose|nonsense|doses: [nonsense]
calibration|calibration;2|calibration: 2
TABLE
bad 'run, campaign missing' 1 'recipes/none.yaml;No such file' "${H[@]}" -c recipes/none.yaml
printf 'name: a\nrecipes: [none.yaml]\n' >recipes/campaign_recipe.yaml
bad 'run, recipe missing' 1 'recipes/none.yaml;No such file' "${H[@]}" -c recipes/campaign_recipe.yaml
bad 'run, unknown fault pattern' 1 'nonsense' "${H[@]}" -c "$smoke" -F 'nonsense*'
bad 'run, unknown option' 1 '--nonsense' "${H[@]}" -c "$smoke" --nonsense
bad 'faultline, unknown command' 1 'nonsense' "$faultline" nonsense
bad 'explain, unknown fault' 1 'nonsense' "$faultline" explain nonsense.fault
for option in train train-production ref init text-stage python; do
    bad "run, no program for --$option" 1 "broken/none" "$faultline" run -c "$smoke" --out results --quiet \
        "--$option" broken/none
done
mkdir broken/results
echo 'not to be lost' >broken/results/results.sqlite
bad 'run, results of something else' 74 'broken/results/results.sqlite' "$faultline" run -c "$smoke" --out broken/results --quiet
expect 'results of something else' 'not to be lost' "$(cat broken/results/results.sqlite)"
: >broken/file
bad 'run, out is a file' 74 'broken/file' "$faultline" run -c "$smoke" --out broken/file --quiet
mkdir closed
chmod 555 closed
bad 'run, out not writable' 74 'closed' "${as_user[@]}" "$faultline" run -c "$smoke" --out closed/results --quiet
bad 'diff, trace missing' 1 'broken/none.jsonl' "$faultline" diff broken/none.jsonl kept/trace.jsonl
echo '{"type":"note"}' >broken/trace.jsonl
bad 'diff, no trace' 1 'broken/trace.jsonl:1' "$faultline" diff broken/trace.jsonl kept/trace.jsonl
# What differs is 2, what is the same 0.
sed 's/"loss":[0-9]/"loss":9/' kept/trace.jsonl >other.jsonl
bad 'diff, the same trace' 0 '' "$faultline" diff kept/trace.jsonl kept/trace.jsonl
bad 'diff, another loss' 2 '' "$faultline" diff kept/trace.jsonl other.jsonl
expect 'diff, another loss: step 1, loss' 1 "$(grep -c '^step 1, loss' out.txt)"
bad 'diff, another loss, JSON' 2 '' "$faultline" diff --json kept/trace.jsonl other.jsonl
expect 'diff, another loss, JSON: found' 1 "$(grep -c '"found": true' out.txt)"
bad 'diff, stored bounds' 2 '' "$faultline" diff --bounds kept/campaign kept/trace.jsonl other.jsonl
bad 'diff, bounds missing' 1 'broken/none.json;No such file' "$faultline" diff --bounds broken/none.json kept/trace.jsonl \
    kept/trace.jsonl
bad 'diff, no bounds in the file' 1 'trace.jsonl;bounds' "$faultline" diff --bounds kept/trace.jsonl kept/trace.jsonl \
    kept/trace.jsonl
bad 'diff, bounds of nothing' 1 'broken/nothing' "$faultline" diff --bounds broken/nothing kept/trace.jsonl kept/trace.jsonl
# Options out of range name the option, not the campaign's file.
while IFS='|' read -r name words options; do
    # shellcheck disable=SC2086
    bad "run, $name" 1 "$words" "$faultline" run -c "$smoke" --out results --quiet $options
    expect "run, $name: the file is not blamed" 0 "$(grep -c campaign_smoke err.txt)"
done <<'TABLE'
repeats 0|--repeats must lie in [1, 999], not 0|--repeats 0
calibration 2|--calibration must lie in|--calibration 2
check unknown|--checks: unknown check 'nonsense'|--checks nonsense
fault of another family|norm_rstd.eps_outside is of family numerics, which is not selected|-F norm_rstd.* --family loss
TABLE
# A damaged database is an input/output error with its cause; a sound one of something else is not ours.
cp -r kept/campaign broken/damaged
printf 'nonsense' | dd of=broken/damaged/results.sqlite bs=1 seek=0 conv=notrunc status=none
for command in report gate 'explain norm_rstd.eps_outside' "run -c $smoke"; do
    # shellcheck disable=SC2086
    bad "${command%% *}, damaged database" 74 'broken/damaged/results.sqlite;not a database' "$faultline" $command \
        --out broken/damaged
done
rm -rf broken/damaged
cp -r kept/campaign broken/damaged
dd if=/dev/zero of=broken/damaged/results.sqlite bs=4096 seek=1 count=100 conv=notrunc status=none
bad 'gate, database full of zeros' 74 'broken/damaged/results.sqlite' "$faultline" gate --out broken/damaged
rm -rf broken/damaged
cp -r kept/campaign broken/damaged
/usr/bin/python3 -c 'import sqlite3
db = sqlite3.connect("broken/damaged/results.sqlite")
db.execute("update bounds set json = substr(json, 1, 500)")
db.execute("delete from cases where kind = \"fault\"")
db.commit()'
bad 'run, damaged bounds' 74 'stored bounds of recipe;damaged' "$faultline" run -c "$smoke" --out broken/damaged --quiet
/usr/bin/python3 -c 'import sqlite3
sqlite3.connect("broken/results.sqlite").execute("create table a(b)").connection.commit()'
bad 'gate, database of something else' 1 'broken/results.sqlite;no such table' "$faultline" gate --out broken
# Where nothing can be written, reading works and writing is an input/output error.
cp -r kept/campaign readonly
chmod -R a-w readonly
bad 'gate, read-only results' 0 '' "${as_user[@]}" "$faultline" gate --out readonly
bad 'explain, read-only results' 0 '' "${as_user[@]}" "$faultline" explain norm_rstd.eps_outside --out readonly
expect 'explain, read-only results: history' 0 "$(grep -q 'detected by' out.txt; echo $?)"
bad 'report, read-only results' 74 'readonly' "${as_user[@]}" "$faultline" report --out readonly
bad 'run, read-only results' 74 'readonly' "${as_user[@]}" "$faultline" run -c "$smoke" --out readonly --quiet
bad 'report, no results' 1 'results.sqlite' "$faultline" report --out broken/nothing
if [ "$(id -u)" -eq 0 ] && mkdir -p small && mount -t tmpfs -o size=200k tmpfs small 2>/dev/null; then
    mounted=$work/small
    bad 'run, disk full' 74 'small' "$faultline" run -c "$smoke" --out small/results --quiet
    umount small && mounted=
else
    echo 'not run: full disk for a campaign (needs root and tmpfs)'
fi

echo "$checked checks, $failed failed"
[ "$checked" -gt 300 ] && [ "$failed" -eq 0 ]
