/* results.json and CSV.
 * Called by har_report.c; must not know how results come about. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "har_report.h"
#include "har_report_study.h"

static json_t *step_or_null(int step, int none)
{
    return step > none ? json_integer(step) : json_null();
}

static json_t *checks_of(const struct har_result *e)
{
    json_t *const checks = json_object();
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        json_object_set_new(checks, orc_check_name((enum orc_check_id)i),
                            step_or_null(e->check_steps[i], 0));
    }
    return checks;
}

static json_t *entry_json(const struct har_result *e)
{
    json_t *const o = json_object();
    json_object_set_new(o, "id", json_string(e->id));
    json_object_set_new(o, "fault", json_string(e->fault));
    json_object_set_new(o, "number", json_integer(e->number));
    json_object_set_new(o, "dose", har_report_number(e->dose));
    json_object_set_new(o, "family", json_string(mut_family_name(e->family)));
    json_object_set_new(o, "class", json_string(e->class_));
    json_object_set_new(o, "expectation", json_string(e->expectation));
    json_object_set_new(o, "recipe", har_report_text_or_null(e->recipe));
    json_object_set_new(o, "schedule", json_string(e->schedule));
    json_object_set_new(o, "driver", json_string(e->driver));
    json_object_set_new(o, "horizon", json_integer(e->horizon));
    json_object_set_new(o, "outcome", json_string(har_outcome_name(e->outcome)));
    json_object_set_new(o, "reached_step", step_or_null(e->reached, -1));
    json_object_set_new(o, "infected_step", step_or_null(e->infected, 0));
    json_object_set_new(o, "detected_step", step_or_null(e->detected, 0));
    json_object_set_new(o, "first_check",
                        e->first_check >= 0
                            ? json_string(orc_check_name((enum orc_check_id)e->first_check))
                            : json_null());
    json_object_set_new(o, "checks", checks_of(e));
    json_object_set_new(o, "repeats", json_integer((json_int_t)e->repeats));
    json_object_set_new(o, "repeats_detected", json_integer((json_int_t)e->detected_repeats));
    json_object_set_new(o, "seed", json_integer((json_int_t)e->seed));
    json_object_set_new(o, "blamed_stage", har_report_text_or_null(e->blame));
    json_object_set_new(o, "detail",
                        har_report_text_or_null(e->reason[0] != '\0' ? e->reason : e->detail));
    json_object_set_new(o, "reproduce", har_report_text_or_null(e->reproduce));
    return o;
}

/* Processor seconds by kind of work, elapsed and processor seconds by stage. */
static void add_spent(const struct har_spent *spent, json_t *o)
{
    json_t *const works = json_object();
    json_t *const stages = json_object();
    json_t *const busy = json_object();
    for (int i = 0; i < HAR_WORK_COUNT; i++) {
        json_object_set_new(works, har_work_name((enum har_work)i), json_real(spent->work_s[i]));
    }
    for (int i = 0; i < HAR_STAGE_COUNT; i++) {
        const char *const name = har_stage_name((enum har_stage)i);
        json_object_set_new(stages, name, json_real(spent->stage_s[i]));
        json_object_set_new(busy, name, json_real(spent->stage_busy_s[i]));
    }
    json_object_set_new(o, "seconds_by", works);
    json_object_set_new(o, "seconds_of_stage", stages);
    json_object_set_new(o, "processor_seconds_of_stage", busy);
    json_object_set_new(o, "fault_cases", json_real(spent->cases));
    json_object_set_new(o, "faults_a_minute", har_report_number(har_spent_per_minute(spent)));
}

static json_t *alone_json(const struct har_summary *s)
{
    json_t *const alone = json_object();
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        json_object_set_new(alone, orc_check_name((enum orc_check_id)i),
                            json_integer((json_int_t)s->alone[i]));
    }
    return alone;
}

static json_t *summary_json(const struct har_summary *s, bool first_verdict)
{
    json_t *const o = json_object();
    json_object_set_new(o, "entries", json_integer((json_int_t)s->entries));
    json_object_set_new(o, "faults", json_integer((json_int_t)s->kill));
    for (int i = 0; i < HAR_OUTCOME_COUNT; i++) {
        json_object_set_new(o, har_outcome_name((enum har_outcome)i),
                            json_integer((json_int_t)s->outcomes[i]));
    }
    json_object_set_new(o, "equivalent", json_integer((json_int_t)s->equivalent));
    json_object_set_new(o, "gap", json_integer((json_int_t)s->gap));
    json_object_set_new(o, "detection_rate", har_report_number(s->rate));
    json_object_set_new(o, "detection_rate_low", json_real(s->rate_interval.low));
    json_object_set_new(o, "detection_rate_high", json_real(s->rate_interval.high));
    json_object_set_new(o, "detection_rate_of", json_integer((json_int_t)s->rate_below));
    json_object_set_new(o, "healthy_runs", json_integer((json_int_t)s->healthy_runs));
    json_object_set_new(o, "false_alarms", json_integer((json_int_t)s->false_alarms));
    json_object_set_new(o, "false_alarm_rate_high", json_real(s->alarm_interval.high));
    json_object_set_new(o, "median_steps", har_report_number(s->median_steps));
    json_object_set_new(o, "seconds", json_real(s->seconds));
    if (s->external_asked > 0) {
        json_object_set_new(
            o, "external",
            json_pack("{s:b, s:I, s:I, s:I}", "kills_planted", s->external_killed, "false_alarms",
                      (json_int_t)s->alarms[ORC_CHECK_external].fired, "no_verdict",
                      (json_int_t)s->external_lost, "cases", (json_int_t)s->external_asked));
    }
    add_spent(&s->spent, o);
    json_object_set_new(o, "detected_alone", first_verdict ? json_null() : alone_json(s));
    return o;
}

static json_t *oracle_json(const struct har_results *r)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < r->oracle_count; i++) {
        json_t *const o = json_object();
        json_object_set_new(o, "id", json_string(r->oracle[i].id));
        json_object_set_new(o, "why", json_string(r->oracle[i].why));
        json_object_set_new(o, "killed", json_boolean(r->oracle[i].killed));
        json_object_set_new(o, "detail", json_string(r->oracle[i].detail));
        json_array_append_new(list, o);
    }
    return list;
}

void har_report_json(const struct har_results *r, const struct har_study *study,
                     struct har_text *out)
{
    json_t *const root = json_object();
    json_t *const faults = json_array();
    json_t *const provenance = json_loads(r->provenance, 0, NULL);
    json_object_set_new(root, "schema_version", json_integer(HAR_RESULTS_SCHEMA));
    json_object_set_new(root, "campaign", json_string(r->name));
    json_object_set_new(root, "mode", json_string(r->mode[0] != '\0' ? r->mode : "free"));
    json_object_set_new(root, "plan_hash", json_string(r->plan_hash));
    json_object_set_new(root, "provenance", provenance != NULL ? provenance : json_null());
    json_object_set_new(root, "controls", har_report_text_or_null(r->controls));
    json_object_set_new(root, "runs_stop_at", har_report_text_or_null(r->stop));
    json_object_set_new(root, "summary", summary_json(&r->summary, har_results_first_verdict(r)));
    for (size_t i = 0; i < r->count; i++) {
        json_array_append_new(faults, entry_json(&r->entries[i]));
    }
    json_object_set_new(root, "statistics", har_report_study_json(r, study));
    json_object_set_new(root, "faults", faults);
    json_object_set_new(root, "oracle_faults", oracle_json(r));
    har_report_put_json(out, root);
}

static void add_csv_step(struct har_text *out, int step, int none)
{
    if (step > none) {
        har_text_addf(out, ",%d", step);
    } else {
        har_text_add(out, ",");
    }
}

static void add_csv_row(const struct har_result *e, struct har_text *out)
{
    const char *const texts[] = {mut_family_name(e->family), e->class_, e->expectation, e->recipe,
                                 har_outcome_name(e->outcome)};
    har_text_add_csv(out, e->id);
    har_text_addf(out, ",%u", e->number);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        har_text_add(out, ",");
        har_text_add_csv(out, texts[i]);
    }
    add_csv_step(out, e->reached, -1);
    add_csv_step(out, e->infected, 0);
    add_csv_step(out, e->detected, 0);
    har_text_addf(out, ",%s",
                  e->first_check >= 0 ? orc_check_name((enum orc_check_id)e->first_check) : "");
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        add_csv_step(out, e->check_steps[i], 0);
    }
    har_text_add(out, ",");
    har_text_add_csv(out, e->reason[0] != '\0' ? e->reason : e->detail);
    har_text_add(out, "\r\n");
}

void har_report_csv(const struct har_results *r, const struct har_study *study,
                    struct har_text *out)
{
    (void)study;
    har_text_add(out, "id,number,family,class,expectation,recipe,outcome,reached_step,"
                      "infected_step,detected_step,first_check");
    for (int i = 0; i < ORC_CHECK_COUNT; i++) {
        har_text_addf(out, ",%s", orc_check_name((enum orc_check_id)i));
    }
    har_text_add(out, ",detail\r\n");
    for (size_t i = 0; i < r->count; i++) {
        add_csv_row(&r->entries[i], out);
    }
}
