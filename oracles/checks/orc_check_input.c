/* Checks text, tokens, labels, order: what the model was given, exactly.
 * Called through the table of checks; must not know bounds. Steps align by index, records by id. */
#include "orc_probe.h"

#include <inttypes.h>
#include <string.h>

/* The reference's record of the same id: at the same place if it is there, else anywhere. */
static const struct orc_record *partner(const orc_trace *reference, const struct orc_step *step,
                                        size_t index, const char *id)
{
    if (step != NULL && index < step->record_count && strcmp(step->records[index].id, id) == 0) {
        return &step->records[index];
    }
    return orc_trace_record(reference, id);
}

void orc_check_run_text(const struct orc_case *c, struct orc_probe *probe)
{
    probe->confounds = true;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        for (size_t i = 0; mine != NULL && i < mine->record_count; i++) {
            const struct orc_record *a = &mine->records[i];
            const struct orc_record *b = partner(c->reference, theirs, i, a->id);
            if (b == NULL || !b->text_given) {
                continue;
            }
            if (!a->text_given) {
                orc_probe_exact(probe, s, false, "record \"%.60s\": no hash of its text", a->id);
            } else {
                orc_probe_exact(probe, s, a->text == b->text,
                                "record \"%.60s\": bytes hash to %016" PRIx64
                                ", expected %016" PRIx64,
                                a->id, a->text, b->text);
            }
        }
    }
}

static bool same_records(const struct orc_step *a, const struct orc_step *b)
{
    if (!a->records_given || !b->records_given || a->record_count != b->record_count) {
        return a->records_given == b->records_given && a->record_count == b->record_count;
    }
    for (size_t i = 0; i < a->record_count; i++) {
        if (a->records[i].epoch != b->records[i].epoch ||
            strcmp(a->records[i].id, b->records[i].id) != 0) {
            return false;
        }
    }
    return true;
}

/* One hash per micro-batch. What the reference says and the run does not is a difference: a
 * comparison of nothing must not pass. */
static void compare_batch(struct orc_probe *probe, const struct orc_step *a,
                          const struct orc_step *b, enum orc_batch which)
{
    const struct orc_hash_list *x = &a->batch[which], *y = &b->batch[which];
    if (!y->given) {
        return;
    }
    if (!x->given) {
        orc_probe_exact(probe, a->number, false, "the step has no %s", orc_batch_name(which));
        return;
    }
    orc_probe_exact(probe, a->number, x->count == y->count, "%s: %zu micro-batches, expected %zu",
                    orc_batch_name(which), x->count, y->count);
    for (size_t i = 0; i < x->count && i < y->count; i++) {
        orc_probe_exact(probe, a->number, x->items[i] == y->items[i],
                        "%s of micro-batch %zu: hash %016" PRIx64 ", expected %016" PRIx64,
                        orc_batch_name(which), i, x->items[i], y->items[i]);
    }
}

static void compare_count(struct orc_probe *probe, const struct orc_step *a,
                          const struct orc_step *b, enum orc_scalar which)
{
    if (b->scalar[which].given && !a->scalar[which].given) {
        orc_probe_exact(probe, a->number, false, "the step has no %s", orc_scalar_name(which));
    } else if (b->scalar[which].given) {
        orc_probe_exact(probe, a->number, orc_same_number(a->scalar[which], b->scalar[which]),
                        "%s is %.17g, expected %.17g", orc_scalar_name(which),
                        a->scalar[which].value, b->scalar[which].value);
    }
}

static void record_tokens(const struct orc_case *c, struct orc_probe *probe,
                          const struct orc_step *mine, const struct orc_step *theirs)
{
    for (size_t i = 0; i < mine->record_count; i++) {
        const struct orc_record *a = &mine->records[i];
        const struct orc_record *b = partner(c->reference, theirs, i, a->id);
        if (b == NULL) {
            continue;
        }
        if ((b->count_given && !a->count_given) || (b->tokens_given && !a->tokens_given)) {
            orc_probe_exact(probe, mine->number, false,
                            "record \"%.60s\": no count or no hash of its tokens", a->id);
        }
        if (a->count_given && b->count_given) {
            orc_probe_exact(probe, mine->number, a->count == b->count,
                            "record \"%.60s\": %" PRId64 " tokens, expected %" PRId64, a->id,
                            a->count, b->count);
        }
        if (a->tokens_given && b->tokens_given) {
            orc_probe_exact(probe, mine->number, a->tokens == b->tokens,
                            "record \"%.60s\": tokens hash to %016" PRIx64 ", expected %016" PRIx64,
                            a->id, a->tokens, b->tokens);
        }
    }
}

/* The batch of a step is compared when it holds the same records; else the difference is order's.
 */
void orc_check_run_tokens(const struct orc_case *c, struct orc_probe *probe)
{
    probe->confounds = true;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        if (mine == NULL) {
            continue;
        }
        record_tokens(c, probe, mine, theirs);
        if (theirs != NULL && same_records(mine, theirs)) {
            compare_batch(probe, mine, theirs, ORC_BATCH_ids);
        }
    }
}

void orc_check_run_labels(const struct orc_case *c, struct orc_probe *probe)
{
    probe->confounds = true;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        if (mine == NULL || theirs == NULL) {
            continue;
        }
        /* An evaluation that did not take place is missed by loss: no difference of the input. */
        if (mine->scalar[ORC_SCALAR_eval_loss].given) {
            compare_count(probe, mine, theirs, ORC_SCALAR_eval_supervised);
        }
        if (same_records(mine, theirs)) {
            compare_batch(probe, mine, theirs, ORC_BATCH_labels);
            compare_batch(probe, mine, theirs, ORC_BATCH_positions);
            compare_batch(probe, mine, theirs, ORC_BATCH_segments);
            compare_count(probe, mine, theirs, ORC_SCALAR_supervised);
        }
    }
}

/* Whether any step of a trace tells its records. */
static bool tells_records(const orc_trace *trace)
{
    for (size_t i = 0; trace != NULL && i < trace->step_count; i++) {
        if (trace->steps[i].records_given) {
            return true;
        }
    }
    return false;
}

/* Why records were skipped: only where both say so, for skipped records that are the same. */
static void compare_reasons(struct orc_probe *probe, const struct orc_step *a,
                            const struct orc_step *b)
{
    if (b->skip_reasons_given && !a->skip_reasons_given) {
        orc_probe_exact(probe, a->number, false, "the step has no skip_reasons");
    }
    const bool both = a->skip_reasons_given && b->skip_reasons_given;
    for (size_t i = 0; both && i < a->skipped_count && i < b->skipped_count; i++) {
        orc_probe_exact(probe, a->number, strcmp(a->skip_reasons[i], b->skip_reasons[i]) == 0,
                        "\"%.60s\" skipped as %.20s, expected %.20s", a->skipped[i],
                        a->skip_reasons[i], b->skip_reasons[i]);
    }
}

static void compare_order(struct orc_probe *probe, const struct orc_step *a,
                          const struct orc_step *b)
{
    if (a->records_given && b->records_given) {
        orc_probe_exact(probe, a->number, a->record_count == b->record_count,
                        "%zu records, expected %zu", a->record_count, b->record_count);
        for (size_t i = 0; i < a->record_count && i < b->record_count; i++) {
            const struct orc_record *x = &a->records[i], *y = &b->records[i];
            orc_probe_exact(probe, a->number, x->epoch == y->epoch && strcmp(x->id, y->id) == 0,
                            "record %zu is \"%.60s\" of epoch %" PRId64
                            ", expected \"%.60s\" of epoch %" PRId64,
                            i, x->id, x->epoch, y->id, y->epoch);
        }
    }
    if (b->skipped_given && !a->skipped_given) {
        orc_probe_exact(probe, a->number, false, "the step has no skipped");
    } else if (b->skipped_given) {
        orc_probe_exact(probe, a->number, a->skipped_count == b->skipped_count,
                        "%zu records skipped, expected %zu", a->skipped_count, b->skipped_count);
        for (size_t i = 0; i < a->skipped_count && i < b->skipped_count; i++) {
            orc_probe_exact(probe, a->number, strcmp(a->skipped[i], b->skipped[i]) == 0,
                            "skipped \"%.60s\", expected \"%.60s\"", a->skipped[i], b->skipped[i]);
        }
    }
    compare_reasons(probe, a, b);
}

void orc_check_run_order(const struct orc_case *c, struct orc_probe *probe)
{
    probe->confounds = true;
    const struct orc_range range = orc_range_common(c->subject, c->reference);
    const bool told = tells_records(c->reference); /* a stack may say nothing of records at all */
    for (int s = range.first; s <= range.last; s++) {
        const struct orc_step *mine = orc_trace_step(c->subject, s);
        const struct orc_step *theirs = orc_trace_step(c->reference, s);
        if (mine == NULL || theirs == NULL) {
            orc_probe_exact(probe, s, mine == theirs, "step missing in %s",
                            mine == NULL ? "the run" : "the reference");
            continue;
        }
        orc_probe_exact(probe, s, mine->repeats == theirs->repeats, "step repeated %d times",
                        mine->repeats);
        if (told && mine->records_given != theirs->records_given) {
            orc_probe_exact(probe, s, false, "step without records in %s",
                            mine->records_given ? "the reference" : "the run");
        }
        compare_order(probe, mine, theirs);
    }
    /* Who died may stop early; who came to its end has done every step. */
    if (range.first <= range.last && orc_trace_ended(c->subject) && orc_trace_ended(c->reference)) {
        const int mine = orc_trace_last_step(c->subject);
        const int theirs = orc_trace_last_step(c->reference);
        if (mine != theirs) {
            orc_probe_exact(probe, range.last + 1, false, "step missing in %s",
                            mine < theirs ? "the run" : "the reference");
        }
    }
}
