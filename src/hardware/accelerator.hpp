// hardware/accelerator.hpp - one type of accelerator (GPU, TPU, NPU, or a CPU socket used as one).
//
// A row of catalog/accelerators.yaml. Rates are dense peaks of one device; null means unsupported
// or not published, and nothing is guessed from it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/id.hpp"
#include "base/quantity.hpp"
#include "hardware/number_format.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

/// Position of a type in Catalog::accelerators().
using AcceleratorTypeId = Id<struct AcceleratorTypeTag>;

enum class AcceleratorKind { kGpu, kTpu, kNpu, kCpu };

inline std::array<EnumWord<AcceleratorKind>, 4> enum_words(AcceleratorKind) {
  return {{{"gpu", AcceleratorKind::kGpu},
           {"tpu", AcceleratorKind::kTpu},
           {"npu", AcceleratorKind::kNpu},
           {"cpu", AcceleratorKind::kCpu}}};
}

/// How the accelerators of one scale-up domain are joined.
struct ScaleUp {
  std::optional<std::string> technology;  ///< id of a ScaleUpLink
  std::string topology = "none";
  std::optional<int> domain_max;
  std::optional<BytesPerSecond> bandwidth_per_direction;  ///< all links of one device, one way
};

template <class Visitor, SameStruct<ScaleUp> Self>
void describe(Visitor& visitor, Self& scale_up) {
  visitor.optional("technology", scale_up.technology);
  visitor.required("topology", scale_up.topology);
  visitor.optional("domain_max_accelerators", scale_up.domain_max);
  visitor.optional("bandwidth_per_direction_bytes_per_s", scale_up.bandwidth_per_direction);
}

struct HostAttachment {
  std::optional<std::string> technology;  ///< id of a HostLink
  std::optional<BytesPerSecond> bandwidth_per_direction;
};

template <class Visitor, SameStruct<HostAttachment> Self>
void describe(Visitor& visitor, Self& host) {
  visitor.optional("technology", host.technology);
  visitor.optional("bandwidth_per_direction_bytes_per_s", host.bandwidth_per_direction);
}

/// Measured matrix rates, in addition to those of the datasheet.
struct MeasuredRates {
  std::optional<FlopsPerSecond> bf16_gemm;
  std::optional<FlopsPerSecond> fp8_gemm;
  std::optional<double> bf16_gemm_fraction_of_peak;
  std::optional<FlopsPerSecond> best_shape_bf16_gemm;
  std::optional<FlopsPerSecond> best_shape_fp8_gemm;
  std::string source;
  std::optional<Confidence> confidence;
  std::string best_shape_source;
  std::optional<Confidence> best_shape_confidence;
};

template <class Visitor, SameStruct<MeasuredRates> Self>
void describe(Visitor& visitor, Self& measured) {
  visitor.optional("bf16_gemm_flops", measured.bf16_gemm);
  visitor.optional("fp8_gemm_flops", measured.fp8_gemm);
  visitor.optional("bf16_gemm_fraction_of_peak", measured.bf16_gemm_fraction_of_peak);
  visitor.optional("best_shape_bf16_gemm_flops", measured.best_shape_bf16_gemm);
  visitor.optional("best_shape_fp8_gemm_flops", measured.best_shape_fp8_gemm);
  visitor.optional("source", measured.source);
  visitor.optional("confidence", measured.confidence);
  visitor.optional("best_shape_source", measured.best_shape_source);
  visitor.optional("best_shape_confidence", measured.best_shape_confidence);
}

struct Accelerator {
  std::string id;
  std::string vendor;
  std::string name;
  std::vector<std::string> aliases;
  AcceleratorKind kind = AcceleratorKind::kGpu;
  std::string architecture;
  int year = 0;
  std::string form_factor;
  std::array<std::optional<FlopsPerSecond>, kNumberFormats> rates;  ///< by NumberFormat
  std::optional<int>
      compute_units;  ///< units among which a large matrix product is divided: SMs, CUs, cores
  std::string memory_type;
  Bytes memory;  ///< as marketed
  std::optional<Bytes> driver_visible_memory;
  BytesPerSecond memory_bandwidth;
  ScaleUp scale_up;
  HostAttachment host;
  std::optional<BytesPerSecond> typical_scale_out;  ///< per direction
  std::optional<Watts> tdp;
  std::optional<Watts> idle_power;
  std::optional<Watts> power_cap_min;
  std::optional<Watts> default_power_limit;
  std::vector<std::string> software;
  std::optional<MeasuredRates> measured;
  std::optional<KilogramsCo2> embodied_carbon;
  std::string default_node;  ///< id of the NodeType that "TYPE:N" stands for
  std::string like;          ///< id of the row from which this one was copied
  Provenance provenance;
  SourcePosition where;

  [[nodiscard]] std::optional<FlopsPerSecond> rate(NumberFormat format) const {
    return rates[static_cast<std::size_t>(format)];
  }
};

template <class Visitor, SameStruct<Accelerator> Self>
void describe(Visitor& visitor, Self& a) {
  const auto rate = [&](NumberFormat format) -> auto& {
    return a.rates[static_cast<std::size_t>(format)];
  };
  visitor.required("id", a.id);
  visitor.required("vendor", a.vendor);
  visitor.required("name", a.name);
  visitor.optional("aliases", a.aliases);
  visitor.required("kind", a.kind);
  visitor.required("architecture", a.architecture);
  visitor.required("year", a.year);
  visitor.optional("form_factor", a.form_factor);
  visitor.optional("fp64_flops", rate(NumberFormat::kFp64));
  visitor.optional("fp64_matrix_flops", rate(NumberFormat::kFp64Matrix));
  visitor.optional("fp32_flops", rate(NumberFormat::kFp32));
  visitor.optional("tf32_dense_flops", rate(NumberFormat::kTf32));
  visitor.optional("bf16_dense_flops", rate(NumberFormat::kBf16));
  visitor.optional("fp16_dense_flops", rate(NumberFormat::kFp16));
  visitor.optional("fp8_dense_flops", rate(NumberFormat::kFp8));
  visitor.optional("fp6_dense_flops", rate(NumberFormat::kFp6));
  visitor.optional("fp4_dense_flops", rate(NumberFormat::kFp4));
  visitor.optional("int8_dense_ops", rate(NumberFormat::kInt8));
  visitor.optional("int4_dense_ops", rate(NumberFormat::kInt4));
  visitor.optional("compute_units", a.compute_units);
  visitor.required("memory_type", a.memory_type);
  visitor.required("hbm_bytes", a.memory);
  visitor.optional("driver_visible_memory_bytes", a.driver_visible_memory);
  visitor.required("hbm_bandwidth_bytes_per_s", a.memory_bandwidth);
  visitor.optional("scaleup", a.scale_up);
  visitor.optional("host_link", a.host);
  visitor.optional("scaleout_typical_per_direction_bytes_per_s", a.typical_scale_out);
  visitor.optional("tdp_watts", a.tdp);
  visitor.optional("idle_watts", a.idle_power);
  visitor.optional("power_cap_min_watts", a.power_cap_min);
  visitor.optional("default_power_limit_watts", a.default_power_limit);
  visitor.optional("software", a.software);
  visitor.optional("measured", a.measured);
  visitor.optional("embodied_carbon_kg_co2e", a.embodied_carbon);
  visitor.optional("default_node", a.default_node);
  visitor.optional("like", a.like);
  describe_inline(visitor, a.provenance);
}

}  // namespace orrery
