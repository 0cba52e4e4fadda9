/* A recipe that has been read: other training files, the loader's options, release.
 * Called by train_main, trainer and eval; must not know YAML. */
#include <stdlib.h>
#include <string.h>

#include "recipe.h"

static void free_list(char **list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        free(list[i]);
    }
    free(list);
}

enum eng_status eng_recipe_replace_train(struct eng_recipe *recipe, const char *const *files,
                                         unsigned count, struct eng_error *error)
{
    char **copies = calloc(count, sizeof *copies);
    bool ok = copies != NULL;
    for (unsigned i = 0; ok && i < count; i++) {
        copies[i] = strdup(files[i]);
        ok = copies[i] != NULL;
    }
    if (!ok) {
        if (copies != NULL) {
            free_list(copies, count);
        }
        return eng_fail(error, ENG_EHOSTMEM, "--data: host memory exhausted");
    }
    free_list(recipe->data.train, recipe->data.train_count);
    recipe->data.train = copies;
    recipe->data.train_count = count;
    free(recipe->data.weights);
    recipe->data.weights = NULL;
    return ENG_OK;
}

void eng_recipe_free(struct eng_recipe *recipe)
{
    if (recipe == NULL) {
        return;
    }
    free(recipe->name);
    free(recipe->model.arch);
    free(recipe->text.tokenizer);
    free(recipe->text.template_name);
    free(recipe->text.template_source);
    free_list(recipe->data.train, recipe->data.train_count);
    free_list(recipe->data.eval, recipe->data.eval_count);
    free(recipe->data.weights);
    free(recipe->data.pad);
    free(recipe);
}

struct eng_loader_options eng_recipe_loader_options(const struct eng_recipe *recipe)
{
    const struct eng_recipe_data *const data = &recipe->data;
    return (struct eng_loader_options){.format = data->format,
                                       .tokenizer_path = recipe->text.tokenizer,
                                       .template_name = recipe->text.template_source,
                                       .mask = recipe->text.mask,
                                       .truncate = data->truncate,
                                       .packing = data->packing,
                                       .order = data->order,
                                       .on_unlearned = data->on_unlearned,
                                       .on_prefix = data->on_prefix,
                                       .pad_token = data->pad,
                                       .context = recipe->model.context,
                                       .vocab = recipe->model.vocab};
}
