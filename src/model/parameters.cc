#include "model/parameters.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "model/families.h"
#include "parallel/placement.h"

namespace rondo {
namespace {

// 64 bytes for two-byte elements too, which other tensors of this layout may have.
constexpr int64_t kAlign = 32;  // elements

int64_t aligned(int64_t elements) {
  return (elements + kAlign - 1) / kAlign * kAlign;
}

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

View part(const View& flat, int64_t offset, const std::vector<int64_t>& shape) {
  RONDO_CHECK(shape.size() <= kMaxRank, "rank {}", shape.size());
  View out = flat.slice(0, offset, offset + product(shape));
  out.rank = static_cast<int8_t>(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    out.shape[i] = shape[i];
    out.stride[i] = step;
    step *= shape[i];
  }
  return out;
}

}  // namespace

int64_t Parameter::elements() const {
  return product(shape);
}

ExpertRange held_experts(const ModelConfig& config, int ranks, int rank) {
  const PartRange part = part_range(config.n_routed_experts, ranks, rank);
  return {part.begin, part.end};
}

ParameterTable ParameterTable::build(const ModelConfig& config) {
  return build(config, {0, config.n_routed_experts});
}

ParameterTable ParameterTable::build(const ModelConfig& config, const ExpertRange& experts) {
  ParameterTable table;
  table.experts_ = experts;
  family_of(config).add_parameters(config, table);
  table.join_regions();
  return table;
}

void ParameterTable::join_regions() {
  expert_begin_ = aligned(region_[0]);
  flat_elements_ = region_[1] > 0 ? expert_begin_ + region_[1] : region_[0];
  for (Parameter& row : rows_)
    if (row.expert) row.offset += expert_begin_;
  for (auto& [name, buffer] : buffers_)
    if (buffer.expert) buffer.offset += expert_begin_;
}

int64_t ParameterTable::parameters() const {
  int64_t n = 0;
  for (const Parameter& row : rows_)
    if (!row.alias) n += row.elements();
  return n;
}

const Parameter* ParameterTable::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &rows_[found->second];
}

View ParameterTable::view(const View& flat, const std::string& name) const {
  const auto found = buffers_.find(name);
  RONDO_CHECK(found != buffers_.end(), "no buffer {}", name);
  RONDO_CHECK(flat.rank == 1 && flat.shape[0] == flat_elements_, "{} for {} elements",
              to_string(flat), flat_elements_);
  return part(flat, found->second.offset, found->second.shape);
}

View ParameterTable::view(const View& flat, const Parameter& row) const {
  return view(flat, row.name);
}

void ParameterTable::add(Parameter row) {
  const std::string name = row.name;
  std::vector<int64_t> shape = row.shape;
  add_buffer(name, std::move(shape), {std::move(row)});
}

void ParameterTable::add_buffer(const std::string& name, std::vector<int64_t> shape,
                                std::vector<Parameter> rows) {
  const bool expert = !rows.empty() && rows.front().expert;
  const int64_t begin = aligned(region_[expert ? 1 : 0]);
  int64_t offset = begin;
  for (Parameter& row : rows) {
    row.offset = offset;
    offset += row.elements();
    RONDO_CHECK(index_.emplace(row.name, rows_.size()).second, "row {} stands twice", row.name);
    buffers_.emplace(row.name, Buffer{row.offset, row.shape, expert});
    rows_.push_back(std::move(row));
  }
  RONDO_CHECK(offset - begin == product(shape), "{} rows of {} have {} elements, it has {}",
              rows.size(), name, offset - begin, product(shape));
  buffers_.emplace(name, Buffer{begin, std::move(shape), expert});
  region_[expert ? 1 : 0] = offset;
}

void ParameterTable::add_alias(Parameter row, const std::string& of) {
  const Parameter* target = find(of);
  RONDO_CHECK(target && target->shape == row.shape, "{} as another name of {}", row.name, of);
  row.alias = true;
  row.offset = target->offset;
  row.init = target->init;
  row.decay = target->decay;
  row.trained = target->trained;
  row.keep_f32 = target->keep_f32;
  RONDO_CHECK(index_.emplace(row.name, rows_.size()).second, "row {} stands twice", row.name);
  buffers_.emplace(row.name, Buffer{row.offset, row.shape, false});
  rows_.push_back(std::move(row));
}

void copy_rows(const ParameterTable& from, const std::vector<float>& values,
               const ParameterTable& to, std::vector<float>& out) {
  for (const Parameter& row : to.rows()) {
    if (row.alias) continue;
    if (const Parameter* source = from.find(row.name))
      std::copy_n(values.begin() + source->offset, row.elements(), out.begin() + row.offset);
  }
}

std::vector<float> initial_values(const ParameterTable& table, const ModelConfig& config,
                                  uint64_t seed) {
  std::vector<float> out(static_cast<size_t>(table.flat_elements()), 0.f);
  for (const Parameter& row : table.rows()) {
    if (row.alias) continue;
    float* values = out.data() + row.offset;
    const int64_t n = row.elements();
    switch (row.init) {
      case Parameter::Init::kZeros:
        break;
      case Parameter::Init::kOnes:
        std::fill(values, values + n, 1.f);
        break;
      case Parameter::Init::kNormal: {
        const RandomKey key = {hash64(row.name, seed), RandomUse::kInit};
        for (int64_t i = 0; i < n; i += 2) {
          const auto pair = normal(philox(key, static_cast<uint64_t>(i / 2), 0));
          values[i] = static_cast<float>(config.initializer_range * pair[0]);
          if (i + 1 < n) values[i + 1] = static_cast<float>(config.initializer_range * pair[1]);
        }
      }
    }
  }
  return out;
}

}  // namespace rondo
