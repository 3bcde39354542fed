// workload/kubernetes_pod.hpp - what a Pod or a Job of Kubernetes requests, and when it ran.
//
// Free functions over one parsed object. Requests count as the scheduler of Kubernetes counts them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"
#include "workload/trace/trace.hpp"

namespace orrery {

/// Labels of nodes that name the type of their accelerators.
inline constexpr std::array<std::string_view, 5> kAcceleratorTypeLabels = {
    "nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator", "k8s.amazonaws.com/accelerator"};

/// "500m", "4Gi", "1e3" as a number; none: no quantity of Kubernetes, or a negative one.
[[nodiscard]] std::optional<double> kubernetes_quantity(std::string_view text);

inline constexpr std::uint32_t kWholeAccelerator = 1000;

/// Thousandths of an accelerator that one unit of the extended resource is: 1000 for
/// "nvidia.com/gpu", 142 for "nvidia.com/mig-1g.10gb" (one seventh); 0: it is no accelerator.
[[nodiscard]] std::uint32_t accelerator_thousandths(std::string_view resource);

/// The accelerators in one list of resources. Whole ones of one vendor are names of the same
/// devices (a node of AWS has as many "aws.amazon.com/neuron" as "neurondevice"), so the largest
/// amount counts; slices and the accelerators of different vendors are added. O(log vendors) an
/// add.
class ResourceAccelerators {
 public:
  /// `amount` of the extended resource; one that is no accelerator adds nothing.
  void add(std::string_view resource, double amount);
  [[nodiscard]] double thousandths() const;

 private:
  std::map<std::string, double> whole_;  ///< thousandths, by vendor
  double slices_ = 0;
};

/// A Pod, or the pods of a Job together.
struct KubernetesWork {
  TraceJob job;         ///< `name` is that of the whole it is part of, `tenant` its namespace
  std::string key;      ///< the same for all parts of one job
  bool is_job = false;  ///< made of the Job, for want of its pods
  std::optional<Instant> start;
  std::optional<Instant> end;  ///< none: it still runs, if it has started
  Instant latest;              ///< of all times that the object tells
  std::string left_out;        ///< why it is no work of the cluster; "": it is
};

/// Reads an item of kind Pod or Job. Errors, at `where`: a field that must be there is missing, no
/// time, no quantity, a phase that Kubernetes does not have, times that run backwards.
[[nodiscard]] Result<KubernetesWork> read_kubernetes_pod(const nlohmann::json& pod,
                                                         const SourcePosition& where);
[[nodiscard]] Result<KubernetesWork> read_kubernetes_job(const nlohmann::json& job,
                                                         const SourcePosition& where);

}  // namespace orrery
