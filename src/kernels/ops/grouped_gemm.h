// Products of ragged groups of rows, each with its own matrix: the experts of a mixture.
//
// Group e owns rows [offsets[e], offsets[e+1]) of the row dimension R; offsets[0] = 0. Rows from
// offsets[E] on are neither read nor written, whatever they hold. A group may be empty. Row r of an
// operand that comes with `rows` is operand[rows[r]]: the gather is part of the product.
#pragma once

#include "kernels/op.h"

namespace rondo {

// c[r, :] = a[r, :] times b[e] (kNT: transposed) for the rows r of group e.
struct GroupedGemmArgs {
  static constexpr const char* kName = "grouped_gemm";
  static constexpr double kTolerance = 2e-6;

  enum class Form : uint8_t {
    kNT,  // b [E, N, K]: forward
    kNN,  // b [E, K, N]: gradient of the input
  };

  View a;        // [R or what a_rows points into, K]
  View a_rows;   // i32 [R], or null: row r is a[r]
  View b;        // [E, N, K] or [E, K, N]; dense matrices
  View offsets;  // i32 [E + 1]
  View c;        // [R, N]
  Form form = Form::kNT;

  int64_t groups() const { return b.shape[0]; }
  int64_t n() const { return c.cols(); }
  int64_t k() const { return a.cols(); }

  void check() const {
    RONDO_RULE(a.rank == 2 && b.rank == 3 && c.rank == 2, "a [., K], b [E, ., .], c [R, N] wanted");
    RONDO_RULE(
        b.shape[form == Form::kNT ? 1 : 2] == n() && b.shape[form == Form::kNT ? 2 : 1] == k(),
        "a {}, b {}, c {}", to_string(a), to_string(b), to_string(c));
    RONDO_RULE(offsets.rank == 1 && offsets.shape[0] == groups() + 1, "offsets {} for {} groups",
               to_string(offsets), groups());
    RONDO_RULE(a_rows ? a_rows.shape[0] == c.rows() : a.rows() == c.rows(), "a {} against c {}",
               to_string(a), to_string(c));
  }
  template <class F>
  void views(F&& f) {
    f(a, Role::kIn);
    f(a_rows, Role::kIn);
    f(b, Role::kIn);
    f(offsets, Role::kIn);
    f(c, Role::kInOut);  // rows past the last group keep what they hold
  }
};

// c[e] += sum over the rows r of group e of a[r, :]^T b[r, :]: the gradient of each weight. An
// empty group adds nothing (and with `accumulate` off gets zeros, whatever c[e] held).
struct GroupedWgradArgs {
  static constexpr const char* kName = "grouped_wgrad";
  static constexpr double kTolerance = 2e-6;

  View a;        // [R or ., N]
  View a_rows;   // i32 [R] or null
  View b;        // [R or ., K]
  View b_rows;   // i32 [R] or null
  View offsets;  // i32 [E + 1]
  View c;        // [E, N, K]
  bool accumulate = true;

  int64_t groups() const { return c.shape[0]; }
  int64_t n() const { return a.cols(); }
  int64_t k() const { return b.cols(); }
  int64_t rows() const { return a_rows ? a_rows.shape[0] : a.rows(); }  // R

  void check() const {
    RONDO_RULE(a.rank == 2 && b.rank == 2 && c.rank == 3, "a [., N], b [., K], c [E, N, K] wanted");
    RONDO_RULE(c.shape[1] == n() && c.shape[2] == k(), "a {}, b {}, c {}", to_string(a),
               to_string(b), to_string(c));
    RONDO_RULE(offsets.rank == 1 && offsets.shape[0] == groups() + 1, "offsets {} for {} groups",
               to_string(offsets), groups());
    RONDO_RULE((b_rows ? b_rows.shape[0] : b.rows()) == rows(), "a {} against b {}", to_string(a),
               to_string(b));
  }
  template <class F>
  void views(F&& f) {
    f(a, Role::kIn);
    f(a_rows, Role::kIn);
    f(b, Role::kIn);
    f(b_rows, Role::kIn);
    f(offsets, Role::kIn);
    f(c, accumulate ? Role::kInOut : Role::kOut);
  }
};

template <>
std::span<const Implementation<GroupedGemmArgs>> implementations<GroupedGemmArgs>();
template <>
std::span<const Implementation<GroupedWgradArgs>> implementations<GroupedWgradArgs>();

}  // namespace rondo
