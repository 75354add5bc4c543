#include "kernels/ref/elementwise.h"

#include "kernels/ref/floating.h"
#include "tensor/place.h"

namespace rondo::ref {
namespace {

// Calls f(offsets in elements) for every row of views of one shape.
template <class F>
void each_row(const View& a, const View& b, F&& f) {
  const int64_t outer = a.rank == 3 ? a.shape[0] : 1;
  const int64_t rows = a.rank >= 2 ? a.shape[a.rank - 2] : 1;
  const auto at = [](const View& v, int64_t o, int64_t r) {
    return (v.rank == 3 ? o * v.stride[0] : 0) + (v.rank >= 2 ? r * v.stride[v.rank - 2] : 0);
  };
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t r = 0; r < rows; ++r) f(at(a, o, r), at(b, o, r));
}

template <class T>
void fill_with(const FillArgs& args) {
  const int64_t n = args.y.shape[args.y.rank - 1];
  each_row(args.y, args.y, [&](int64_t at, int64_t) {
    std::fill_n(args.y.as<T>() + at, n, static_cast<T>(args.value));
  });
}

}  // namespace

const char* fill(const FillArgs& args, KernelEnv&) {
  switch (args.y.dtype) {
    case DType::kF32:
      fill_with<float>(args);
      break;
    case DType::kF64:
      fill_with<double>(args);
      break;
    case DType::kI32:
      fill_with<int32_t>(args);
      break;
    case DType::kI64:
      fill_with<int64_t>(args);
      break;
    case DType::kU8:
      fill_with<uint8_t>(args);
      break;
    default:
      RONDO_CHECK(false, "fill: {}", name_of(args.y.dtype));
  }
  return "scalar";
}

const char* axpby(const AxpbyArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.x.shape[args.x.rank - 1];
    each_row(args.x, args.y, [&](int64_t ax, int64_t ay) {
      const T* x = args.x.as<T>() + ax;
      T* y = args.y.as<T>() + ay;
      for (int64_t i = 0; i < n; ++i) {
        const double scaled = double(args.alpha) * x[i];
        y[i] = static_cast<T>(args.beta == 0 ? scaled : scaled + double(args.beta) * y[i]);
      }
    });
  });
}

const char* dropout(const DropoutArgs& args, KernelEnv&) {
  return by_dtype(args.x, [&](auto zero) {
    using T = decltype(zero);
    const double scale = 1 / (1 - double(args.p));
    for (int64_t t = 0; t < args.x.rows(); ++t) {
      const int32_t* place = row<int32_t>(args.places, t);
      const uint64_t a = (static_cast<uint64_t>(static_cast<uint32_t>(place[0])) << 32) |
                         static_cast<uint32_t>(place[1]);
      for (int64_t i = 0; i < args.x.cols(); ++i) {
        const auto words =
            philox({args.seed, RandomUse::kDropout}, a, static_cast<uint64_t>(i / 4));
        const bool keep = uniform01(words[static_cast<size_t>(i % 4)]) >= args.p;
        row<T>(args.y, t)[i] = keep ? static_cast<T>(row<T>(args.x, t)[i] * scale) : T(0);
      }
    }
  });
}

}  // namespace rondo::ref
