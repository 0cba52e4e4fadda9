/* Device statuses as engine statuses, with the device's own sentence. Used by every file of this
 * folder that enqueues operations. */
#pragma once

#include "dev.h"
#include "eng_status.h"

enum eng_status eng_train_device(const dev *d, enum dev_status status, struct eng_error *error);
