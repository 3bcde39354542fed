#include "runtime/trainer/gemm.hpp"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "base/assert.hpp"

// Of the OpenMP library that oneDNN is built with. Its header comes with a compiler, not with
// oneDNN.
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int threads);
}

namespace orrery {
namespace {

char letter(MatrixOperand::Order order) { return order == MatrixOperand::Order::kAsIs ? 'N' : 'T'; }

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

void multiply(const MatrixProduct& product) {
  if (omp_get_max_threads() != 1) omp_set_num_threads(1);  // of the calling thread's own products
  const dnnl_status_t status =
      dnnl_sgemm(letter(product.a.order), letter(product.b.order), product.rows, product.columns,
                 product.inner, product.alpha, product.a.data, product.a.stride, product.b.data,
                 product.b.stride, product.beta, product.c, product.c_stride);
  ORRERY_ASSERT(status == dnnl_success, "oneDNN refuses only sizes and strides that do not fit");
}

std::string gemm_identity() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}, {}", version->major, version->minor, version->patch,
                     isa_name());
}

}  // namespace orrery
