# Sourced by scripts of this folder: expectations that are counted, and what campaigns stored. The script has set
# $work, a folder of its own, and says at its end how many were `checked` and how many `failed`.
# shellcheck shell=bash
checked=0
failed=0

expect() { # what expected actual
    checked=$((checked + 1))
    if [ "$2" != "$3" ]; then
        echo "FAILED: $1: expected '$2', got '$3'"
        failed=$((failed + 1))
    fi
}
# Also that the words stand in what goes to standard error; '' = whatever it says.
code() { # expected-code words-in-stderr command...
    local expected=$1 words=$2
    shift 2
    "$@" >"$work/stdout" 2>"$work/stderr"
    expect "exit code of ${*:2}" "$expected" $?
    if [ -n "$words" ]; then
        checked=$((checked + 1))
        grep -q -- "$words" "$work/stderr" || {
            echo "FAILED: '$words' not said by ${*:2}: $(cat "$work/stderr")"
            failed=$((failed + 1))
        }
    fi
}
query() { # FOLDER SQL
    /usr/bin/python3 -c 'import sqlite3, sys
print(sqlite3.connect(f"file:{sys.argv[1]}/results.sqlite?mode=ro", uri=True).execute(sys.argv[2]).fetchone()[0])' "$1" "$2"
}
field() { # FOLDER KEY.KEY of results.json
    /usr/bin/python3 -c 'import json, sys
value = json.load(open(sys.argv[1] + "/results.json"))
for key in sys.argv[2].split("."): value = value[key]
print(value)' "$1" "$2"
}
