/* faultline replay: a stored run again, with its racing operations as a text timeline. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_cmd.h"
#include "har_replay.h"

enum { PAIRS_SHOWN = 5, BEFORE = 3, AFTER = 3, MIDDLE = 6, COLUMNS_MAX = 8, WIDTH = 25 };

static const char *order_of(const struct har_replay *r, const struct har_replay_race *race)
{
    const size_t first = har_replay_find(r, &race->side[0]).ran;
    const size_t second = har_replay_find(r, &race->side[1]).ran;
    if (first == r->moment_count || second == r->moment_count) {
        return "one of the two did not run";
    }
    return first < second ? "nothing orders them; here the first ran first, by luck"
                          : "nothing orders them; here the second ran first";
}

static void print_pair(const struct har_replay *r, size_t index)
{
    static const char *const names[] = {"first", "second"};
    const struct har_replay_race *const race = &r->races[index];
    printf("\npair %zu of %zu, buffer '%s': %s\n", index + 1, r->race_count, race->buffer,
           order_of(r, race));
    for (int s = 0; s < 2; s++) {
        const struct har_replay_side *const side = &race->side[s];
        char name[80];
        snprintf(name, sizeof name, "'%s'", side->what);
        printf("  %-6s  %-26s on %-8s  step %-4d  %-10s  %s\n", names[s], name, side->stream,
               side->step, strcmp(side->mode, "read_write") == 0 ? "read+write" : side->mode,
               side->where[0] != '\0' ? side->where : "(line unknown)");
    }
}

/* ---- timeline: a column for the host, one for each stream ---- */

struct columns {
    const char *names[COLUMNS_MAX];
    size_t count;
};

static size_t column_of(struct columns *c, const char *stream)
{
    for (size_t i = 0; i < c->count; i++) {
        if (strcmp(c->names[i], stream) == 0) {
            return i;
        }
    }
    if (c->count < COLUMNS_MAX) {
        c->names[c->count++] = stream;
    }
    return c->count - 1;
}

/* One row: issues and the host's accesses stand in the host's column. */
static void print_row(struct columns *c, const struct har_replay_moment *m, char mark)
{
    char text[96];
    const bool on_host = strcmp(m->stream, "host") == 0;
    const size_t column = m->ran || on_host ? column_of(c, m->stream) : 0;
    if (!m->ran && !on_host) {
        snprintf(text, sizeof text, "issue %s", m->what);
    } else {
        snprintf(text, sizeof text, "%s%s%s", mark != ' ' ? "[" : "", m->what,
                 mark != ' ' ? "]" : "");
    }
    printf("%c %4d  ", mark, m->step);
    for (size_t i = 0; i < column; i++) {
        printf("%-*s", WIDTH, "|");
    }
    printf("%.*s\n", WIDTH + 15, text);
}

static char mark_of(const struct har_replay_race *race, const struct har_replay_moment *m)
{
    return m->op == race->side[0].op ? '1' : m->op == race->side[1].op ? '2' : ' ';
}

static bool is_near(size_t i, const size_t *places, size_t count)
{
    for (size_t p = 0; p < count; p++) {
        if (i + BEFORE >= places[p] && i <= places[p] + AFTER) {
            return true;
        }
    }
    return false;
}

static void print_head(struct columns *c, const struct har_replay *r)
{
    (void)column_of(c, "host");
    for (size_t i = 0; i < r->moment_count; i++) {
        (void)column_of(c, r->moments[i].stream);
    }
    printf("\n  step  ");
    for (size_t i = 0; i < c->count; i++) {
        printf("%-*.*s", WIDTH, WIDTH, c->names[i]);
    }
    putchar('\n');
}

static void print_timeline(const struct har_replay *r, const struct har_replay_race *race)
{
    struct columns columns = {.count = 0};
    const struct har_replay_place a = har_replay_find(r, &race->side[0]);
    const struct har_replay_place b = har_replay_find(r, &race->side[1]);
    const size_t places[] = {a.issued, a.ran, b.issued, b.ran};
    size_t skipped = 0;
    if (r->moment_count == 0) {
        printf("\nno timeline: the schedule %s is the machine's\n", r->schedule);
        return;
    }
    print_head(&columns, r);
    for (size_t i = 0; i < r->moment_count; i++) {
        if (!is_near(i, places, sizeof places / sizeof places[0])) {
            skipped++;
            continue;
        }
        if (skipped > 0) {
            printf("        ... %zu moments ...\n", skipped);
            skipped = 0;
        }
        print_row(&columns, &r->moments[i], mark_of(race, &r->moments[i]));
    }
    if (skipped > 0) {
        printf("        ... %zu moments ...\n", skipped);
    }
    printf("[1] and [2] are where the two sides ran; 'issue' is where the host enqueued them\n");
}

static void print_text(const struct har_replay *r, size_t chosen)
{
    printf("run %lld: %s, %s; schedule %s, seed %s: %s after %d steps\n", (long long)r->run.id,
           r->run.key, r->run.role, r->schedule, r->schedule_seed, har_end_text(r->end.end),
           r->steps);
    printf("%llu unordered accesses, %zu distinct pairs\n", (unsigned long long)r->race_total,
           r->race_count);
    for (size_t i = 0; i < r->race_count && i < PAIRS_SHOWN; i++) {
        print_pair(r, i);
    }
    if (chosen >= PAIRS_SHOWN && chosen < r->race_count) {
        print_pair(r, chosen);
    }
    if (r->race_count > PAIRS_SHOWN) {
        printf("\n... and %zu pairs more (--json shows all)\n", r->race_count - PAIRS_SHOWN);
    }
    if (chosen < r->race_count) {
        printf("\ntimeline of pair %zu:", chosen + 1);
        print_timeline(r, &r->races[chosen]);
    }
}

static json_t *side_json(const struct har_replay_side *side)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:I}", "operation", side->what, "stream",
                     side->stream, "mode", side->mode, "where", side->where, "step", side->step,
                     "op", (json_int_t)side->op);
}

static void print_json(const struct har_replay *r)
{
    json_t *const races = json_array();
    for (size_t i = 0; i < r->race_count; i++) {
        const struct har_replay_race *const race = &r->races[i];
        json_array_append_new(races,
                              json_pack("{s:s, s:o, s:o, s:s}", "buffer", race->buffer, "first",
                                        side_json(&race->side[0]), "second",
                                        side_json(&race->side[1]), "order", order_of(r, race)));
    }
    json_t *const o =
        json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:o}", "run", (json_int_t)r->run.id,
                  "case", r->run.key, "role", r->run.role, "schedule", r->schedule, "schedule_seed",
                  r->schedule_seed, "ending", har_end_name(r->end.end), "steps", r->steps,
                  "race_count", (json_int_t)r->race_total, "races", races);
    json_dumpf(o, stdout, JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(o);
}

enum har_status har_cmd_replay(const struct har_options *options, struct har_error *error)
{
    struct har_replay replay;
    enum har_status status = har_replay_do(options, options->operands.items[0], &replay, error);
    if (status == HAR_OK && options->pair > 0 && (size_t)options->pair > replay.race_count) {
        status = har_fail(error, HAR_EUSAGE, "--pair %d: the run has %zu pairs", options->pair,
                          replay.race_count);
    }
    if (status == HAR_OK) {
        if (options->json) {
            print_json(&replay);
        } else {
            print_text(&replay, options->pair > 0 ? (size_t)options->pair - 1 : 0);
        }
        const bool same = strcmp(har_end_name(replay.end.end), replay.run.ending) == 0;
        if (!same && options->schedule == NULL) {
            status = har_fail(error, HAR_EMISMATCH,
                              "the run %s, the stored one is '%s': another trainer, or a schedule "
                              "that cannot be replayed",
                              har_end_text(replay.end.end), replay.run.ending);
        }
    }
    har_replay_fini(&replay);
    return status;
}
