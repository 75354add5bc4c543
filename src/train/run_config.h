// The run configuration: one TOML file, every key of which is known.
#pragma once

#include <string>
#include <vector>

#include "base/value.h"
#include "parallel/mesh.h"
#include "parallel/placement.h"
#include "tensor/dtype.h"
#include "train/data/config.h"
#include "train/schedule.h"

namespace rondo {

struct RunConfig {
  // [model]
  std::string folder;             // holds config.json: fresh weights
  std::string init_from;          // a hub folder: its weights
  bool init_missing_mtp = false;  // init_missing = "mtp": MTP layers that it lacks begin fresh
  DataConfig data;                // [data]

  // [train]
  int64_t batch_size = 1;        // sequences a step
  int64_t micro_batch_size = 0;  // sequences at once on a rank; 0: all that the rank has
  uint64_t seed = 0;
  Schedule schedule;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double clip_norm = 1;  // 0: no clipping
  double mtp_loss_weight = 0.3, balance_loss_weight = 0.0001, z_loss_weight = 0;
  double router_bias_update_rate = 0.001;
  double dropout = 0;
  double attention_dropout = -1;  // -1: config.json's
  int64_t eval_interval = 0;      // steps; 0: never during training
  int64_t eval_sequences = 32;    // of the validation data each time; 0: all
  int64_t log_interval = 10;      // steps between lines when output is no terminal

  // [parallel]; 0: derived
  MeshSizes mesh;
  TokenPlacement placement;

  // [moe]
  int64_t wave_tokens = 0;  // copies of tokens that a rank receives in a wave at most; 0: derived

  // [device]
  std::string device = "cpu";
  int64_t threads = 0;  // 0: as many as this process may use
  std::string emu_drop_wait;
  int64_t emu_delay_us = 0;

  // [checkpoint]
  int64_t checkpoint_interval = 0;  // steps; 0: only after the last
  int64_t checkpoint_keep = 2;
  DType checkpoint_dtype = DType::kF32;

  double peak_gflops = 0;  // [precision]; 0: measured at the start
};

// `overrides`: "section.key=value" as --set gives them, applied before reading; a key that is not
// known is refused with the nearest that is.
RunConfig read_run_config(Value toml, const std::string& source,
                          const std::vector<std::string>& overrides);
RunConfig load_run_config(const std::string& path, const std::vector<std::string>& overrides);
// With every default written out: reads back as the same configuration.
std::string to_toml(const RunConfig& config);

}  // namespace rondo
