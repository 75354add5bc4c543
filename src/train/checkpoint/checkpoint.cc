#include "train/checkpoint/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/hash.h"

namespace rondo {
namespace {

constexpr int64_t kVersion = 1;

// N of "step-N", or -1.
int64_t step_of(const std::string& name) {
  const std::string prefix = "step-";
  if (!name.starts_with(prefix)) return -1;
  int64_t step = -1;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && at == end ? step : -1;
}

std::vector<int64_t> steps_in(const std::string& run) {
  std::vector<int64_t> steps;
  if (!fs::is_directory(run)) return steps;
  for (const auto& entry : fs::directory_iterator(run))
    if (const int64_t step = step_of(entry.path().filename()); step >= 0 && entry.is_directory())
      steps.push_back(step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string hash_of(const fs::path& path) {
  const MappedFile file(path);
  return hex64(hash64(file.bytes()));
}

SafetensorsItem item(const std::string& name, const Parameter& row,
                     const std::vector<float>& flat) {
  return {name, DType::kF32, row.shape, [&flat, &row](std::byte* out) {
            std::memcpy(out, flat.data() + row.offset, static_cast<size_t>(row.elements()) * 4);
          }};
}

std::vector<std::string> files_of(bool masters, bool tokenizer) {
  std::vector<std::string> files = {"config.json", "model.safetensors",
                                    "rondo/optimizer.safetensors"};
  if (masters) files.push_back("rondo/masters.safetensors");
  if (tokenizer) files.push_back("rondo/tokenizer.model");
  return files;
}

void write_files(const std::string& folder, const Snapshot& s, const ParameterTable& table,
                 const ModelConfig& config, DType dtype, const Tokenizer* tokenizer) {
  fs::create_directories(folder + "/rondo");
  save_weights(table, config, s.weights, folder, dtype);
  std::vector<SafetensorsItem> moments, masters;
  for (const Parameter& row : table.rows()) {
    if (row.alias) continue;
    masters.push_back(item(row.name, row, s.weights));
    if (!row.trained) continue;
    moments.push_back(item("m." + row.name, row, s.m));
    moments.push_back(item("v." + row.name, row, s.v));
  }
  write_safetensors(folder + "/rondo/optimizer.safetensors", moments);
  if (dtype != DType::kF32) write_safetensors(folder + "/rondo/masters.safetensors", masters);
  const bool has_file = tokenizer && !tokenizer->model().empty();
  if (has_file) write_file_atomic(folder + "/rondo/tokenizer.model", tokenizer->model());

  Value state{Value::Object{}}, hashes{Value::Object{}};
  state.set("version", kVersion);
  state.set("step", s.state.step);
  state.set("samples", s.state.samples);
  state.set("tokens_seen", s.state.tokens_seen);
  state.set("data", s.state.identity.data);
  state.set("vocab_size", s.state.identity.vocab_size);
  state.set("batch_size", s.state.identity.batch_size);
  state.set("sequence_length", s.state.identity.sequence_length);
  state.set("tokenizer", tokenizer ? tokenizer->kind() : std::string());
  for (const std::string& file : files_of(dtype != DType::kF32, has_file))
    hashes.set(file, hash_of(folder + "/" + file));
  state.set("xxh3", std::move(hashes));
  write_file_atomic(folder + "/rondo/state.json", to_json(state, 2) + "\n");
  fsync_path(folder + "/rondo");
  fsync_path(folder);
}

Value read_state(const std::string& folder) {
  const std::string path = folder + "/rondo/state.json";
  if (!fs::exists(path))
    fail_input("{}: no Rondo checkpoint, for rondo/state.json is missing", folder);
  return parse_json(read_file(path), path);
}

void read_items(const std::string& path, const std::string& prefix, const ParameterTable& table,
                bool trained_only, std::vector<float>& flat) {
  const SafetensorsFile file(path);
  for (const Parameter& row : table.rows()) {
    if (row.alias || (trained_only && !row.trained)) continue;
    const auto it = file.tensors().find(prefix + row.name);
    if (it == file.tensors().end())
      fail_input("{}: tensor {}{} is missing", path, prefix, row.name);
    if (it->second.dtype != DType::kF32 || it->second.shape != row.shape)
      fail_input("{}: tensor {}{} has another shape or dtype than this model's", path, prefix,
                 row.name);
    std::memcpy(flat.data() + row.offset, it->second.data, static_cast<size_t>(it->second.bytes));
  }
}

}  // namespace

void write_checkpoint(const std::string& run, const Snapshot& snapshot, const ParameterTable& table,
                      const ModelConfig& config, DType dtype, const Tokenizer* tokenizer,
                      int64_t keep) {
  const std::string folder = run + "/step-" + std::to_string(snapshot.state.step);
  const std::string unfinished = folder + ".tmp";
  try {
    fs::remove_all(unfinished);
    write_files(unfinished, snapshot, table, config, dtype, tokenizer);
    fs::remove_all(folder);
    fs::rename(unfinished, folder);
    fsync_path(run);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    fail_input("{}: the checkpoint cannot be written: {}", folder, error.code().message());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw;
  }
  std::vector<int64_t> steps = steps_in(run);
  while (static_cast<int64_t>(steps.size()) > keep) {
    fs::remove_all(run + "/step-" + std::to_string(steps.front()));
    steps.erase(steps.begin());
  }
}

std::string latest_checkpoint(const std::string& run) {
  const std::vector<int64_t> steps = steps_in(run);
  return steps.empty() ? "" : run + "/step-" + std::to_string(steps.back());
}

void remove_unfinished(const std::string& run) {
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".tmp") && step_of(name.substr(0, name.size() - 4)) >= 0)
      fs::remove_all(entry.path());
  }
}

Snapshot read_checkpoint(const std::string& folder, const ParameterTable& table,
                         const ModelConfig& config) {
  const Value json = read_state(folder);
  const std::string path = folder + "/rondo/state.json";
  Reader r(json, path);
  if (r.integer("version", {}, 0, INT64_MAX) != kVersion)
    r.fail("version", "is not 1: another Rondo wrote this checkpoint");
  Snapshot s;
  s.state.step = r.integer("step", {}, 0, INT64_MAX);
  s.state.samples = r.integer("samples", {}, 0, INT64_MAX);
  s.state.tokens_seen = r.integer("tokens_seen", {}, 0, INT64_MAX);
  s.state.identity.data = r.text("data", {});
  s.state.identity.vocab_size = r.integer("vocab_size", {}, 1, INT64_MAX);
  s.state.identity.batch_size = r.integer("batch_size", {}, 1, INT64_MAX);
  s.state.identity.sequence_length = r.integer("sequence_length", {}, 1, INT64_MAX);
  const Value* hashes = r.raw("xxh3");
  if (!hashes || !hashes->as_object()) r.fail("xxh3", "is missing");
  bool masters = false;
  for (const auto& [file, hash] : *hashes->as_object()) {
    if (!hash.as_string() || file.starts_with("/") || file.find("..") != std::string::npos)
      r.fail("xxh3", "names no file of this folder: " + file);
    if (!fs::exists(folder + "/" + file)) fail_input("{}/{} is missing", folder, file);
    if (hash_of(folder + "/" + file) != *hash.as_string())
      fail_input("{}/{} is damaged: its hash is not the one in rondo/state.json", folder, file);
    masters = masters || file == "rondo/masters.safetensors";
  }
  const size_t n = static_cast<size_t>(table.flat_elements());
  s.m.assign(n, 0);
  s.v.assign(n, 0);
  if (masters) {
    s.weights.assign(n, 0);
    read_items(folder + "/rondo/masters.safetensors", "", table, false, s.weights);
  } else {
    s.weights = load_weights(table, config, folder);
  }
  read_items(folder + "/rondo/optimizer.safetensors", "m.", table, true, s.m);
  read_items(folder + "/rondo/optimizer.safetensors", "v.", table, true, s.v);
  return s;
}

void check_identity(const RunIdentity& now, const RunIdentity& then, const std::string& folder) {
  const auto differs = [&](const char* what, int64_t a, int64_t b) {
    if (a != b)
      fail_input("{}: was trained with {} {}, this run has {}; resume with what it had", folder,
                 what, b, a);
  };
  differs("vocab_size", now.vocab_size, then.vocab_size);
  differs("batch_size", now.batch_size, then.batch_size);
  differs("sequence_length", now.sequence_length, then.sequence_length);
  if (now.data != then.data)
    fail_input(
        "{}: was trained on other data, or in another order, than this run's; resume with the "
        "data that it had",
        folder);
}

std::unique_ptr<Tokenizer> checkpoint_tokenizer(const std::string& folder) {
  const Value state = read_state(folder);
  const Value* kind = state.find("tokenizer");
  if (!kind || !kind->as_string() || kind->as_string()->empty()) return nullptr;
  const std::string path = folder + "/rondo/tokenizer.model";
  return make_tokenizer(*kind->as_string(), fs::exists(path) ? read_file(path) : "", path);
}

}  // namespace rondo
