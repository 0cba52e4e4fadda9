/* The table on a terminal and the Markdown summary.
 * Called by har_report.c; must not know how results come about. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "har_report.h"

enum { CELL_MAX = 96, COLUMN_COUNT = 8 };

static const char *const titles[COLUMN_COUNT] = {"family", "fault",    "outcome", "first check",
                                                 "steps",  "infected", "curve",   "loss_only"};

/* The last two columns need runs that went on after the first verdict. */
static int columns_of(const struct har_results *r)
{
    return har_results_first_verdict(r) ? COLUMN_COUNT - 2 : COLUMN_COUNT;
}

static void step_cell(int from, int detected, char *cell)
{
    if (detected > 0) {
        snprintf(cell, CELL_MAX, "%d", har_outcome_steps(from, detected));
    } else {
        snprintf(cell, CELL_MAX, "-");
    }
}

/* Steps to detection count from the step in which the site was reached or the run infected. */
static void fill_cells(const struct har_result *e, char cells[COLUMN_COUNT][CELL_MAX])
{
    const int curve = e->check_steps[ORC_CHECK_curve];
    const int loss_only = e->check_steps[ORC_CHECK_loss_only];
    snprintf(cells[0], CELL_MAX, "%s", mut_family_name(e->family));
    snprintf(cells[1], CELL_MAX, "%s", e->id);
    if (e->outcome == HAR_OUTCOME_flaky) {
        snprintf(cells[2], CELL_MAX, "flaky %zu/%zu", e->detected_repeats, e->relevant);
    } else if (strcmp(e->expectation, "KILL") != 0) {
        snprintf(cells[2], CELL_MAX, "%s (%s)", har_outcome_name(e->outcome), e->expectation);
    } else {
        snprintf(cells[2], CELL_MAX, "%s", har_outcome_name(e->outcome));
    }
    snprintf(cells[3], CELL_MAX, "%s",
             e->first_check >= 0 ? orc_check_name((enum orc_check_id)e->first_check) : "-");
    step_cell(e->reached, e->detected, cells[4]);
    if (e->infected > e->detected && e->detected > 0) {
        snprintf(cells[5], CELL_MAX, "before");
    } else {
        step_cell(e->infected, e->infected > 0 ? e->detected : 0, cells[5]);
    }
    step_cell(e->reached, curve, cells[6]);
    step_cell(e->reached, loss_only, cells[7]);
}

static void measure(const struct har_results *r, size_t widths[COLUMN_COUNT])
{
    char cells[COLUMN_COUNT][CELL_MAX];
    for (int k = 0; k < COLUMN_COUNT; k++) {
        widths[k] = strlen(titles[k]);
    }
    for (size_t i = 0; i < r->count; i++) {
        fill_cells(&r->entries[i], cells);
        for (int k = 0; k < COLUMN_COUNT; k++) {
            widths[k] = strlen(cells[k]) > widths[k] ? strlen(cells[k]) : widths[k];
        }
    }
}

static const char *colour_of(const struct har_result *e)
{
    switch (e->outcome) {
    case HAR_OUTCOME_detected:
        return "\033[32m";
    case HAR_OUTCOME_missed:
    case HAR_OUTCOME_flaky:
        return "\033[31m";
    default:
        return "\033[33m";
    }
}

static void add_row(const struct har_result *e, const size_t widths[COLUMN_COUNT], int columns,
                    bool colour, struct har_text *out)
{
    char cells[COLUMN_COUNT][CELL_MAX];
    fill_cells(e, cells);
    for (int k = 0; k < columns; k++) {
        const bool paint = colour && k == 2;
        const int width = (int)widths[k];
        har_text_addf(out, k < 4 ? "%s%s%-*s%s" : "%s%s%*s%s", k > 0 ? "  " : "",
                      paint ? colour_of(e) : "", width, cells[k], paint ? "\033[0m" : "");
    }
    har_text_add(out, "\n");
}

static void add_explanations(const struct har_results *r, struct har_text *out)
{
    bool titled = false;
    for (size_t i = 0; i < r->count; i++) {
        const struct har_result *const e = &r->entries[i];
        if (e->outcome == HAR_OUTCOME_detected || strcmp(e->expectation, "KILL") != 0) {
            continue;
        }
        if (!titled) {
            har_text_add(out, "\nnot detected, and why:\n");
            titled = true;
        }
        har_text_addf(out, "  %s: %s: %s\n", e->id, har_outcome_name(e->outcome),
                      e->reason[0] != '\0'   ? e->reason
                      : e->detail[0] != '\0' ? e->detail
                                             : "not run yet");
        if (e->reproduce[0] != '\0') {
            har_text_addf(out, "    %s\n", e->reproduce);
        }
    }
}

static void add_oracle(const struct har_results *r, struct har_text *out)
{
    size_t killed = 0;
    if (r->oracle_count == 0) {
        return;
    }
    har_text_add(out, "\nfaults of the oracle itself (not part of the rate):\n");
    for (size_t i = 0; i < r->oracle_count; i++) {
        killed += r->oracle[i].killed;
        har_text_addf(out, "  %-32s %-8s %s\n", r->oracle[i].id,
                      r->oracle[i].killed ? "killed" : "alive", r->oracle[i].detail);
    }
    har_text_addf(out, "  killed %zu of %zu\n", killed, r->oracle_count);
}

void har_report_text(const struct har_results *r, const struct har_study *study, bool colour,
                     struct har_text *out)
{
    size_t widths[COLUMN_COUNT];
    const int columns = columns_of(r);
    measure(r, widths);
    har_text_addf(out, "%s%s\n", r->name[0] != '\0' ? "campaign " : "", r->name);
    for (int k = 0; k < columns; k++) {
        har_text_addf(out, k < 4 ? "%s%-*s" : "%s%*s", k > 0 ? "  " : "", (int)widths[k],
                      titles[k]);
    }
    har_text_add(out, "\n");
    for (size_t i = 0; i < r->count; i++) {
        add_row(&r->entries[i], widths, columns, colour, out);
    }
    har_text_add(out, "\nsteps count from the step that first ran the site, infected from the "
                      "first step with other bits (before: found while it was latent)");
    har_text_add(out, columns < COLUMN_COUNT ? "\n"
                                             : ";\ncurve and loss_only: the same count, had that "
                                               "check been alone\n");
    add_explanations(r, out);
    add_oracle(r, out);
    har_text_add(out, "\n");
    har_report_summary(r, study, out);
}

static void add_markdown_row(char cells[COLUMN_COUNT][CELL_MAX], int columns, struct har_text *out)
{
    har_text_add(out, "|");
    for (int k = 0; k < columns; k++) {
        har_text_add(out, " ");
        har_text_add_markdown(out, cells[k]);
        har_text_add(out, " |");
    }
    har_text_add(out, "\n");
}

/* A summary stays below what CI systems show; long catalogues lose their last rows, not their sums.
 */
void har_report_markdown(const struct har_results *r, const struct har_study *study,
                         struct har_text *out)
{
    enum { BYTES_MAX = 900000 };
    struct har_text sums = {0};
    char cells[COLUMN_COUNT][CELL_MAX];
    const int columns = columns_of(r);
    har_report_summary(r, study, &sums);
    har_text_add(out, "## Faultline: ");
    har_text_add_markdown(out, r->name);
    har_text_add(out, "\n\n```\n");
    har_text_add(out, har_text_get(&sums));
    har_text_add(out, "```\n\n");
    har_text_fini(&sums);
    for (int k = 0; k < COLUMN_COUNT; k++) {
        snprintf(cells[k], CELL_MAX, "%s", titles[k]);
    }
    add_markdown_row(cells, columns, out);
    har_text_add(out, columns < COLUMN_COUNT ? "|---|---|---|---|--:|--:|\n"
                                             : "|---|---|---|---|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < r->count && out->size < BYTES_MAX; i++) {
        fill_cells(&r->entries[i], cells);
        add_markdown_row(cells, columns, out);
    }
}
