#!/usr/bin/env bash
# From file to batch, trainer and reference alike: same records in the same order, same text, tokens, labels and skips
# in every step, for ways to name a template that no recipe of the corpus uses.
#   text_equality.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$(readlink -f "${1:?usage: text_equality.sh BUILD_DIR SOURCE_DIR}")
source=$(readlink -f "${2:?usage: text_equality.sh BUILD_DIR SOURCE_DIR}")
corpus=$source/corpus
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/recipes" "$work/models" "$work/cache"
"$build/corpus/faultline-init" --recipe "$corpus/recipes/pico.yaml" --seed 1 --out "$work/weights" >"$work/out.txt"

# same NAME STEPS SED...: pico, edited, by both programs.
same() {
    local name=$1 steps=$2
    local recipe=$work/recipes/$name.yaml
    shift 2
    sed -e "s#\.\./#$corpus/#g" "$@" "$corpus/recipes/pico.yaml" >"$recipe"
    local run=(--recipe "$recipe" --weights "$work/weights" --seed 1 --steps "$steps")
    "$build/engine/faultline-train" "${run[@]}" --quiet --trace "$work/$name.train"
    "$build/oracles/reference/faultline-ref" "${run[@]}" --cache "$work/cache" --threads 1 --trace "$work/$name.ref"
    /usr/bin/python3 - "$name" "$steps" "$work/$name.train" "$work/$name.ref" <<'PY'
import json, sys
name, steps, *paths = sys.argv[1:]
KEYS = ("step", "records", "skipped", "skip_reasons", "ids", "labels", "positions", "segments", "supervised")
ends = [next(line["skips"] for line in map(json.loads, open(path, encoding="utf-8")) if line["type"] == "end")
        for path in paths]
assert ends[0] == ends[1], (name, ends)
train, ref = ([{key: line[key] for key in KEYS} for line in map(json.loads, open(path, encoding="utf-8"))
               if line["type"] == "step"] for path in paths)
assert len(train) == len(ref) == int(steps), (name, len(train), len(ref))
for mine, other in zip(train, ref):
    for key in KEYS:
        assert mine[key] == other[key], f"{name}, step {mine['step']}: {key} {mine[key]} against {other[key]}"
records = sum(len(step["records"]) for step in train)
assert records > 0
skips = ", ".join(f"{count} {reason}" for reason, count in ends[0].items() if count) or "none"
assert sum(ends[0].values()) == sum(len(step["skipped"]) for step in train)
print(f"{name}: {records} records in {steps} steps are equal, and those skipped: {skips}")
PY
}

# ---- tools, think blocks, skips for every reason ----
data() { echo "s#train: .*#train: [$corpus/data/$1]#"; }
same tools 16 -e 's/template: .*/template: tool_turns/' -e 's/context: .*/context: 256/' -e "$(data formats/tools.jsonl)"
sed '/"documents"/d' "$corpus/data/formats/tools.jsonl" >"$work/models/tools.jsonl"
same wrapped_turns 8 -e 's/template: .*/template: wrapped_turns/' -e 's/context: .*/context: 256/' -e "s#train: .*#train: [$work/models/tools.jsonl]#"
same reasoning 16 -e 's/context: .*/context: 128/' -e "$(data reasoning.jsonl)"
cat >"$work/models/forgets.jinja" <<'JINJA'
{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}{% generation %}{{ m.content if loop.last else m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>{% endgeneration %}
{% else %}{{ m.content }}<|im_end|>{% endif %}

{% endfor %}
JINJA
same reasoning_taken_out 8 -e 's#template: .*#template: ../models/forgets.jinja#' -e 's/context: .*/context: 128/' \
    -e 's/  packing: true/  on_prefix: skip\n&/' -e "s#train: .*#train: [$corpus/data/short.jsonl, $corpus/data/reasoning.jsonl]#"
same skips 8 -e 's/context: .*/context: 48/' -e 's/eval: .*/eval: []/' -e 's/eval_every: 8/eval_every: 0/' -e 's/truncate: .*/truncate: drop/' -e 's/template: .*/template: llama2/' \
    -e 's/  packing: true/  on_prefix: skip\n&/' -e "s#train: .*#train: [$corpus/data/short.jsonl, $corpus/data/reasoning.jsonl]#"

# ---- templates by path ----
cp "$corpus/templates/role_tags.jinja" "$work/models/chat.jinja"
same jinja_path 4 -e 's#template: .*#template: ../models/chat.jinja#'

/usr/bin/python3 - "$work/models" "$corpus/templates" <<'PY'
import json, sys
models, templates = sys.argv[1:]
one = ("{{ bos_token }}{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}{% if m.role == 'assistant' %}"
       "{% generation %}{{ m.content | trim + eos_token }}{% endgeneration %}{% else %}{{ m.content | trim + eos_token }}"
       "{% endif %}{{ '\n' }}{% endfor %}")
two = ("{{ sep_token ~ additional_special_tokens[1] }}{% for m in messages %}{{ m.role | upper }}: {{ m.content }}{{ pad_token if pad_token is defined else '' }}\n"
       "{% endfor %}{% if add_generation_prompt %}ASSISTANT: {% endif %}")
tokens = {"bos_token": {"content": "<|endoftext|>", "lstrip": False}, "eos_token": "<|im_end|>", "pad_token": None, "sep_token": "|",
          "additional_special_tokens": ["<|a|>", {"content": "|"}]}
with open(f"{models}/tokenizer_config.json", "w", encoding="utf-8") as file:
    json.dump({**tokens, "chat_template": one}, file, indent=1)
with open(f"{models}/several.json", "w", encoding="utf-8") as file:
    json.dump({**tokens, "chat_template": [{"name": "default", "template": one}, {"name": "v2.0", "template": two}]}, file)
with open(f"{models}/beside.jinja", "w", encoding="utf-8") as file:
    file.write(one + "\n")
PY
same config 4 -e 's#template: .*#template: ../models/tokenizer_config.json#'
same config_default 4 -e 's#template: .*#template: ../models/several.json#'
same config_named 4 -e "s#template: .*#template: '$work/models/several.json\#v2.0'#"
same config_beside 4 -e 's#template: .*#template: ../models/beside.jinja#'
# The same template by three names is the same text, and another one is not.
for name in config_default config_beside; do
    cmp <(grep '"step"' "$work/config.ref" ) <(grep '"step"' "$work/$name.ref" )
done
if cmp -s <(grep '"step"' "$work/config.ref") <(grep '"step"' "$work/config_named.ref"); then
    echo "config_named: the text of another template is the same"
    exit 1
fi

# ---- a position within several weighted files: a resumed run goes on with the same records ----
resumed() { # NAME SED...
    local name=$1
    shift
    same "$name" 12 -e 's/  packing: true/  weights: [2, 1, 3]\n&/' "$@" -e 's/checkpoint_every: .*/checkpoint_every: 5/' \
        -e "s#train: .*#train: [$corpus/data/tiny_epochs.jsonl, $corpus/data/reasoning.jsonl, $corpus/data/short.jsonl]#"
    local run=("$build/engine/faultline-train" --recipe "$work/recipes/$name.yaml" --seed 1 --steps 12 --quiet)
    "${run[@]}" --weights "$work/weights" --checkpoint-dir "$work/$name.checkpoints" --trace "$work/$name.whole"
    "${run[@]}" --resume "$work/$name.checkpoints/step-5" --trace "$work/$name.resumed"
    /usr/bin/python3 - "$name" "$work/$name.whole" "$work/$name.resumed" <<'PY'
import json, sys
name, *paths = sys.argv[1:]
whole, rest = ([{key: line[key] for key in ("step", "records", "skipped", "skip_reasons", "ids", "labels", "positions", "loss")}
                for line in map(json.loads, open(path, encoding="utf-8")) if line["type"] == "step"] for path in paths)
assert len(whole) == 12 and [line["step"] for line in rest] == list(range(6, 13)), (name, len(whole), len(rest))
assert whole[5:] == rest, name
print(f"{name}: steps 6 to 12 of a resumed run are those of the whole run")
PY
}
resumed weighted
resumed weighted_cipher -e 's/  packing: true/  order: cipher\n&/'
resumed weighted_wrapped -e 's/packing: true/packing: wrapped/'
resumed weighted_first_fit -e 's/packing: true/packing: first_fit/'
