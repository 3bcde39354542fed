#include "perf/runs/run_plan.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "base/format/field_reader.hpp"
#include "base/text/utf8.hpp"
#include "perf/runs/run_words.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kDegreeMax = 1 << 24;

struct PlanKey {
  std::string_view key;
  std::optional<std::uint32_t> StatedPlan::* degree;
  std::int64_t low = 1;  ///< 0: "off"
  std::int64_t high = kDegreeMax;
};

constexpr auto kPlanKeys = std::to_array<PlanKey>({
    {"tp", &StatedPlan::tp},
    {"pp", &StatedPlan::pp},
    {"vp", &StatedPlan::vpp, 0},
    {"vpp", &StatedPlan::vpp, 0},
    {"dp", &StatedPlan::dp},
    {"cp", &StatedPlan::cp},
    {"ep", &StatedPlan::ep},
    {"zero", &StatedPlan::zero, 0, 3},
    {"attention_dp", &StatedPlan::attention_dp, 0},
    {"moe_tp", &StatedPlan::moe_tp, 0},
});

std::uint32_t or_one(const std::optional<std::uint32_t>& degree) { return degree.value_or(1); }

class PlanReader {
 public:
  explicit PlanReader(const RunDevices& devices) : devices_(devices) {}

  Status read_entry(const DocumentNode::Entry& entry) {
    const std::string_view key = entry.key.text();
    if (entry.value.kind() == NodeKind::kNull) return {};
    if (key == "sp") return read_sequence_parallel(entry.value);
    if (key == "fsdp") return read_degree(entry, PlanKey{key, nullptr, 0}, fsdp_);
    if (key == "fsdp_group") return read_degree(entry, PlanKey{key, nullptr, 0}, group_);
    for (const PlanKey& known : kPlanKeys) {
      if (known.key == key) return read_degree(entry, known, text_.plan.*known.degree);
    }
    text_.warnings.push_back(
        fmt::format("the layout's \"{}\" is not understood", printable(key, 40)));
    return {};
  }

  Result<PlanText> finish(const SourcePosition& where) {
    apply_sharding();
    if (Status fits = check_product(where); !fits) return forward_error(fits);
    return std::move(text_);
  }

 private:
  Status read_degree(const DocumentNode::Entry& entry, const PlanKey& key,
                     std::optional<std::uint32_t>& out) {
    const DocumentNode& value = entry.value;
    // "see recipe" is an unknown, "8" a mistake.
    const bool prose =
        value.kind() == NodeKind::kScalar && value.quoted() && !number_prefix(value.text());
    if (prose) {
      // A mesh axis that only the recipe names is usual; a degree that is no number is not.
      if (!key.key.starts_with("fsdp")) {
        text_.warnings.push_back(fmt::format("the layout's \"{}\" is \"{}\", taken as unknown",
                                             key.key, printable(value.text(), 40)));
      }
      return {};
    }
    if (key.key == "fsdp" && (value.text() == "true" || value.text() == "false")) {
      if (value.text() == "true" && !value.quoted()) text_.plan.zero = 3;
      return {};
    }
    Result<std::int64_t> degree = read_integer(value, key.low, key.high);
    if (!degree) {
      degree.error().message = fmt::format("\"par\": \"{}\": {}", key.key, degree.error().message);
      return forward_error(degree);
    }
    const bool off = *degree == 0 && key.key != "zero";
    if (!off) out = static_cast<std::uint32_t>(*degree);
    return {};
  }

  Status read_sequence_parallel(const DocumentNode& value) {
    const Result<bool> on = read_truth(value);
    if (on) {
      text_.plan.sequence_parallel = *on ? SequenceParallel::kOn : SequenceParallel::kOff;
    } else {
      text_.warnings.push_back("the layout's \"sp\" is neither true nor false");
    }
    return {};
  }

  [[nodiscard]] std::uint64_t product() const {
    const StatedPlan& plan = text_.plan;
    const std::uint64_t model = std::uint64_t{or_one(plan.tp)} * or_one(plan.pp);
    // Each factor is at most 2^24, so that a product past 2^63 is cut off on the way.
    if (model > std::uint64_t{1} << 36) return model;
    const std::uint64_t sequence = model * or_one(plan.cp);
    if (sequence > std::uint64_t{1} << 36) return sequence;
    return sequence * or_one(plan.dp);
  }

  // A mesh of TPUs has `fsdp` beside `dp`; PyTorch's shards within it. Which one, the count says.
  void apply_sharding() {
    StatedPlan& plan = text_.plan;
    const std::uint32_t fsdp = or_one(fsdp_);
    if (fsdp > 1) {
      plan.zero = 3;
      plan.shard = fsdp;
      const bool within = plan.dp && *plan.dp % fsdp == 0 && product() == devices_.count;
      const std::uint64_t ranks = std::uint64_t{or_one(plan.dp)} * fsdp;
      if (!within && plan.dp && ranks <= static_cast<std::uint64_t>(kDegreeMax)) {
        plan.dp = static_cast<std::uint32_t>(ranks);
      }
    }
    if (or_one(group_) > 1) {
      plan.zero = 3;
      plan.shard = group_;
    }
  }

  // Devices whose cores a layout may count instead.
  [[nodiscard]] std::uint32_t cores() const {
    const std::string& architecture = devices_.accelerator.architecture;
    const bool two = architecture == "neuroncore-v2" || architecture == "tpu-v7" ||
                     architecture == "cdna2" || architecture == "tpu-v2" ||
                     architecture == "tpu-v3" || architecture == "tpu-v4";
    if (two) return 2;
    return architecture == "neuroncore-v3" || architecture == "neuroncore-v4" ? 8 : 1;
  }

  Status check_product(const SourcePosition& where) {
    const StatedPlan& plan = text_.plan;
    const bool whole = plan.tp && plan.pp && plan.dp;
    const std::uint64_t ranks = product();
    for (std::uint32_t each = 1; each <= cores(); each *= 2) {
      const std::uint64_t places = devices_.count * each;
      if (whole ? places != ranks : places % ranks != 0) continue;
      text_.ranks_per_accelerator = each;
      return {};
    }
    const bool replica = devices_.cover == RunDevices::Cover::kReplica;
    if (whole && replica && devices_.count % ranks == 0) {
      take_replicas(devices_.count / ranks);
      return {};
    }
    return input_error(
        where, fmt::format("\"par\": tp x pp x cp x dp is {} for {} accelerators (\"n\"); {}",
                           ranks, devices_.count,
                           whole ? "the two must be equal" : "they are no multiple of it"));
  }

  void take_replicas(std::uint64_t replicas) {
    text_.warnings.push_back(fmt::format(
        "the layout covers one in {} of the accelerators; as many replicas are taken", replicas));
    text_.copies = static_cast<std::uint32_t>(replicas);
    const std::uint64_t ranks = replicas * or_one(text_.plan.dp);
    if (const auto dp = whole_count(static_cast<double>(ranks))) text_.plan.dp = dp;
  }

  RunDevices devices_;
  PlanText text_;
  std::optional<std::uint32_t> fsdp_;
  std::optional<std::uint32_t> group_;
};

}  // namespace

Result<PlanText> read_run_plan(const DocumentNode& par, const RunDevices& devices) {
  PlanReader reader(devices);
  if (par.kind() != NodeKind::kMapping && par.kind() != NodeKind::kNull) {
    Status status = unexpected_node(par, "a mapping");
    status.error().message = fmt::format("\"par\": {}", status.error().message);
    return forward_error(status);
  }
  for (const DocumentNode::Entry& entry : par.entries()) {
    if (Status status = reader.read_entry(entry); !status) return forward_error(status);
  }
  return reader.finish(par.position());
}

}  // namespace orrery
