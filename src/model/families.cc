#include "model/families.h"

#include "base/error.h"
#include "model/deepseek_v3/deepseek_v3.h"
#include "model/qwen3_moe/qwen3_moe.h"

namespace rondo {

std::span<const Family> families() {
  static const Family kFamilies[] = {
      {"deepseek_v3", "DeepseekV3ForCausalLM", deepseek_v3::read, deepseek_v3::add_layer},
      {"qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe::read, qwen3_moe::add_layer},
  };
  return kFamilies;
}

const Family& family_of(const std::string& model_type, const std::string& source) {
  std::string known;
  for (const Family& family : families()) {
    if (model_type == family.model_type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.model_type);
  }
  fail_input("{}: model_type \"{}\" is not supported; supported: {}", source, model_type, known);
}

}  // namespace rondo
