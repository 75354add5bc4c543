// For tests: packed data from lists of token ids.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "train/data/indexed.h"
#include "train/data/pack_info.h"
#include "train/data/test_folder.h"

namespace rondo {

using Documents = std::vector<std::vector<int32_t>>;

// With `eod_id` >= 0 there is a PREFIX.json, as if bytes had been packed.
inline std::string write_dataset(const TestFolder& folder, const std::string& name,
                                 const Documents& documents, int64_t eod_id = -1,
                                 int64_t longest_sequence = INT32_MAX) {
  const std::string prefix = folder.prefix(name);
  IndexedWriter writer(bin_path(prefix), idx_path(prefix), TokenType::kU16, longest_sequence);
  for (const auto& document : documents) {
    writer.add(document);
    writer.end_document();
  }
  writer.finish();
  if (eod_id >= 0)
    folder.write(name + ".json", to_json(PackInfo{"bytes", "", "0", 257, eod_id,
                                                  writer.tokens() - writer.documents(),
                                                  writer.tokens(), writer.documents()}));
  return prefix;
}

// Documents of 0 to `longest` tokens in [1, 100), each ended by eod 0.
inline Documents any_documents(uint64_t seed, uint32_t most, uint32_t longest) {
  Documents out(1 + philox({seed}, 0, 0)[0] % most);
  for (size_t d = 0; d < out.size(); ++d) {
    const uint32_t length = philox({seed}, 1, d)[0] % (longest + 1);
    for (uint32_t i = 0; i < length; ++i)
      out[d].push_back(static_cast<int32_t>(1 + philox({seed}, 2 + d, i)[0] % 99));
    out[d].push_back(0);
  }
  return out;
}

}  // namespace rondo
