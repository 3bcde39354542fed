#include "runtime/kernels/gemm.hpp"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "runtime/kernels/aligned_floats.hpp"
#include "runtime/kernels/kernels.hpp"

// Functions of the OpenMP library that oneDNN is built with. Its header comes with a compiler, not
// with oneDNN.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace orrery {
namespace {

char letter(MatrixOperand::Order order) { return order == MatrixOperand::Order::kAsIs ? 'N' : 'T'; }

// Makes products of the calling thread run in one thread.
void use_one_thread() {
  if (omp_get_max_threads() != 1) omp_set_num_threads(1);
}

const char* isa_name() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return "sse41";
    case dnnl_cpu_isa_avx:
      return "avx";
    case dnnl_cpu_isa_avx2:
      return "avx2";
    case dnnl_cpu_isa_avx2_vnni:
      return "avx2_vnni";
    case dnnl_cpu_isa_avx512_mic:
      return "avx512_mic";
    case dnnl_cpu_isa_avx512_mic_4ops:
      return "avx512_mic_4ops";
    case dnnl_cpu_isa_avx512_core:
      return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
      return "avx512_core_amx";
    case dnnl_cpu_isa_all:
      return "baseline";
  }
  return "unknown";
}

}  // namespace

void multiply(const FloatProduct& product) {
  use_one_thread();
  const dnnl_status_t status =
      dnnl_sgemm(letter(product.a.order), letter(product.b.order), product.rows, product.columns,
                 product.inner, product.alpha, product.a.data, product.a.stride, product.b.data,
                 product.b.stride, product.beta, product.c, product.c_stride);
  ORRERY_ASSERT(status == dnnl_success, "oneDNN refuses only sizes and strides that do not fit");
}

/// oneDNN's kernels by size, and the rounded factors of the current product.
class MatrixMultiplier::Bfloat16Products {
 public:
  Bfloat16Products() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  void multiply(const FloatProduct& product) {
    const auto [rows, columns, inner] = std::tuple(product.rows, product.columns, product.inner);
    Kernel& kernel = kernel_of(product);
    kernel.a.set_data_handle(rounded(product.a, {rows, inner}, a_));
    kernel.b.set_data_handle(rounded(product.b, {inner, columns}, b_));
    kernel.c.set_data_handle(product.c);
    kernel.product.execute(
        stream_,
        {{DNNL_ARG_SRC, kernel.a}, {DNNL_ARG_WEIGHTS, kernel.b}, {DNNL_ARG_DST, kernel.c}});
    stream_.wait();
  }

 private:
  using Bits = std::vector<std::uint16_t, CacheLineAllocator<std::uint16_t>>;
  using Sizes = std::pair<std::int64_t, std::int64_t>;
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                         MatrixOperand::Order, MatrixOperand::Order, float, float>;

  struct Kernel {
    dnnl::matmul product;
    dnnl::memory a;
    dnnl::memory b;
    dnnl::memory c;
  };

  static bool turned(const MatrixOperand& operand) {
    return operand.order == MatrixOperand::Order::kTransposed;
  }

  // Rounds an operand in its stored order, row after row without gaps.
  static std::uint16_t* rounded(const MatrixOperand& operand, Sizes sizes, Bits& bits) {
    if (turned(operand)) std::swap(sizes.first, sizes.second);
    const auto count = static_cast<std::size_t>(sizes.first * sizes.second);
    if (bits.size() < count) bits.resize(count);
    kernels().to_bfloat16({.x = operand.data,
                           .stride = operand.stride,
                           .rows = sizes.first,
                           .width = sizes.second,
                           .out = bits.data()});
    return bits.data();
  }

  static dnnl::memory::desc rounded_desc(const MatrixOperand& operand, const Sizes& sizes) {
    const auto [rows, columns] = sizes;
    return {{rows, columns},
            dnnl::memory::data_type::bf16,
            turned(operand) ? dnnl::memory::dims{1, rows} : dnnl::memory::dims{columns, 1}};
  }

  Kernel& kernel_of(const FloatProduct& product) {
    const Key key{product.rows,    product.columns, product.inner, product.c_stride,
                  product.a.order, product.b.order, product.alpha, product.beta};
    const auto found = kernels_.find(key);
    if (found != kernels_.end()) return found->second;
    ORRERY_ASSERT(product.beta == 0 || product.beta == 1, "a product is written or added");
    const auto a = rounded_desc(product.a, {product.rows, product.inner});
    const auto b = rounded_desc(product.b, {product.inner, product.columns});
    const dnnl::memory::desc c({product.rows, product.columns}, dnnl::memory::data_type::f32,
                               dnnl::memory::dims{product.c_stride, 1});
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(0, {product.alpha});
    if (product.beta == 1) {
      dnnl::post_ops added;
      added.append_sum(1);
      attributes.set_post_ops(added);
    }
    const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, c), attributes, engine_);
    Kernel kernel{.product = dnnl::matmul(made),
                  .a = dnnl::memory(a, engine_, nullptr),
                  .b = dnnl::memory(b, engine_, nullptr),
                  .c = dnnl::memory(c, engine_, nullptr)};
    return kernels_.emplace(key, std::move(kernel)).first->second;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<Key, Kernel> kernels_;
  Bits a_;
  Bits b_;
};

MatrixMultiplier::MatrixMultiplier(ProductPrecision precision) {
  if (precision == ProductPrecision::kFloat32) return;
  ORRERY_ASSERT(check_precision(precision).has_value(), "the precision is checked");
  bfloat16_ = std::make_unique<Bfloat16Products>();
}

MatrixMultiplier::~MatrixMultiplier() = default;

void MatrixMultiplier::multiply(const FloatProduct& product) {
  if (!bfloat16_) return orrery::multiply(product);
  use_one_thread();
  bfloat16_->multiply(product);
}

Status check_precision(ProductPrecision precision) {
  if (precision == ProductPrecision::kFloat32) return {};
  constexpr int kWithAvx512 = dnnl_cpu_isa_avx512_core;
  if ((dnnl_get_effective_cpu_isa() & kWithAvx512) == kWithAvx512) return {};
  return infeasible(
      fmt::format("\"precision\" is bfloat16, which needs a CPU with AVX-512; this one "
                  "has {}: use float32",
                  isa_name()));
}

std::string gemm_identity() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}", version->major, version->minor, version->patch,
                     isa_name());
}

}  // namespace orrery
