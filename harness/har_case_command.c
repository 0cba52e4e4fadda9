/* Commands of a case's runs: the trainer's, a reference of its own, the user's oracle.
 * Called by har_case.c; must not know what follows a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "har_case.h"
#include "har_external.h"

static enum har_status train_command(struct har_case *c, enum har_role role,
                                     struct har_command *command, struct har_error *error)
{
    const bool repeat = role == HAR_ROLE_repeat;
    char *checkpoints = NULL;
    if (role == HAR_ROLE_subject && c->resume != NULL &&
        asprintf(&checkpoints, "%s/checkpoints", c->folder) < 0) {
        return har_fail(error, HAR_EMEMORY, "no memory for case %s", c->key);
    }
    const struct har_train train = {
        .program = c->variant.lanes  ? c->lab->programs.train_lanes
                   : c->variant.also ? c->lab->campaign.also_train
                                     : c->lab->programs.train,
        .fault = c->entry,
        .weights = c->weights,
        .trace = c->traces[role],
        .checkpoints = checkpoints,
        .resume = role == HAR_ROLE_resumed ? c->resume : NULL,
        .states = role == HAR_ROLE_subject ? c->states : NULL,
        .seed = c->seed,
        .schedule_seed = repeat ? c->seed + HAR_SEED_BLOCK : c->seed,
        .variant = repeat ? har_variant_other(c->variant) : c->variant,
        .threads = repeat && !c->variant.lanes ? 2 : 1, /* fibers of lanes share badly */
        .steps = c->looking ? HAR_LOOK_STEPS : har_lab_steps(c->lab, c->bench),
        .full = true,
    };
    har_lab_train_args(c->lab, c->bench, &train, &command->args);
    free(checkpoints);
    command->timeout_s = c->timeout_s;
    command->memory_mb = c->lab->child_mb;
    return HAR_OK;
}

/* The user's oracle: its words, then the traces that are there. */
static enum har_status external_command(struct har_case *c, struct har_command *command,
                                        struct har_error *error)
{
    const char *reference = c->bench->reference != HAR_REFERENCE_none ? c->reference : NULL;
    if (c->states != NULL) { /* one that follows this run */
        const bool done = c->ends[HAR_ROLE_reference].end == HAR_END_done;
        reference = done ? c->traces[HAR_ROLE_reference] : NULL;
    }
    har_user_words(&c->lab->campaign.external, &command->args);
    har_external_add(&command->args, "subject", c->traces[HAR_ROLE_subject]);
    har_external_add(&command->args, "reference", reference);
    for (int i = HAR_ROLE_repeat; i < HAR_TRAINERS; i++) {
        har_external_add(&command->args, har_role_name((enum har_role)i),
                         c->ends[i].end == HAR_END_done ? c->traces[i] : NULL);
    }
    command->timeout_s = c->lab->campaign.external_timeout_s;
    command->memory_mb = c->lab->child_mb;
    command->answer_path = strdup(c->answer);
    return command->answer_path != NULL
               ? HAR_OK
               : har_fail(error, HAR_EMEMORY, "no memory for case %s", c->key);
}

static void reference_command(const struct har_case *c, struct har_command *command)
{
    const struct har_reference reference = {
        .seed = c->seed, .trace = c->traces[HAR_ROLE_reference], .states = c->states};
    har_artifact_reference_args(c->lab, c->bench, &reference, &command->args);
    command->timeout_s = c->lab->campaign.reference_timeout_s;
}

enum har_status har_case_command(struct har_case *c, enum har_role role,
                                 struct har_command *command, struct har_error *error)
{
    enum har_status status = HAR_OK;
    if (role == HAR_ROLE_reference) {
        reference_command(c, command);
    } else if (role == HAR_ROLE_external) {
        status = external_command(c, command, error);
    } else {
        status = train_command(c, role, command, error);
    }
    command->log_path = strdup(c->logs[role]);
    c->lines[role] = har_command_line(command);
    c->role = (int)role;
    return status == HAR_OK && (c->lines[role] == NULL || command->log_path == NULL)
               ? har_fail(error, HAR_EMEMORY, "no memory for case %s", c->key)
               : status;
}
