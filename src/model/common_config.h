// Reading what the config.json of every family has in common.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/value.h"
#include "model/config.h"

namespace rondo {

// Upper ends of what is read. With them no product of sizes leaves int64, and a hostile file gets a
// clear line instead of an allocation that fails.
constexpr int64_t kMaxWidth = int64_t{1} << 18;    // hidden size, ranks
constexpr int64_t kMaxInner = int64_t{1} << 20;    // intermediate sizes
constexpr int64_t kMaxHeads = int64_t{1} << 12;    // heads, and features of one head
constexpr int64_t kMaxExperts = int64_t{1} << 14;  // of one layer
constexpr int64_t kMaxExpertsInAll = int64_t{1} << 20;
constexpr int64_t kMaxShared = 64;
constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxMtp = 16;

// Vocabulary, widths, layers, norms, heads, RoPE; marks the keys that change nothing as known and
// refuses those that no family supports. Needs `attention` to be set.
void read_common_config(Reader& reader, ModelConfig& config);

// RoPE: rope_theta and rope_scaling as transformers 4 writes them, or rope_parameters as 5 does.
void read_rope_config(Reader& reader, ModelConfig& config);

// An integer that goes by either of two names; both may stand there with the same value.
int64_t integer_by_names(Reader& reader, std::string_view name, std::string_view other,
                         std::optional<int64_t> otherwise, int64_t low, int64_t high);
// A boolean that null would turn into another model than leaving it out: null is refused.
bool flag(Reader& reader, std::string_view key, std::optional<bool> otherwise);
// Keys whose one supported value is this; absent and null count as it.
void only_false(Reader& reader, std::string_view key);
void only_number(Reader& reader, std::string_view key, double value);

// Experts, groups and k against each other. Once all keys are read.
void check_experts(const Reader& reader, const ModelConfig& config);

}  // namespace rondo
