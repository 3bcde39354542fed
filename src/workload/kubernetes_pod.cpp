#include "workload/kubernetes_pod.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text/utf8.hpp"
#include "workload/kubernetes_list.hpp"
#include "workload/trace_input/trace_parts.hpp"

namespace orrery {
namespace {

using Json = nlohmann::json;

enum Resource : std::uint8_t { kDevices, kCpu, kMemory };

/// Whether an amount is added to what a request has, or replaces it.
enum class Counting : std::uint8_t { kBeside, kInstead };

/// Accelerators and CPUs in thousandths, memory in bytes.
struct Request {
  std::array<double, 3> amount{};

  void add(const Request& other) {
    for (std::size_t i = 0; i < amount.size(); ++i) amount[i] += other.amount[i];
  }
  void at_least(const Request& other) {
    for (std::size_t i = 0; i < amount.size(); ++i) {
      amount[i] = std::max(amount[i], other.amount[i]);
    }
  }
};

// Labels of pods that name the object they are part of, from the widest to the narrowest.
constexpr std::array<std::string_view, 6> kGroupLabels = {"jobset.sigs.k8s.io/jobset-name",
                                                          "training.kubeflow.org/job-name",
                                                          "volcano.sh/job-name",
                                                          "ray.io/cluster",
                                                          "batch.kubernetes.io/job-name",
                                                          "job-name"};

struct NamedFactor {
  std::string_view suffix;
  double factor;
};
constexpr std::array<NamedFactor, 16> kSuffixes = {{{"", 1},
                                                    {"n", 1e-9},
                                                    {"u", 1e-6},
                                                    {"m", 1e-3},
                                                    {"k", 1e3},
                                                    {"M", 1e6},
                                                    {"G", 1e9},
                                                    {"T", 1e12},
                                                    {"P", 1e15},
                                                    {"E", 1e18},
                                                    {"Ki", 0x1p10},
                                                    {"Mi", 0x1p20},
                                                    {"Gi", 0x1p30},
                                                    {"Ti", 0x1p40},
                                                    {"Pi", 0x1p50},
                                                    {"Ei", 0x1p60}}};

/// Reads the fields of one object. The first error is kept, and every field read after it is empty.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string_view kind, const SourcePosition& where)
      : object_(object), kind_(kind), where_(where) {
    const Json* metadata = json_member(&object_, "metadata");
    work_.job.name = json_text(metadata, "name");
    work_.job.tenant = json_text(metadata, "namespace");
    work_.job.line = where.line;
    name_ = fmt::format("{}/{}", printable(work_.job.tenant, 60), printable(work_.job.name, 60));
    if (work_.job.name.empty() || work_.job.tenant.empty()) {
      fail("no metadata.name or no metadata.namespace, expected both");
    }
  }

  Result<KubernetesWork> read_pod();
  Result<KubernetesWork> read_job();

 private:
  void fail(std::string_view what) {
    if (status_) status_ = input_error(where_, fmt::format("{} {}: {}", kind_, name_, what));
  }

  std::optional<Instant> time(const Json* object, std::string_view name);
  void set_group();
  Request request_of(const Json* container);
  void add_requests(const Json* amounts, Request& request, Counting counting);
  Request request_of_pod(const Json* spec);
  void set_types(const Json* spec);
  void set_size(const Json* spec, double pods);
  void read_submit();
  std::optional<Instant> last_end(const Json* status);
  void read_pod_times(const Json* status);
  void check_order();
  Result<KubernetesWork> take() {
    if (!status_) return forward_error(status_);
    return std::move(work_);
  }

  const Json& object_;
  std::string_view kind_;
  const SourcePosition& where_;
  std::string name_;
  Status status_;
  KubernetesWork work_;
};

std::optional<Instant> ObjectReader::time(const Json* object, std::string_view name) {
  const Json* member = json_member(object, name);
  if (member == nullptr || member->is_null()) return std::nullopt;
  const Result<Instant> at = Instant::parse(json_text(object, name));
  if (!at || at->ns() < 0) {
    fail(fmt::format("{} is {}, expected a time such as \"2026-11-20T10:00:00Z\"", name,
                     printable(member->dump(-1, ' ', false, Json::error_handler_t::replace), 40)));
    return std::nullopt;
  }
  work_.latest = std::max(work_.latest, *at);
  return *at;
}

void ObjectReader::set_group() {
  const Json* metadata = json_member(&object_, "metadata");
  const Json* labels = json_member(metadata, "labels");
  for (const std::string_view label : kGroupLabels) {
    const std::string_view group = json_text(labels, label);
    if (group.empty()) continue;
    const bool of_job = label.ends_with("job-name") && !label.starts_with("training") &&
                        !label.starts_with("volcano");
    work_.job.name = group;
    work_.key = fmt::format("{}\n{}\n{}", work_.job.tenant, of_job ? "job" : label, group);
    return;
  }
  const Json* owners = json_member(metadata, "ownerReferences");
  if (owners != nullptr && owners->is_array()) {
    for (const Json& owner : *owners) {
      const std::string_view kind = json_text(&owner, "kind");
      if (kind == "DaemonSet" || kind == "Node") {
        work_.left_out = "that belong to a node or a DaemonSet";
      }
      const std::string_view name = json_text(&owner, "name");
      if (kind == "Job" && !name.empty()) work_.job.name = name;
    }
  }
  const bool of_job = kind_ == "Job" || work_.job.name != json_text(metadata, "name");
  work_.key = fmt::format("{}\n{}\n{}", work_.job.tenant, of_job ? "job" : "pod", work_.job.name);
}

void ObjectReader::add_requests(const Json* amounts, Request& request, Counting counting) {
  if (amounts == nullptr || !amounts->is_object()) return;
  const auto count = [&](Resource which, double amount) {
    double& total = request.amount[which];
    total = counting == Counting::kInstead ? amount : total + amount;
  };
  std::optional<ResourceAccelerators> devices;
  for (const auto& [resource, amount] : amounts->items()) {
    const bool of_host = resource == "cpu" || resource == "memory";
    if (!of_host && accelerator_thousandths(resource) == 0) continue;
    const std::optional<double> value =
        amount.is_string() ? kubernetes_quantity(amount.get_ref<const std::string&>())
                           : std::nullopt;
    if (!value) {
      return fail(fmt::format(
          "{} is {}, expected a quantity such as \"8\" or \"64Gi\"", printable(resource, 60),
          printable(amount.dump(-1, ' ', false, Json::error_handler_t::replace), 40)));
    }
    if (resource == "cpu") count(kCpu, *value * 1000);
    if (resource == "memory") count(kMemory, *value);
    if (of_host) continue;
    if (!devices) devices.emplace();
    devices->add(resource, *value);
  }
  if (devices) count(kDevices, devices->thousandths());
}

// If a container states limits alone, they are its requests.
Request ObjectReader::request_of(const Json* container) {
  const Json* resources = json_member(container, "resources");
  const Json* requests = json_member(resources, "requests");
  const Json* limits = json_member(resources, "limits");
  Request request;
  if (requests == nullptr || limits == nullptr || !requests->is_object() || !limits->is_object()) {
    add_requests(requests != nullptr ? requests : limits, request, Counting::kBeside);
    return request;
  }
  Json all = *limits;
  all.update(*requests);
  add_requests(&all, request, Counting::kBeside);
  return request;
}

// The sum of containers and sidecars, or what the largest init container needs beside the sidecars
// that started before it, whichever is more; and what the runtime of the pod needs itself.
Request ObjectReader::request_of_pod(const Json* spec) {
  Request sidecars;
  Request starting;
  if (const Json* inits = json_member(spec, "initContainers"); inits && inits->is_array()) {
    for (const Json& init : *inits) {
      Request request = request_of(&init);
      if (json_text(&init, "restartPolicy") == "Always") {
        sidecars.add(request);
        starting.at_least(sidecars);
      } else {
        request.add(sidecars);
        starting.at_least(request);
      }
    }
  }
  Request running = sidecars;
  if (const Json* containers = json_member(spec, "containers");
      containers && containers->is_array()) {
    for (const Json& container : *containers) running.add(request_of(&container));
  }
  running.at_least(starting);
  const Json* own = json_member(json_member(spec, "resources"), "requests");
  add_requests(own, running, Counting::kInstead);
  add_requests(json_member(spec, "overhead"), running, Counting::kBeside);
  return running;
}

void ObjectReader::set_types(const Json* spec) {
  std::string& types = work_.job.types;
  const auto add = [&](std::string_view type) {
    if (type.empty()) return;
    if (!types.empty()) types += '|';
    types += type;
  };
  const Json* selector = json_member(spec, "nodeSelector");
  for (const std::string_view label : kAcceleratorTypeLabels) {
    if (types.empty()) add(json_text(selector, label));
  }
  const Json* affinity = json_member(json_member(spec, "affinity"), "nodeAffinity");
  const Json* terms = json_member(
      json_member(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
  if (!types.empty() || terms == nullptr || !terms->is_array()) return;
  for (const Json& term : *terms) {
    const Json* rules = json_member(&term, "matchExpressions");
    if (rules == nullptr || !rules->is_array()) continue;
    for (const Json& rule : *rules) {
      const std::string_view key = json_text(&rule, "key");
      const bool known = std::find(kAcceleratorTypeLabels.begin(), kAcceleratorTypeLabels.end(),
                                   key) != kAcceleratorTypeLabels.end();
      const Json* values = json_member(&rule, "values");
      if (!known || json_text(&rule, "operator") != "In" || !values || !values->is_array())
        continue;
      for (const Json& value : *values) {
        if (value.is_string()) add(value.get_ref<const std::string&>());
      }
    }
  }
}

void ObjectReader::set_size(const Json* spec, double pods) {
  constexpr double kMebibyte = 1 << 20;
  constexpr double kMillicoresMax = kTraceMillicoresMax;
  constexpr double kMemoryMibMax = kTraceMemoryMibMax;
  constexpr double kDevicesMax = kTraceAcceleratorsMax * 1000.0;
  const Request request = request_of_pod(spec);
  const double devices = std::ceil(request.amount[kDevices]) * pods;
  const double millicores = std::ceil(request.amount[kCpu]) * pods;
  const double mebibytes = std::ceil(request.amount[kMemory] / kMebibyte) * pods;
  if (!(devices <= kDevicesMax && millicores <= kMillicoresMax && mebibytes <= kMemoryMibMax)) {
    return fail(
        fmt::format("its requests are too large, expected at most {} accelerators, a "
                    "million cores and 4 PiB",
                    kTraceAcceleratorsMax));
  }
  static_cast<void>(set_thousandths(work_.job, static_cast<std::uint64_t>(devices)));
  work_.job.cpu_millicores = static_cast<std::uint32_t>(millicores);
  work_.job.memory_mib = static_cast<std::uint64_t>(mebibytes);
  set_types(spec);
  const Json* claims = json_member(spec, "resourceClaims");
  if (claims != nullptr && claims->is_array() && !claims->empty() && work_.left_out.empty()) {
    work_.left_out = "whose devices are resource claims";
  }
}

void ObjectReader::read_submit() {
  const std::optional<Instant> created =
      time(json_member(&object_, "metadata"), "creationTimestamp");
  if (!created) fail("no metadata.creationTimestamp, expected the time of its creation");
  work_.job.submit = created.value_or(Instant());
}

// When the last container ended; if no container states that, when the pod's conditions last
// changed.
std::optional<Instant> ObjectReader::last_end(const Json* status) {
  std::optional<Instant> end;
  const auto later = [&](std::optional<Instant> at) {
    if (at && (!end || *at > *end)) end = at;
  };
  if (const Json* containers = json_member(status, "containerStatuses");
      containers && containers->is_array()) {
    for (const Json& container : *containers) {
      later(time(json_member(json_member(&container, "state"), "terminated"), "finishedAt"));
    }
  }
  std::optional<Instant> changed;
  if (const Json* conditions = json_member(status, "conditions");
      conditions && conditions->is_array()) {
    for (const Json& condition : *conditions) {
      const std::optional<Instant> at = time(&condition, "lastTransitionTime");
      if (at && (!changed || *at > *changed)) changed = at;
    }
  }
  return end ? end : changed;
}

// The clock of a node may be a little behind that of the API server.
void ObjectReader::check_order() {
  constexpr Duration kSkew = Duration::minutes(1);
  if (!work_.start) return;
  Instant& start = *work_.start;
  if (work_.job.submit - start > kSkew) {
    fail(fmt::format("status.startTime is {}, expected a time not before its creation, {}",
                     start.text(), work_.job.submit.text()));
  }
  start = std::max(start, work_.job.submit);
  if (!work_.end) return;
  if (start - *work_.end > kSkew) {
    fail(fmt::format("it ended at {}, expected a time not before its start, {}", work_.end->text(),
                     start.text()));
  }
  work_.end = std::max(*work_.end, start);
}

void ObjectReader::read_pod_times(const Json* status) {
  const std::string_view phase = json_text(status, "phase");
  work_.start = time(status, "startTime");
  const std::optional<Instant> end = last_end(status);
  if (phase == "Succeeded" || phase == "Failed") {
    work_.job.status = phase == "Failed" ? TraceStatus::kFailed : TraceStatus::kCompleted;
    work_.end = end;
    if (work_.start && !end && work_.left_out.empty()) work_.left_out = "without an end";
  } else if (phase != "Running" && phase != "Pending" && phase != "Unknown") {
    fail(
        fmt::format("status.phase is \"{}\", expected Pending, Running, Succeeded, Failed or "
                    "Unknown",
                    printable(phase, 40)));
  }
  if (!work_.start && work_.left_out.empty()) work_.left_out = "without a start";
  check_order();
}

Result<KubernetesWork> ObjectReader::read_pod() {
  set_group();
  read_submit();
  set_size(json_member(&object_, "spec"), 1);
  read_pod_times(json_member(&object_, "status"));
  return take();
}

Result<KubernetesWork> ObjectReader::read_job() {
  work_.is_job = true;
  set_group();
  read_submit();
  const Json* spec = json_member(&object_, "spec");
  double pods = 1;
  if (const Json* parallelism = json_member(spec, "parallelism"); parallelism != nullptr) {
    pods = parallelism->is_number_unsigned() ? parallelism->get<double>() : -1;
    if (!(pods >= 0 && pods <= kTraceAcceleratorsMax)) {
      fail(fmt::format("spec.parallelism is no whole number from 0 to {}, expected one",
                       kTraceAcceleratorsMax));
    }
  }
  if (status_) set_size(json_member(json_member(spec, "template"), "spec"), pods);
  const Json* status = json_member(&object_, "status");
  work_.start = time(status, "startTime");
  work_.end = time(status, "completionTime");
  if (work_.end) work_.job.status = TraceStatus::kCompleted;
  if (const Json* conditions = json_member(status, "conditions");
      conditions && conditions->is_array()) {
    for (const Json& condition : *conditions) {
      const std::optional<Instant> at = time(&condition, "lastTransitionTime");
      const bool holds = json_text(&condition, "status") == "True";
      if (json_text(&condition, "type") != "Failed" || !holds || !at) continue;
      work_.job.status = TraceStatus::kFailed;
      work_.end = at;
    }
  }
  if (!work_.start && work_.left_out.empty()) work_.left_out = "without a start";
  check_order();
  return take();
}

}  // namespace

std::optional<double> kubernetes_quantity(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !std::isfinite(value) || std::signbit(value)) return std::nullopt;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const NamedFactor& each : kSuffixes) {
    if (suffix == each.suffix) return value * each.factor;
  }
  return std::nullopt;
}

std::uint32_t accelerator_thousandths(std::string_view resource) {
  constexpr std::array<std::string_view, 9> kWhole = {"nvidia.com/gpu",
                                                      "amd.com/gpu",
                                                      "google.com/tpu",
                                                      "aws.amazon.com/neuron",
                                                      "aws.amazon.com/neurondevice",
                                                      "habana.ai/gaudi",
                                                      "gpu.intel.com/i915",
                                                      "gpu.intel.com/xe",
                                                      "huawei.com/Ascend910"};
  if (std::find(kWhole.begin(), kWhole.end(), resource) != kWhole.end()) return kWholeAccelerator;
  constexpr std::string_view kSlice = "nvidia.com/mig-";
  constexpr std::uint32_t kSlices = 7;
  if (!resource.starts_with(kSlice)) return 0;
  resource.remove_prefix(kSlice.size());
  const bool sevenths =
      resource.size() > 1 && resource[0] >= '1' && resource[0] <= '7' && resource[1] == 'g';
  return sevenths ? static_cast<std::uint32_t>(resource[0] - '0') * kWholeAccelerator / kSlices : 0;
}

void ResourceAccelerators::add(std::string_view resource, double amount) {
  const std::uint32_t each = accelerator_thousandths(resource);
  if (each != kWholeAccelerator) {
    slices_ += amount * each;
    return;
  }
  double& most = whole_[std::string(resource.substr(0, resource.find('/')))];
  most = std::max(most, amount * each);
}

double ResourceAccelerators::thousandths() const {
  double sum = slices_;
  for (const auto& [vendor, most] : whole_) sum += most;
  return sum;
}

Result<KubernetesWork> read_kubernetes_pod(const Json& pod, const SourcePosition& where) {
  return ObjectReader(pod, "Pod", where).read_pod();
}

Result<KubernetesWork> read_kubernetes_job(const Json& job, const SourcePosition& where) {
  return ObjectReader(job, "Job", where).read_job();
}

}  // namespace orrery
