/* Writer of traces (oracles/TRACE.md): lines of JSON built piece by piece and written one at a
 * time, compressed when the name ends in .zst. Called by the training loop; knows no meaning. */
#pragma once

#include "ref_error.h"

#include <stddef.h>
#include <stdint.h>

struct orc_ref_trace;

/* Creates the file; an earlier one is replaced by the first line. */
enum orc_ref_status orc_ref_trace_open(const char *path, struct orc_ref_trace **trace,
                                       struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Ends the file; reports a write error once. Accepts NULL. */
enum orc_ref_status orc_ref_trace_close(struct orc_ref_trace *trace,
                                        struct orc_ref_error *error) ORC_REF_MUST_USE;

/* Pieces of a line. Commas are set where needed; a name is needed in an object and NULL in an
 * array. Lack of memory shows at orc_ref_trace_write(). */
void orc_ref_trace_open_object(struct orc_ref_trace *trace, const char *name);
void orc_ref_trace_open_array(struct orc_ref_trace *trace, const char *name);
void orc_ref_trace_close_object(struct orc_ref_trace *trace);
void orc_ref_trace_close_array(struct orc_ref_trace *trace);
void orc_ref_trace_text(struct orc_ref_trace *trace, const char *name, const char *value);
void orc_ref_trace_null(struct orc_ref_trace *trace, const char *name);
void orc_ref_trace_count(struct orc_ref_trace *trace, const char *name, uint64_t value);
void orc_ref_trace_integer(struct orc_ref_trace *trace, const char *name, int64_t value);
void orc_ref_trace_number(struct orc_ref_trace *trace, const char *name, double value);
void orc_ref_trace_hash(struct orc_ref_trace *trace, const char *name, uint64_t value);

/* Writes the line with one flush and starts the next. */
enum orc_ref_status orc_ref_trace_write(struct orc_ref_trace *trace,
                                        struct orc_ref_error *error) ORC_REF_MUST_USE;
