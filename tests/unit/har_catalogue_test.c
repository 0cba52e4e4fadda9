/* Tests of catalogues that a trainer of the user publishes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "har_catalogue.h"

static const char good[] =
    "[{\"id\": \"a.b\", \"family\": \"loss\", \"class\": \"gradient\", \"why\": "
    "\"w\"},"
    "{\"id\": \"c\", \"number\": 77, \"family\": \"data\", \"class\": \"order\", \"why\": \"v\","
    " \"expectation\": \"GAP\", \"reason\": \"known\", \"faulty\": \"x\", \"healthy\": \"y\","
    " \"file\": \"src/train.py\", \"line\": 12, \"source\": \"https://example.org\","
    " \"trigger\": \"packed\","
    " \"dose\": {\"unit\": \"relative\", \"smallest\": 0.001, \"usual\": 0.5, \"largest\": 2}}]";

Test(har_catalogue, what_is_published_is_what_is_planned)
{
    struct har_catalogue c;
    struct har_error error = {""};
    cr_assert_eq(har_catalogue_parse(good, "conf/campaign.yaml", "mine", &c, &error), HAR_OK, "%s",
                 error.text);
    cr_assert_eq(har_catalogue_count(&c), 2);
    const struct mut_fault *const a = har_catalogue_find(&c, "a.b");
    const struct mut_fault *const b = har_catalogue_find(&c, "c");
    cr_assert(a != NULL && b != NULL);
    cr_expect_eq(a->number, 1);
    cr_expect_eq(a->expect, MUT_EXPECT_KILL);
    cr_expect_str_eq(a->trigger, "");
    cr_expect_null(a->dose.unit);
    cr_expect_null(har_catalogue_site(&c, a));
    cr_expect_eq(b->number, 77);
    cr_expect_eq(b->family, MUT_FAMILY_DATA);
    cr_expect_eq(b->class_, MUT_CLASS_ORDER);
    cr_expect_eq(b->expect, MUT_EXPECT_GAP);
    cr_expect_str_eq(b->expect_reason, "known");
    cr_expect_str_eq(b->trigger, "packed");
    cr_expect_eq(b->dose.usual, 0.5f);
    const struct mut_site_info *const site = har_catalogue_site(&c, b);
    cr_assert_not_null(site);
    cr_expect_str_eq(site->file, "conf/src/train.py");
    cr_expect_eq(site->line, 12);
    cr_expect_str_eq(site->healthy, "y");
    cr_expect_null(har_catalogue_find(&c, "adamw_mean.uncorrected"),
                   "the registry is not mixed in");

    /* What is stored says the same, files resolved once; another text is another plan. */
    struct har_catalogue again;
    char *const text = har_catalogue_text(&c);
    cr_assert_eq(har_catalogue_parse(text, NULL, "stored", &again, &error), HAR_OK, "%s",
                 error.text);
    cr_expect_str_eq(har_catalogue_site(&again, har_catalogue_find(&again, "c"))->file,
                     "conf/src/train.py");
    cr_expect_neq(c.hash, again.hash);
    free(text);
    har_catalogue_fini(&again);
    har_catalogue_fini(&c);
}

Test(har_catalogue, nothing_published_is_the_registry)
{
    const struct har_catalogue c = {0};
    cr_expect_eq(har_catalogue_count(&c), mut_fault_count());
    const struct mut_fault *const fault = har_catalogue_find(&c, "adamw_mean.uncorrected");
    cr_assert_not_null(fault);
    cr_expect_not_null(har_catalogue_site(&c, fault));
    cr_expect_null(har_catalogue_find(&c, "a.b"));
    cr_expect_null(har_catalogue_site(&c, NULL));
    cr_expect_null(har_catalogue_text(&c));
}

Test(har_catalogue, bad_publications_are_errors_that_name_fault_and_cause)
{
#define ONE(members) "[{" members "}]"
#define TEN "0123456789"
#define BASE "\"id\": \"a\", \"family\": \"loss\", \"class\": \"loss\", \"why\": \"w\""
    static const struct {
        const char *text, *cause;
    } rows[] = {
        {"", "no JSON"},
        {"warning: no device\n{}", "no JSON"},
        {"[]", "list of faults"},
        {"{}", "list of faults"},
        {"{\"faults\": [1]}", "list of faults"},
        {"[3]", "no object"},
        {ONE("\"family\": \"loss\", \"class\": \"loss\", \"why\": \"w\""), "id"},
        {ONE("\"id\": 3"), "id"},
        {ONE("\"id\": \"\""), "an id has"},
        {ONE("\"id\": \"none\""), "an id has"},
        {ONE("\"id\": \"../up\""), "an id has"},
        {ONE("\"id\": \"a:1\""), "an id has"},
        {ONE("\"id\": \".hidden\""), "an id has"},
        {ONE("\"id\": \"" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "x\""), "an id has"},
        {ONE("\"id\": \"a\", \"id\": \"b\""), "no JSON"},
        {ONE("\"id\": \"a\", \"class\": \"loss\", \"why\": \"w\""), "family"},
        {ONE("\"id\": \"a\", \"family\": \"mine\", \"class\": \"loss\", \"why\": \"w\""), "mine"},
        {ONE("\"id\": \"a\", \"family\": \"loss\", \"class\": \"mine\", \"why\": \"w\""), "class"},
        {ONE("\"id\": \"a\", \"family\": \"loss\", \"class\": \"loss\""), "why"},
        {ONE(BASE ", \"colour\": \"red\""), "unknown key colour"},
        {ONE(BASE ", \"expectation\": \"MAYBE\""), "MAYBE"},
        {ONE(BASE ", \"expectation\": \"GAP\""), "reason"},
        {ONE(BASE ", \"number\": 0"), "number"},
        {ONE(BASE ", \"number\": 3000000000"), "number"},
        {ONE(BASE ", \"number\": 1.0"), "number"},
        {ONE(BASE ", \"faulty\": 3"), "faulty"},
        {ONE(BASE ", \"line\": \"4\""), "line"},
        {ONE(BASE ", \"dose\": {\"unit\": \"u\"}"), "dose"},
        {ONE(BASE ", \"dose\": {\"unit\": \"u\", \"smallest\": 2, \"usual\": 1, \"largest\": 3}"),
         "dose"},
        {ONE(BASE ", \"dose\": {\"unit\": \"u\", \"smallest\": 1, \"usual\": 1, \"largest\": 1, "
                  "\"other\": 1}"),
         "dose"},
        {ONE(BASE
             ", \"dose\": {\"unit\": \"u\", \"smallest\": 1, \"usual\": 1, \"largest\": 1e99}"),
         "dose"},
        {"[{" BASE "}, {" BASE "}]", "has the id"},
        {"[{" BASE ", \"number\": 2}, {\"id\": \"b\", \"family\": \"loss\", \"class\": \"loss\", "
         "\"why\": \"w\"}]",
         "has the id or number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct har_catalogue c;
        struct har_error error = {""};
        cr_expect_eq(har_catalogue_parse(rows[i].text, NULL, "mine", &c, &error), HAR_EUSAGE, "%s",
                     rows[i].text);
        cr_expect_not_null(strstr(error.text, rows[i].cause), "%s: %s", rows[i].text, error.text);
        cr_expect_not_null(strstr(error.text, "mine"), "%s", error.text);
        cr_expect_eq(c.count, 0);
    }
}
