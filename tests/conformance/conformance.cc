#include "conformance.h"

#include <hwy/highway.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

#include "base/random.h"
#include "tensor/place.h"

namespace rondo::testing {
namespace {

constexpr int64_t kGuard = 64;  // bytes on each side of a view

struct Line {
  double error = 0;
  int runs = 0;
};
std::map<std::string, Line>& table() {
  static std::map<std::string, Line> lines;
  return lines;
}

struct PrintTable : ::testing::Environment {
  void TearDown() override {
    if (table().empty()) return;
    std::printf("%-24s %-12s %-10s %12s %6s\n", "operation", "by", "on", "worst error", "runs");
    for (const auto& [key, line] : table())
      std::printf("%s %12.3g %6d\n", key.c_str(), line.error, line.runs);
  }
};
const auto* const kPrint = ::testing::AddGlobalTestEnvironment(new PrintTable);

void poison(std::vector<uint8_t>& bytes) {
  std::memset(bytes.data(), 0xff, bytes.size());  // NaN in every floating dtype
}

int64_t offset_of(const View& view, int64_t i) {
  int64_t offset = 0;
  for (int d = view.rank - 1; d >= 0; --d) {
    offset += i % view.shape[d] * view.stride[d];
    i /= view.shape[d];
  }
  return offset;
}

}  // namespace

View Buffers::make(DType dtype, std::initializer_list<int64_t> shape, int64_t gap) {
  View view(nullptr, dtype, Memory::kHost, shape);
  if (gap > 0) {
    RONDO_CHECK(view.rank >= 2, "a gap wants rows");
    view.stride[view.rank - 2] += gap;
    for (int d = view.rank - 3; d >= 0; --d)
      view.stride[d] = view.stride[d + 1] * view.shape[d + 1];
  }
  const int64_t size = static_cast<int64_t>(size_of(dtype));
  int64_t span = view.elements() > 0 ? 1 : 0;
  if (span)
    for (int d = 0; d < view.rank; ++d) span += (view.shape[d] - 1) * view.stride[d];
  Block& block = blocks_.emplace_back();
  block.bytes.resize(static_cast<size_t>(span * size + 2 * kGuard));
  block.inside.assign(block.bytes.size(), 0);
  poison(block.bytes);
  for (int64_t i = 0; i < view.elements(); ++i)
    std::memset(block.inside.data() + kGuard + offset_of(view, i) * size, 1,
                static_cast<size_t>(size));
  view.data = block.bytes.data() + kGuard;
  block.before = block.bytes;
  return view;
}

View Buffers::random(std::initializer_list<int64_t> shape, double low, double high, int64_t gap) {
  const View view = make(floating_, shape, gap);
  ++draws_;
  for (int64_t i = 0; i < view.elements(); ++i) {
    const auto words = philox({seed_, RandomUse::kTest}, static_cast<uint64_t>(i), draws_);
    const double u = (words[0] + 0.5) * 0x1p-32;
    set_element(view, i, static_cast<float>(low + (high - low) * u));
  }
  blocks_.back().before = blocks_.back().bytes;
  return view;
}

View Buffers::values(std::initializer_list<int64_t> shape, const std::vector<double>& values) {
  const View view = make(floating_, shape, 0);
  RONDO_CHECK(view.elements() == static_cast<int64_t>(values.size()), "{} values", values.size());
  for (int64_t i = 0; i < view.elements(); ++i) set_element(view, i, values[i]);
  blocks_.back().before = blocks_.back().bytes;
  return view;
}

View Buffers::output(std::initializer_list<int64_t> shape, int64_t gap) {
  return make(floating_, shape, gap);
}

View Buffers::ints(std::initializer_list<int64_t> shape, const std::vector<int32_t>& values) {
  const View view = make(DType::kI32, shape, 0);
  RONDO_CHECK(view.elements() == static_cast<int64_t>(values.size()), "{} values", values.size());
  std::copy(values.begin(), values.end(), view.as<int32_t>());
  blocks_.back().before = blocks_.back().bytes;
  return view;
}

View Buffers::int_output(DType dtype, std::initializer_list<int64_t> shape) {
  return make(dtype, shape, 0);
}

View Buffers::f64(std::initializer_list<int64_t> shape, const std::vector<double>& values) {
  const View view = make(DType::kF64, shape, 0);
  for (int64_t i = 0; i < view.elements(); ++i) set_element(view, i, values[i]);
  blocks_.back().before = blocks_.back().bytes;
  return view;
}

View Buffers::places(const std::vector<int>& lengths) {
  std::vector<int32_t> rows;
  int32_t offset = 0, doc = 0;
  for (int length : lengths) {
    const bool padding = length < 0;
    for (int i = 0; i < std::abs(length); ++i)
      rows.insert(rows.end(), {3, offset++, padding ? -1 : doc, padding ? 0 : i});
    doc += padding ? 0 : 1;
  }
  return ints({offset, 4}, rows);
}

std::string Buffers::trespass() const {
  for (size_t b = 0; b < blocks_.size(); ++b)
    for (size_t i = 0; i < blocks_[b].bytes.size(); ++i)
      if (!blocks_[b].inside[i] && blocks_[b].bytes[i] != blocks_[b].before[i])
        return "buffer " + std::to_string(b) + " was written at byte " +
               std::to_string(static_cast<int64_t>(i) - kGuard) + ", outside its view";
  return "";
}

double element(const View& view, int64_t i) {
  const int64_t at = offset_of(view, i);
  switch (view.dtype) {
    case DType::kF32:
      return view.as<float>()[at];
    case DType::kF64:
      return view.as<double>()[at];
    case DType::kI32:
      return view.as<int32_t>()[at];
    case DType::kI64:
      return static_cast<double>(view.as<int64_t>()[at]);
    default:
      RONDO_CHECK(false, "no element of {}", name_of(view.dtype));
      return 0;
  }
}

void set_element(const View& view, int64_t i, double value) {
  const int64_t at = offset_of(view, i);
  if (view.dtype == DType::kF32)
    view.as<float>()[at] = static_cast<float>(value);
  else
    view.as<double>()[at] = value;
}

double max_norm_error(const View& a, const View& b) {
  RONDO_CHECK(same_shape(a, b), "{} and {}", to_string(a), to_string(b));
  double difference = 0, scale = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double x = element(a, i), y = element(b, i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (std::isinf(y) && x == y) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(x - y));
    scale = std::max(scale, std::abs(y));
  }
  return scale > 0 ? difference / scale : difference;
}

std::vector<std::pair<int64_t, std::string>> targets() {
  static const auto all = [] {
    std::vector<std::pair<int64_t, std::string>> out;
    for (const int64_t target : hwy::SupportedAndGeneratedTargets())
      out.emplace_back(target, hwy::TargetName(target));
    return out;
  }();
  return all;
}

void force_target(int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void note(const std::string& op, const std::string& implementation, const std::string& target,
          double error) {
  char key[64];
  std::snprintf(key, sizeof key, "%-24s %-12s %-10s", op.c_str(), implementation.c_str(),
                target.c_str());
  Line& line = table()[key];
  line.error = std::max(line.error, error);
  ++line.runs;
}

namespace detail {

std::vector<uint8_t> bits(const View& view) {
  const size_t size = size_of(view.dtype);
  std::vector<uint8_t> out(static_cast<size_t>(view.elements()) * size);
  for (int64_t i = 0; i < view.elements(); ++i)
    std::memcpy(
        out.data() + static_cast<size_t>(i) * size,
        static_cast<const uint8_t*>(view.data) + offset_of(view, i) * static_cast<int64_t>(size),
        size);
  return out;
}

void check_run(const std::string& label, double error, double tolerance) {
  EXPECT_LE(error, tolerance) << label;
}

std::unique_ptr<Device> emulated() {
  return make_device("emu:64MiB", {.threads = 2});
}

}  // namespace detail

void expect_gradient(const std::string& label, const std::function<double()>& loss,
                     const std::vector<std::pair<View, View>>& inputs, double tolerance) {
  int which = 0;
  for (const auto& [x, dx] : inputs) {
    double worst = 0, scale = 0;
    for (int64_t i = 0; i < x.elements(); ++i) {
      const double x0 = element(x, i), h = 1e-5 * std::max(1.0, std::abs(x0));
      set_element(x, i, x0 + h);
      const double above = loss();
      set_element(x, i, x0 - h);
      const double below = loss();
      set_element(x, i, x0);
      const double numeric = (above - below) / (2 * h), given = element(dx, i);
      EXPECT_TRUE(std::isfinite(given)) << label << ", input " << which << ", element " << i;
      worst = std::max(worst, std::abs(numeric - given));
      scale = std::max(scale, std::abs(numeric));
    }
    EXPECT_LE(worst, tolerance * std::max(scale, 1e-3)) << label << ", gradient of input " << which;
    ++which;
  }
}

double weighted_sum(const View& view, const View& weights) {
  double sum = 0;
  for (int64_t i = 0; i < view.elements(); ++i) sum += element(view, i) * element(weights, i);
  return sum;
}

}  // namespace rondo::testing
