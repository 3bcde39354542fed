// bench/serving_kernels.hpp - the measured kernels of a serving run file as cases of a fit: matrix
// products, attention and all-reduces by accelerator and size.
//
// Left out: block-scaled FP8 products (their times are those of a fallback kernel), all-reduces
// over PCIe of more than two L40S (a host without peer access), attention with an 8-bit cache on
// GDDR parts (a fallback too), and all but the fastest all-reduce of a size, which is the one an
// engine picks.
#pragma once

#include <map>
#include <tuple>

#include "bench/serving_fit.hpp"

namespace orrery {

inline constexpr double kKernelWeight = 0.3;

struct KernelPoint {
  const nlohmann::json& point;
  const Accelerator& accelerator;

  [[nodiscard]] double at(const char* key) const { return point.at(key).get<double>(); }
  [[nodiscard]] std::string text(const char* key) const { return point.value(key, ""); }
  [[nodiscard]] bool gddr() const { return accelerator.memory_type.starts_with("GDDR"); }
};

inline std::function<double(const KernelTime&)> matmul_kernel(const KernelPoint& point) {
  const std::string type = point.text("dtype");
  if (type == "fp8_block") return {};
  NumberFormat format = NumberFormat::kBf16;
  if (type == "fp8") format = NumberFormat::kFp8;
  if (type == "nvfp4") format = NumberFormat::kFp4;
  const MatrixProduct product{.m = point.at("m"),
                              .n = point.at("n"),
                              .k = point.at("k"),
                              .weights = format,
                              .activations = format};
  return [product](const KernelTime& kernels) { return kernels.matmul(product); };
}

inline std::function<double(const KernelTime&)> attention_kernel(const KernelPoint& point) {
  const bool prefill = point.text("kind") == "attn_prefill";
  const bool narrow = point.text("kv_dtype") == "fp8";
  if (narrow && (prefill ? point.text("dtype") != "fp8" : point.gddr())) return {};
  const double tokens = point.at("context");
  const double batch = point.at("batch");
  const double queries = point.at("heads") * point.at("head_dim");
  const double keys = point.at("kv_heads") * point.at("head_dim");
  const NumberFormat format = narrow ? NumberFormat::kFp8 : NumberFormat::kBf16;
  const double pairs = batch * tokens * (prefill ? tokens / 2 : 1);
  const AttentionWork work{.operations = 4 * pairs * queries,
                           .bytes = batch * tokens * 2 * keys * stored_bytes(format),
                           .prompt = prefill ? tokens : 0,
                           .kv = format};
  return [work](const KernelTime& kernels) { return kernels.attention(work); };
}

inline std::function<double(const KernelTime&)> reduce_kernel(const KernelPoint& point) {
  const double devices = point.at("gpus");
  const double bytes = 2 * point.at("message_size");
  const bool library = point.text("kind") == "nccl_all_reduce";
  if (library && bytes < 2e7) return {};
  if (bytes > 2e8 || (point.accelerator.architecture == "ada" && devices > 2)) return {};
  return [=](const KernelTime& kernels) { return kernels.all_reduce(bytes, devices); };
}

inline std::function<double(const KernelTime&)> kernel_of(const KernelPoint& point) {
  if (point.text("kind") == "gemm") return matmul_kernel(point);
  return point.text("kind").ends_with("all_reduce") ? reduce_kernel(point)
                                                    : attention_kernel(point);
}

/// Appends the kernels of the file's `kernel_points`.
inline void add_kernel_cases(const nlohmann::json& document, const Catalog& catalog,
                             const Calibration& calibration, std::vector<ServingCase>& cases) {
  std::map<std::tuple<std::string, double, double>, double> fastest;
  const auto key = [](const KernelPoint& p) {
    return std::tuple(p.accelerator.id, p.at("gpus"), p.at("message_size"));
  };
  for (const bool collect : {true, false}) {
    for (const nlohmann::json& json : document.at("kernel_points")) {
      const auto* accelerator = catalog.find<Accelerator>(json.value("accel", ""));
      if (accelerator == nullptr) continue;
      const KernelPoint point{json, *accelerator};
      const double seconds = point.at("latency_ms") * 1e-3;
      if (point.text("kind") == "custom_all_reduce") {
        double& best = fastest.try_emplace(key(point), seconds).first->second;
        best = std::min(best, seconds);
        if (!collect && seconds > best) continue;
      }
      if (collect) continue;
      ServingCase item{.id = "kernel", .group = "kernel " + point.text("kind")};
      item.accelerator = accelerator->id;
      item.fold = json.value("fold", 0);
      item.kernel = kernel_of(point);
      if (!item.kernel) continue;
      item.job.accelerator = accelerator;
      item.job.engine = {"kernel", "any"};
      item.job.plan.tp = json.value("gpus", 1.0);
      item.answers = {{.metric = "kernel", .value = seconds, .weight = kKernelWeight}};
      item.positions = serving_constants(calibration, {.accelerator = *accelerator,
                                                       .engine = item.job.engine,
                                                       .group = item.job.plan.tp})
                           .positions;
      cases.push_back(std::move(item));
    }
  }
}

}  // namespace orrery
