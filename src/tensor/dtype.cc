#include "tensor/dtype.h"

#include <cmath>

#include "base/error.h"

namespace rondo {
namespace {

struct Row {
  DType dtype;
  size_t size;
  const char* name;
  const char* hub_name;
  bool floating;
};

constexpr Row kRows[] = {
#define X(id, type, name, hub, floating) {DType::id, sizeof(type), name, hub, floating},
    RONDO_DTYPES(X)
#undef X
};

const Row& row(DType dtype) {
  RONDO_CHECK(static_cast<size_t>(dtype) < std::size(kRows), "dtype {}", static_cast<int>(dtype));
  return kRows[static_cast<size_t>(dtype)];
}

}  // namespace

size_t size_of(DType dtype) {
  return row(dtype).size;
}
const char* name_of(DType dtype) {
  return row(dtype).name;
}
const char* hub_name_of(DType dtype) {
  return row(dtype).hub_name;
}
bool is_floating(DType dtype) {
  return row(dtype).floating;
}

std::optional<DType> dtype_from_hub_name(std::string_view name) {
  for (const Row& r : kRows)
    if (name == r.hub_name) return r.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kRows)
    if (name == r.name) return r.dtype;
  return std::nullopt;
}

BF16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

float to_float(F16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000) << 16;
  const uint32_t exponent = (x.bits >> 10) & 31;
  const uint32_t mantissa = x.bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

F16 to_f16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and above
  if (magnitude < 0x38800000) {  // subnormal: a multiple of 2^-24
    const double scaled = std::ldexp(static_cast<double>(std::bit_cast<float>(magnitude)), 24);
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)))};
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13))};
}

}  // namespace rondo
