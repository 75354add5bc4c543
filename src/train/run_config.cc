#include "train/run_config.h"

#include "base/error.h"
#include "base/file.h"

namespace rondo {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;

void set_path(Value& toml, const std::string& text) {
  const size_t equals = text.find('=');
  const size_t dot = text.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot > equals || dot == 0 ||
      dot + 1 == equals)
    fail_input("--set {}: SECTION.KEY=VALUE is wanted, as in --set train.steps=100", text);
  const std::string section = text.substr(0, dot), key = text.substr(dot + 1, equals - dot - 1);
  if (toml.is_null()) toml = Value(Value::Object{});
  const Value* old = toml.find(section);
  Value table = old ? *old : Value(Value::Object{});
  if (!table.as_object()) fail_input("--set {}: {} is no section", text, section);
  table.set(key, parse_toml_value(text.substr(equals + 1)));
  toml.set(section, std::move(table));
}

void read_model(Reader r, RunConfig& c) {
  c.folder = r.text("folder", "");
  c.init_from = r.text("init_from", "");
  if (c.folder.empty() == c.init_from.empty())
    r.fail("folder", "or model.init_from is wanted, one of the two");
  c.init_missing_mtp = r.choice("init_missing", "", {"", "mtp"}) == "mtp";
  if (c.init_missing_mtp && c.init_from.empty()) r.fail("init_missing", "wants model.init_from");
  r.finish();
}

void read_train(Reader r, RunConfig& c) {
  Schedule& s = c.schedule;
  s.steps = r.integer("steps", {}, 1, kMost);
  c.batch_size = r.integer("batch_size", {}, 1, 1 << 24);
  c.micro_batch_size = r.integer("micro_batch_size", 0, 0, 1 << 24);
  if (c.micro_batch_size > 0 && c.batch_size % c.micro_batch_size != 0)
    r.fail("micro_batch_size", "is " + std::to_string(c.micro_batch_size) +
                                   "; it must divide batch_size, " + std::to_string(c.batch_size));
  c.seed = static_cast<uint64_t>(r.integer("seed", 0, 0, INT64_MAX));
  s.learning_rate = r.number("learning_rate", 1e-3, 0, 100);
  s.min_ratio = r.number("min_learning_rate_ratio", 0.1, 0, 1);
  s.kind = r.choice("schedule", "cosine", {"cosine", "wsd"}) == "wsd" ? Schedule::Kind::kWsd
                                                                      : Schedule::Kind::kCosine;
  s.warmup_steps = r.integer("warmup_steps", 0, 0, s.steps);
  s.decay_steps = r.integer("decay_steps", s.kind == Schedule::Kind::kWsd ? s.steps / 10 : 0, 0,
                            s.steps - s.warmup_steps);
  c.beta1 = r.number("beta1", 0.9, 0, 0.999999);
  c.beta2 = r.number("beta2", 0.95, 0, 0.999999999);
  c.eps = r.number("eps", 1e-8, 1e-30, 1);
  c.weight_decay = r.number("weight_decay", 0.1, 0, 100);
  c.clip_norm = r.number("clip_norm", 1.0, 0, 1e9);
  c.mtp_loss_weight = r.number("mtp_loss_weight", 0.3, 0, 100);
  c.balance_loss_weight = r.number("balance_loss_weight", 1e-4, 0, 100);
  c.z_loss_weight = r.number("z_loss_weight", 0.0, 0, 100);
  c.router_bias_update_rate = r.number("router_bias_update_rate", 1e-3, 0, 100);
  c.dropout = r.number("dropout", 0.0, 0, 0.999);
  c.attention_dropout =
      r.has("attention_dropout") ? r.number("attention_dropout", {}, 0, 0.999) : -1;
  c.eval_interval = r.integer("eval_interval", 0, 0, kMost);
  c.eval_sequences = r.integer("eval_sequences", 32, 0, kMost);
  c.log_interval = r.integer("log_interval", 10, 1, kMost);
  r.finish();
}

void read_parallel(Reader r, RunConfig& c) {
  c.mesh.data = r.integer("data", 0, 0, 1 << 20);
  c.mesh.context = r.integer("context", 0, 0, 1 << 20);
  c.mesh.expert = r.integer("expert", 0, 0, 1 << 20);
  if (r.integer("tensor", 0, 0, 1 << 20) > 1)
    r.fail("tensor", "is above 1; data, context and expert are the axes there are so far");
  c.placement = parse_placement(r.text("placement", "zigzag"));
  r.finish();
}

void read_rest(Reader& top, RunConfig& c) {
  Reader moe = top.section("moe");
  c.wave_tokens = moe.integer("wave_tokens", 0, 0, kMost);
  moe.finish();
  Reader device = top.section("device");
  c.device = device.text("device", "cpu");
  c.threads = device.integer("threads", 0, 0, 4096);
  c.emu_drop_wait = device.text("emu_drop_wait", "");
  c.emu_delay_us = device.integer("emu_delay_us", 0, 0, 1'000'000);
  device.finish();
  Reader checkpoint = top.section("checkpoint");
  c.checkpoint_interval = checkpoint.integer("interval", 0, 0, kMost);
  c.checkpoint_keep = checkpoint.integer("keep", 2, 1, 1 << 20);
  c.checkpoint_dtype = *dtype_from_name(checkpoint.choice("dtype", "f32", {"f32", "bf16"}));
  checkpoint.finish();
  Reader precision = top.section("precision");
  c.peak_gflops = precision.number("peak_gflops", 0.0, 0, 1e12);
  precision.finish();
}

}  // namespace

RunConfig read_run_config(Value toml, const std::string& source,
                          const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) set_path(toml, text);
  Reader top(toml, source);
  RunConfig c;
  read_model(top.section("model"), c);
  read_train(top.section("train"), c);
  read_parallel(top.section("parallel"), c);
  read_rest(top, c);
  c.data = read_data_config(top.section("data"), static_cast<int64_t>(c.seed));
  if (c.eval_interval > 0 && c.data.validation.empty())
    fail_input("{}: train.eval_interval is {} but data.validation names no data", source,
               c.eval_interval);
  top.finish();
  return c;
}

RunConfig load_run_config(const std::string& path, const std::vector<std::string>& overrides) {
  return read_run_config(parse_toml(read_file(path), path), path, overrides);
}

std::string to_toml(const RunConfig& c) {
  Value model{Value::Object{}}, train{Value::Object{}}, device{Value::Object{}};
  Value checkpoint{Value::Object{}}, precision{Value::Object{}}, top{Value::Object{}};
  Value parallel{Value::Object{}}, moe{Value::Object{}};
  if (!c.folder.empty()) model.set("folder", c.folder);
  if (!c.init_from.empty()) model.set("init_from", c.init_from);
  if (c.init_missing_mtp) model.set("init_missing", "mtp");
  const Schedule& s = c.schedule;
  train.set("steps", s.steps);
  train.set("batch_size", c.batch_size);
  train.set("micro_batch_size", c.micro_batch_size);
  train.set("seed", static_cast<int64_t>(c.seed));
  train.set("learning_rate", s.learning_rate);
  train.set("min_learning_rate_ratio", s.min_ratio);
  train.set("schedule", s.kind == Schedule::Kind::kWsd ? "wsd" : "cosine");
  train.set("warmup_steps", s.warmup_steps);
  train.set("decay_steps", s.decay_steps);
  train.set("beta1", c.beta1);
  train.set("beta2", c.beta2);
  train.set("eps", c.eps);
  train.set("weight_decay", c.weight_decay);
  train.set("clip_norm", c.clip_norm);
  train.set("mtp_loss_weight", c.mtp_loss_weight);
  train.set("balance_loss_weight", c.balance_loss_weight);
  train.set("z_loss_weight", c.z_loss_weight);
  train.set("router_bias_update_rate", c.router_bias_update_rate);
  train.set("dropout", c.dropout);
  if (c.attention_dropout >= 0) train.set("attention_dropout", c.attention_dropout);
  train.set("eval_interval", c.eval_interval);
  train.set("eval_sequences", c.eval_sequences);
  train.set("log_interval", c.log_interval);
  if (c.mesh.data > 0) parallel.set("data", c.mesh.data);
  if (c.mesh.context > 0) parallel.set("context", c.mesh.context);
  if (c.mesh.expert > 0) parallel.set("expert", c.mesh.expert);
  parallel.set("placement", to_string(c.placement));
  moe.set("wave_tokens", c.wave_tokens);
  device.set("device", c.device);
  device.set("threads", c.threads);
  if (!c.emu_drop_wait.empty()) device.set("emu_drop_wait", c.emu_drop_wait);
  if (c.emu_delay_us > 0) device.set("emu_delay_us", c.emu_delay_us);
  checkpoint.set("interval", c.checkpoint_interval);
  checkpoint.set("keep", c.checkpoint_keep);
  checkpoint.set("dtype", name_of(c.checkpoint_dtype));
  precision.set("peak_gflops", c.peak_gflops);
  top.set("model", std::move(model));
  top.set("data", to_value(c.data));
  top.set("train", std::move(train));
  top.set("parallel", std::move(parallel));
  top.set("moe", std::move(moe));
  top.set("device", std::move(device));
  top.set("checkpoint", std::move(checkpoint));
  top.set("precision", std::move(precision));
  return rondo::to_toml(top);
}

}  // namespace rondo
