// runtime/kernels/gemm.hpp - the product of two matrices of floats, by oneDNN.
//
// Matrices are row-major. A call runs in the calling thread alone, whatever OMP_NUM_THREADS says:
// the trainer divides work among ranks, and the bits of a sum would depend on how threads split it.
// Equal sizes give equal bits on machines of one gemm_identity().
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

struct MatrixOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;  ///< floats from row to row, before transposing
  enum class Order { kAsIs, kTransposed } order = Order::kAsIs;
};

/// c = alpha a b + beta c, with a of rows x inner, b of inner x columns (after transposing).
struct FloatProduct {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  MatrixOperand a;
  MatrixOperand b;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  float alpha = 1;
  float beta = 0;
};

/// Cost: 2 x rows x columns x inner operations.
void multiply(const FloatProduct& product);

/// Products in a chosen precision. Keeps oneDNN's kernel for each size and room for the rounded
/// factors; owned by a TrainableTransformer, used by one thread at a time.
class MatrixMultiplier {
 public:
  /// Precondition: check_precision(precision) is fine.
  explicit MatrixMultiplier(ProductPrecision precision);
  MatrixMultiplier(const MatrixMultiplier&) = delete;
  MatrixMultiplier& operator=(const MatrixMultiplier&) = delete;
  ~MatrixMultiplier();

  /// In bfloat16 both factors are rounded first, then multiplied and summed in float32.
  /// Precondition: beta is 0 or 1. The first product of a size makes its kernel: about a
  /// millisecond.
  void multiply(const FloatProduct& product);

 private:
  class Bfloat16Products;
  std::unique_ptr<Bfloat16Products> bfloat16_;
};

/// Whether this machine multiplies in the precision: bfloat16 needs AVX-512.
[[nodiscard]] Status check_precision(ProductPrecision precision);

/// What decides the bits of a product on this machine: "oneDNN 2.6.3, avx512_core_amx".
/// Ranks whose results are to be equal must agree on it.
[[nodiscard]] std::string gemm_identity();

}  // namespace orrery
