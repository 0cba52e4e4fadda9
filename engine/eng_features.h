/* What a run contained: the feature names of corpus/RECIPE.md as bits.
 * Set by the modules that see them, listed in the trace's end record. */
#pragma once

#define ENG_FEATURES(X)                                                                            \
    X(accum) X(accum_unequal) X(packed) X(padded) X(truncated) X(skipped) X(clipped) X(tied)       \
    X(untied) X(gqa) X(two_epochs) X(eval) X(checkpoint) X(resumed) X(multi_turn) X(system)        \
    X(no_system) X(edge_space) X(control_text) X(non_ascii) X(weight_decay) X(warmup) X(decay)     \
    X(pad_is_eos) X(layers2) X(square) X(late_positions) X(lazy) X(pct) X(tasks) X(oom_at)         \
    X(tight) X(joined) X(decomposed) X(lanes) X(prefix_broken) X(split) X(refit) X(weighted)       \
    X(masked_last) X(masked_completion) X(cipher) X(sharegpt) X(alpaca) X(prompts)                 \
    X(alpaca_input) X(compressed) X(members) X(dated) X(by_prefix) X(bos)                          \
    X(composes) X(short_numbers) X(takes_space) X(tools) X(reasoning)

enum eng_feature_index {
#define ENG_ROW_(name) ENG_FEATURE_INDEX_##name,
    ENG_FEATURES(ENG_ROW_)
#undef ENG_ROW_
        ENG_FEATURE_COUNT
};
enum eng_feature_bit {
#define ENG_ROW_(name) ENG_FEATURE_##name = 1ull << ENG_FEATURE_INDEX_##name,
    ENG_FEATURES(ENG_ROW_)
#undef ENG_ROW_
};
