/* The probe: what a check reports its comparisons to. Internal.
 * One probe serves one check of one case. It either judges against bounds or collects for a
 * calibration; a check cannot tell which, so both see exactly the same comparisons. */
#pragma once

#include "orc_bounds.h"
#include "orc_trace.h"

enum { ORC_STEP_NEVER = 0x7FFFFFFF };

/* A number to be compared with its calibrated scale. */
struct orc_item {
    int step;
    enum orc_regime regime;
    bool pooled;       /* one scale for all steps of the regime */
    const char *group; /* with class_name and part: numbers that share a scale */
    const char *class_name;
    const char *part;    /* with check and regime: numbers that share a bound */
    const char *name;    /* shown in the verdict */
    double floor;        /* smallest meaningful deviation, relative */
    double value;        /* deviation, or level */
    double seen, wanted; /* shown in the verdict */
};

struct orc_calibration;

/* Zero-initialise but for check, verdict, and either bounds or calibration. */
struct orc_probe {
    enum orc_check_id check;
    struct orc_verdict *verdict;
    const struct orc_bounds *bounds;
    struct orc_calibration *calibration;
    size_t *seen;           /* items seen per cell of the bounds; may be NULL */
    int confounded_from;    /* first step without credit, ORC_STEP_NEVER = none */
    bool against_reference; /* set by the check: confounding applies to what it reports now */
    bool confounds;         /* set by the check: its alarm confounds the others */
};

/* err within tol; NaN is not. */
bool orc_accept(double err, double tol);

/* One exact comparison. The text is formed only when it is the first to fail. */
__attribute__((format(printf, 4, 5))) void orc_probe_exact(struct orc_probe *probe, int step,
                                                           bool equal, const char *format, ...);
/* One comparison with a fixed bound. */
void orc_probe_fixed(struct orc_probe *probe, const struct orc_item *item, double bound);
/* One calibrated comparison. Not counted when the bounds do not know the class at this step. */
void orc_probe_deviation(struct orc_probe *probe, const struct orc_item *item);
void orc_probe_level(struct orc_probe *probe, const struct orc_item *item);
/* Says that steps first..last of this group (and part, NULL = every part) were compared: what every
 * healthy run had there must have been seen. */
void orc_probe_expect(struct orc_probe *probe, const char *group, const char *part, int first,
                      int last);

/* Steps to loop over, empty (first > last) when there are none. */
struct orc_range {
    int first, last;
};
struct orc_range orc_range_of(const orc_trace *trace);
struct orc_range orc_range_common(const orc_trace *a, const orc_trace *b);

/* |a - b| / |b|; 0 when both are the same finite number. */
double orc_relative(double a, double b);

/* Collects one number; level as in struct orc_key. Implemented by the calibration. */
void orc_calibration_take(struct orc_calibration *calibration, const struct orc_key *key,
                          const struct orc_item *item);
/* A healthy run failed an exact comparison. */
void orc_calibration_alarm(struct orc_calibration *calibration, enum orc_check_id check, int step,
                           const char *detail);

/* A check reads the case and reports to the probe; missing inputs = no report. */
typedef void orc_check_function(const struct orc_case *c, struct orc_probe *probe);
#define ORC_ROW_(name, kind, text) orc_check_function orc_check_run_##name;
ORC_CHECKS(ORC_ROW_)
#undef ORC_ROW_
orc_check_function *orc_check_run(enum orc_check_id id);

/* A step that both stacks begin with the same weights bit for bit (the first one of training; each
 * one, when the reference follows the subject), or a later one. */
enum orc_regime orc_regime_at(const struct orc_case *c, int step);
/* What follows is compared with the reference. Confounding applies to it, unless the reference
 * trains on the subject's own batches. */
void orc_probe_reference(struct orc_probe *probe, const struct orc_case *c);
/* How far the weights a step starts from are apart: of the parameters after the step before, the
 * largest distance of a tensor (root mean square over its projections) relative to its norm, at
 * least one roundoff. 1 where they are the same bits; NaN when they are not finite; negative when
 * no trace says. */
double orc_drift(const struct orc_case *c, int step);
/* Relative deviation of a scalar of each common step from the reference's, calibrated by step. */
void orc_compare_scalar(const struct orc_case *c, struct orc_probe *probe, enum orc_scalar which);
/* The same divided by the drift. pooled: one scale for all later steps. */
void orc_compare_drifting(const struct orc_case *c, struct orc_probe *probe, enum orc_scalar which,
                          double floor_relative, bool pooled);

/* The traces of a case and the bounds belong to one recipe and seed. bounds may be NULL. */
ORC_CHECKED enum orc_status orc_case_check(const struct orc_case *c, const orc_bounds *bounds,
                                           struct orc_error *error);
