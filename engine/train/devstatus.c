/* Translates device statuses. Called in this folder; must not know what was enqueued. */
#include "devstatus.h"

enum eng_status eng_train_device(const dev *d, enum dev_status status, struct eng_error *error)
{
    if (status == DEV_OK) {
        return ENG_OK;
    }
    const enum eng_status result = status == DEV_EOOM       ? ENG_EDEVICEMEM
                                   : status == DEV_EHOSTMEM ? ENG_EHOSTMEM
                                                            : ENG_EDEVICE;
    const char *cause = dev_error(d);
    return eng_fail(error, result, "%s%s%s", dev_status_text(status), cause[0] != '\0' ? ": " : "",
                    cause);
}
