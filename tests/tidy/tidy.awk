# Rules of the tree, checked in one pass; run by tidy.sh, which names the files. Prints file:line: rule.
#   awk -f tidy.awk SOURCE... DEF...

function bad(where, rule) { printf "%s: %s\n", where, rule; found++ }
function name_of(path) { sub(/.*\//, "", path); return path }
function stem_of(path) { path = name_of(path); sub(/\..*/, "", path); return path }
function folder_of(path) { return path ~ /\// ? substr(path, 1, length(path) - length(name_of(path)) - 1) : "." }
function is_source(path) { return path ~ /\.(c|h|cu)$/ }
function within(path, folder) { return index(path, folder "/") == 1 }

# Which folders a folder's files may include from.
function allowed(from, to) {
    if (within(from, "tests")) return 1
    if (within(from, "mutants")) return within(to, "mutants")
    if (within(from, "corpus")) return within(to, "corpus")
    if (within(from, "kernels"))
        return within(to, "kernels") || to ~ "^mutants/(fault|fault_launch|select)\\.h$"
    if (within(from, "engine")) return within(to, "engine") || within(to, "kernels") || within(to, "mutants")
    if (within(from, "oracles/reference")) return within(to, "oracles/reference")
    if (within(from, "oracles/checks")) return within(to, "oracles/checks")
    if (within(from, "harness"))
        return within(to, "harness") || to == "oracles/checks/orc_check.h" || to == "mutants/registry.h"
    return 0
}

# Each folder's README tours its files.
function check_tour(file, folder, line) {
    folder = folder_of(file)
    if (folder ~ /^tests\// || folder ~ /^kernels\/.*\// || folder ~ /^harness\/web/) return
    if (!(folder in tour)) {
        tour[folder] = ""
        while ((getline line < (folder "/README.md")) > 0) tour[folder] = tour[folder] line "\n"
        close(folder "/README.md")
        if (tour[folder] == "") bad(folder ":0", "has no README.md")
    }
    if (!index(tour[folder], stem_of(file))) bad(folder "/README.md:1", "does not mention " stem_of(file))
}

function check_length(file, lines) {
    if (file == "" || !is_source(file)) return
    if (file ~ /\.h$/) {
        if (!once) bad(file ":1", "header without #pragma once")
        if (lines > 300) bad(file ":" lines, "header longer than 300 lines")
    } else if (lines > 600) bad(file ":" lines, "longer than 600 lines")
}

BEGIN {
    for (i = 1; i < ARGC; i++) {
        if (!is_source(ARGV[i])) continue
        sources++
        if (name_of(ARGV[i]) in home) bad(ARGV[i] ":1", "file name stands twice, also " home[name_of(ARGV[i])])
        home[name_of(ARGV[i])] = ARGV[i]
        check_tour(ARGV[i])
    }
}

FNR == 1 {
    check_length(last, lines)
    last = FILENAME
    once = start = conditions = 0
    if (is_source(FILENAME) && $0 !~ /^\/\*/) bad(FILENAME ":1", "does not open with what it is")
}
{ lines = FNR }

# Catalogue: which sites have faults.
!is_source(FILENAME) {
    if (match($0, /^#define FAULTS_[a-z0-9_]+\(M\)/)) wanted[stem_of(FILENAME) " " substr($0, 16, RLENGTH - 18)] = FILENAME
    next
}

/^#pragma once/ { once = 1 }

/^ *# *include +"/ {
    split($0, part, "\"")
    header = name_of(part[2])
    if (header in home) {
        checked++
        if (!allowed(FILENAME, home[header])) bad(FILENAME ":" FNR, "may not include " home[header])
    }
}

within(FILENAME, "tests") { next }

/^\{/ { start = FNR }
/^\}/ {
    if (start && FNR - start > 70) bad(FILENAME ":" start, "function of " FNR - start " lines")
    start = 0
}
/^ *# *if/ { if (++conditions > 1) bad(FILENAME ":" FNR, "second #if") }
length($0) > 100 { bad(FILENAME ":" FNR, "longer than 100 columns") }
/FAULT\(/ {
    rest = $0
    count = 0
    while (match(rest, /(^|[^A-Z_a-z])FAULT\([a-z0-9_]*/)) {
        site = substr(rest, RSTART, RLENGTH)
        sub(/.*\(/, "", site)
        has[stem_of(FILENAME) " " site] = 1
        rest = substr(rest, RSTART + RLENGTH)
        count++
    }
    if (count > 1 && $0 !~ /^#define/) bad(FILENAME ":" FNR, "two FAULT in one line")
}

END {
    check_length(last, lines)
    for (site in wanted) {
        split(site, part, " ")
        if (!(site in has)) bad(wanted[site] ":1", "FAULTS_" part[2] " has no site in a source named " part[1])
        sites++
    }
    if (sources <= 20) bad("tidy:0", "found only " sources + 0 " sources")
    if (checked <= 50) bad("tidy:0", "only " checked + 0 " includes were checked")
    if (sites <= 20) bad("tidy:0", "only " sites + 0 " fault sites were checked")
    printf "tidy: %d sources, %d includes, %d fault sites, %d violations\n", sources, checked, sites, found
    exit found > 0
}
