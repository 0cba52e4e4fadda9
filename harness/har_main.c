/* faultline: finds the subcommand, parses its options, turns its status into the exit code. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "har_cmd.h"
#include "har_options.h"

typedef enum har_status command_fn(const struct har_options *options, struct har_error *error);

static command_fn *const commands[HAR_SUBCOMMAND_COUNT] = {
#define HAR_ROW_(name, operands, text) har_cmd_##name,
    HAR_SUBCOMMANDS(HAR_ROW_)
#undef HAR_ROW_
};

static int fail(const char *command, enum har_status status, const struct har_error *error)
{
    if (error->text[0] != '\0') {
        fprintf(stderr, "faultline %s: %s\n", command, error->text);
    }
    return har_status_exit_code(status);
}

int main(int argc, char **argv)
{
    struct har_error error = {{0}};
    struct har_options options;
    enum har_subcommand command;
    signal(SIGPIPE, SIG_IGN);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
                      strcmp(argv[1], "help") == 0)) {
        har_options_overview(stdout);
        return 0;
    }
    if (argc < 2 || !har_subcommand_find(argv[1], &command)) {
        if (argc >= 2) {
            fprintf(stderr, "faultline: unknown command '%s'\n", argv[1]);
        }
        har_options_overview(stderr);
        return har_status_exit_code(HAR_EUSAGE);
    }
    enum har_status status = har_options_parse(command, argc - 1, argv + 1, &options, &error);
    if (status != HAR_OK) {
        fprintf(stderr, "faultline %s: %s (--help shows the options)\n", argv[1], error.text);
        return har_status_exit_code(status);
    }
    if (options.help) {
        har_options_help(command, stdout);
        return 0;
    }
    status = commands[command](&options, &error);
    if (fflush(stdout) != 0 && status == HAR_OK) {
        status = har_fail(&error, HAR_EIO, "standard output cannot be written");
    }
    return status == HAR_OK ? 0 : fail(argv[1], status, &error);
}
