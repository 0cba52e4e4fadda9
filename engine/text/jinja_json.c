/* JSON values as values of templates.
 * Called by tests and benchmarks; must not know templates. */
#include "jinja_json.h"

static struct jv from_array(struct jmem *m, const json_t *json, uint8_t flags)
{
    const size_t count = json_array_size(json);
    const struct jv list = eng_jinja_list(m, J_LIST, count);
    for (size_t i = 0; i < count; i++) {
        eng_jinja_append(m, list, eng_jinja_from_json(m, json_array_get(json, i), flags));
    }
    return list;
}

static struct jv from_object(struct jmem *m, const json_t *json, uint8_t flags)
{
    const struct jv dict = eng_jinja_dict(m, json_object_size(json));
    const char *key = NULL;
    size_t size = 0;
    json_t *value = NULL;
    json_object_keylen_foreach((json_t *)json, key, size, value)
    {
        eng_jinja_set(m, dict, eng_jinja_copy(m, key, size, flags),
                      eng_jinja_from_json(m, value, flags));
    }
    return dict;
}

struct jv eng_jinja_from_json(struct jmem *m, const json_t *json, uint8_t flags)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return from_object(m, json, flags);
    case JSON_ARRAY:
        return from_array(m, json, flags);
    case JSON_STRING:
        return eng_jinja_copy(m, json_string_value(json), json_string_length(json), flags);
    case JSON_INTEGER:
        return jv_int(json_integer_value(json));
    case JSON_REAL:
        return jv_float(json_real_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return jv_bool(json_is_true(json));
    default:
        return jv_none();
    }
}
