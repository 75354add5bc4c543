#include "kernels/ref/embedding.h"

#include <vector>

#include "kernels/ref/floating.h"

namespace rondo::ref {
namespace {

int64_t id_of(const View& ids, int64_t t, int64_t vocabulary) {
  const int32_t id = ids.as<int32_t>()[t];
  RONDO_CHECK(id >= 0 && id < vocabulary, "embedding: id {} of {}", id, vocabulary);
  return id;
}

}  // namespace

const char* embedding(const EmbeddingArgs& args, KernelEnv&) {
  return by_dtype(args.table, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t t = 0; t < args.y.rows(); ++t) {
      const T* from = row<T>(args.table, id_of(args.ids, t, args.table.rows()));
      std::copy(from, from + args.y.cols(), row<T>(args.y, t));
    }
  });
}

const char* embedding_backward(const EmbeddingBackwardArgs& args, KernelEnv&) {
  return by_dtype(args.dy, [&](auto zero) {
    using T = decltype(zero);
    const int64_t n = args.dy.cols();
    std::vector<double> sums(args.d_table.rows() * n, 0);
    for (int64_t t = 0; t < args.dy.rows(); ++t) {
      const int64_t id = id_of(args.ids, t, args.d_table.rows());
      for (int64_t i = 0; i < n; ++i) sums[id * n + i] += row<T>(args.dy, t)[i];
    }
    for (int64_t v = 0; v < args.d_table.rows(); ++v)
      for (int64_t i = 0; i < n; ++i) row<T>(args.d_table, v)[i] += static_cast<T>(sums[v * n + i]);
  });
}

}  // namespace rondo::ref
