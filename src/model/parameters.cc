#include "model/parameters.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "model/families.h"
#include "model/rows.h"

namespace rondo {
namespace {

constexpr int64_t kAlign = 16;  // elements: 64 bytes

int64_t product(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

View part(const View& flat, int64_t offset, const std::vector<int64_t>& shape) {
  RONDO_CHECK(shape.size() <= kMaxRank && offset + product(shape) <= flat.elements(),
              "{} elements at {} of {}", product(shape), offset, flat.elements());
  View v = flat.slice(0, offset, offset + product(shape));
  v.rank = static_cast<int8_t>(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    v.shape[d] = shape[d];
    v.stride[d] = stride;
    stride *= shape[d];
  }
  return v;
}

}  // namespace

int64_t Parameter::elements() const {
  return product(shape);
}

void ParameterTable::add(Parameter row) {
  const std::string name = row.name;
  const std::vector<int64_t> shape = row.shape;
  std::vector<Parameter> rows;
  rows.push_back(std::move(row));
  add_buffer(name, shape, std::move(rows));
}

void ParameterTable::add_buffer(const std::string& name, std::vector<int64_t> shape,
                                std::vector<Parameter> rows) {
  const int64_t begin = (flat_elements_ + kAlign - 1) / kAlign * kAlign;
  int64_t offset = begin;
  for (Parameter& row : rows) {
    row.offset = offset;
    offset += row.elements();
    RONDO_CHECK(index_.emplace(row.name, rows_.size()).second, "two parameters {}", row.name);
    buffers_.emplace(row.name, Buffer{row.offset, row.shape});
    rows_.push_back(std::move(row));
  }
  RONDO_CHECK(offset - begin == product(shape), "buffer {} is not filled", name);
  buffers_.insert_or_assign(name, Buffer{begin, std::move(shape)});
  flat_elements_ = offset;
}

void ParameterTable::add_alias(Parameter row, const std::string& of) {
  const Parameter* original = find(of);
  RONDO_CHECK(original && original->shape == row.shape, "{} as another name of {}", row.name, of);
  row.offset = original->offset;
  row.alias = true;
  row.trained = original->trained;
  row.decay = original->decay;
  RONDO_CHECK(index_.emplace(row.name, rows_.size()).second, "two parameters {}", row.name);
  buffers_.emplace(row.name, Buffer{row.offset, row.shape});
  rows_.push_back(std::move(row));
}

const Parameter* ParameterTable::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &rows_[it->second];
}

int64_t ParameterTable::parameters() const {
  int64_t n = 0;
  for (const Parameter& row : rows_) n += row.alias ? 0 : row.elements();
  return n;
}

View ParameterTable::view(const View& flat, const std::string& name) const {
  const auto it = buffers_.find(name);
  RONDO_CHECK(it != buffers_.end(), "no parameter {}", name);
  return part(flat, it->second.offset, it->second.shape);
}

View ParameterTable::view(const View& flat, const Parameter& row) const {
  return part(flat, row.offset, row.shape);
}

ParameterTable ParameterTable::build(const ModelConfig& config) {
  const Family& family = family_of(config.model_type, "model");
  const std::string embedding = "model.embed_tokens.weight";
  ParameterTable table;
  const auto layer_name = [](int64_t i) { return "model.layers." + std::to_string(i); };
  table.add(matrix(embedding, config.vocab_size, config.hidden_size));
  for (int64_t i = 0; i < config.num_hidden_layers; ++i)
    family.add_layer(config, i, layer_name(i), table);
  table.add(norm_row("model.norm.weight", config.hidden_size));
  const std::string head = config.tie_word_embeddings ? embedding : "lm_head.weight";
  if (!config.tie_word_embeddings) table.add(matrix(head, config.vocab_size, config.hidden_size));
  for (int64_t i = config.num_hidden_layers; i < config.layers(); ++i) {
    const std::string name = layer_name(i);
    table.add_alias(matrix(name + ".embed_tokens.weight", config.vocab_size, config.hidden_size),
                    embedding);
    table.add(norm_row(name + ".enorm.weight", config.hidden_size));
    table.add(norm_row(name + ".hnorm.weight", config.hidden_size));
    table.add(matrix(name + ".eh_proj.weight", config.hidden_size, 2 * config.hidden_size));
    family.add_layer(config, i, name, table);
    table.add(norm_row(name + ".shared_head.norm.weight", config.hidden_size));
    table.add_alias(
        matrix(name + ".shared_head.head.weight", config.vocab_size, config.hidden_size), head);
  }
  table.flat_elements_ = (table.flat_elements_ + kAlign - 1) / kAlign * kAlign;
  return table;
}

std::vector<float> initial_values(const ParameterTable& table, const ModelConfig& config,
                                  uint64_t seed) {
  std::vector<float> flat(static_cast<size_t>(table.flat_elements()), 0);
  for (const Parameter& row : table.rows()) {
    if (row.alias) continue;
    float* out = flat.data() + row.offset;
    if (row.init == Parameter::Init::kOnes) std::fill_n(out, row.elements(), 1.0f);
    if (row.init != Parameter::Init::kNormal) continue;
    const uint64_t name = hash64(row.name);
    for (int64_t i = 0; i < row.elements(); i += 2) {
      const auto pair =
          normal(philox({seed, RandomUse::kInit}, name, static_cast<uint64_t>(i / 2)));
      out[i] = static_cast<float>(pair[0] * config.initializer_range);
      if (i + 1 < row.elements())
        out[i + 1] = static_cast<float>(pair[1] * config.initializer_range);
    }
  }
  return flat;
}

}  // namespace rondo
