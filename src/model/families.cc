#include "model/families.h"

#include "base/error.h"
#include "model/deepseek_v3/family.h"
#include "model/qwen3_moe/family.h"

namespace rondo {

std::span<const Family> families() {
  static constexpr Family kFamilies[] = {
      {"deepseek_v3", "DeepseekV3ForCausalLM", deepseek_v3::read_config,
       deepseek_v3::add_parameters},
      {"qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe::read_config, qwen3_moe::add_parameters},
  };
  return kFamilies;
}

const Family& family_of(const ModelConfig& config) {
  for (const Family& family : families())
    if (config.model_type == family.model_type) return family;
  RONDO_CHECK(false, "no family {}", config.model_type);
}

}  // namespace rondo
