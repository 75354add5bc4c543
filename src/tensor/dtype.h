// Element types: one row each. A new dtype is a row here and a conversion below.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rondo {

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

// X(enumerator, C++ type, name, name in safetensors, floating)
#define RONDO_DTYPES(X)                         \
  X(kF32, float, "f32", "F32", true)            \
  X(kF64, double, "f64", "F64", true)           \
  X(kBF16, ::rondo::BF16, "bf16", "BF16", true) \
  X(kF16, ::rondo::F16, "f16", "F16", true)     \
  X(kI32, int32_t, "i32", "I32", false)         \
  X(kI64, int64_t, "i64", "I64", false)         \
  X(kU16, uint16_t, "u16", "U16", false)        \
  X(kU8, uint8_t, "u8", "U8", false)

enum class DType : uint8_t {
#define X(id, type, name, hub, floating) id,
  RONDO_DTYPES(X)
#undef X
};

size_t size_of(DType dtype);
const char* name_of(DType dtype);
const char* hub_name_of(DType dtype);  // as safetensors writes it
bool is_floating(DType dtype);
std::optional<DType> dtype_from_hub_name(std::string_view name);
std::optional<DType> dtype_from_name(std::string_view name);

template <class T>
struct DTypeOf;
#define X(id, type, name, hub, floating)      \
  template <>                                 \
  struct DTypeOf<type> {                      \
    static constexpr DType value = DType::id; \
  };
RONDO_DTYPES(X)
#undef X

// Round to nearest, ties to even; NaN stays NaN; too large becomes infinity.
inline float to_float(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
BF16 to_bf16(float x);
float to_float(F16 x);
F16 to_f16(float x);

}  // namespace rondo
