#include "scheduler/request/resolve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/nearest_name.hpp"
#include "perf/training/goodput.hpp"
#include "scheduler/forecast/why_never.hpp"
#include "scheduler/request/gang_shape.hpp"
#include "scheduler/request/type_choice.hpp"

namespace orrery {
namespace {

/// Assumed between the checkpoints of a training job that names no interval, until its plan has the
/// one with the most goodput.
constexpr Duration kUsualInterval = Duration::hours(1);

bool trains(const JobSpec& spec) {
  return spec.kind == JobKind::kTrain || spec.kind == JobKind::kFineTune;
}

std::optional<Duration> duration_of(const std::optional<Seconds>& seconds) {
  if (!seconds) return std::nullopt;
  return Duration::from_seconds(seconds->value());
}

/// Labels of the sites, each once.
std::vector<std::string_view> labels_of(const Topology& topology) {
  std::vector<std::string_view> labels;
  for (const SiteFacts& site : topology.sites()) {
    if (!site.spec.residency) continue;
    const std::string_view label = *site.spec.residency;
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
  return labels;
}

/// Bit i: site i has one of the labels. All bits if no label is requested.
Result<std::uint64_t> sites_of(const JobSpec& spec, const Topology& topology) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  if (spec.permitted.residency.empty()) return kAll;
  std::uint64_t sites = 0;
  bool all = true;
  for (std::size_t i = 0; i < topology.sites().size(); ++i) {
    const std::optional<std::string>& label = topology.sites()[i].spec.residency;
    const bool allowed =
        label && std::find(spec.permitted.residency.begin(), spec.permitted.residency.end(),
                           *label) != spec.permitted.residency.end();
    if (allowed) sites |= std::uint64_t{1} << i;
    all = all && allowed;
  }
  if (all) return kAll;
  if (sites != 0) return sites;
  const std::vector<std::string_view> labels = labels_of(topology);
  return infeasible(fmt::format(
      "never: residency: no site is labelled {}; {}", fmt::join(spec.permitted.residency, " or "),
      labels.empty() ? "none has a label" : fmt::format("there is {}", fmt::join(labels, ", "))));
}

Rejection never(std::string reason) { return {RejectionKind::kNever, {}, std::move(reason)}; }

/// One role, type by type.
class RoleResolver {
 public:
  RoleResolver(const JobSpec& spec, const RoleSpec& role, const ResolveContext& context)
      : spec_(spec), role_(role), context_(context) {}

  Result<RoleRequest> resolve(std::uint64_t sites) {
    request_.name = role_.name;
    request_.gangs = role_.replicas;
    if (role_.work) {
      Result<SizedWork> sized = resolve_work(role_, spec_.kind, context_.models);
      if (!sized) return forward_error(sized);
      request_.work = context_.works.intern(sized->work);
      request_.steps = sized->steps;
    }
    Result<TypeChoice> types = choose_types(spec_, role_, context_.fleet.topology());
    if (!types) return forward_error(types);
    request_.excluded = std::move(types->excluded);
    for (const AllowedType& allowed : types->allowed) {
      add_type(allowed, GangShape(role_, context_.fleet.tree(), allowed.type, sites));
    }
    if (request_.options.empty()) return infeasible(never_text());
    finish();
    return std::move(request_);
  }

 private:
  void add_type(const AllowedType& allowed, const GangShape& shape) {
    const std::size_t before = request_.options.size();
    std::optional<Rejection> first_refusal;
    const std::vector<std::uint32_t> sizes = sizes_of(allowed.type, shape);
    for (const std::uint32_t devices : sizes) {
      std::optional<Rejection> refusal = add_option(allowed, shape, devices);
      if (!first_refusal) first_refusal = std::move(refusal);
    }
    if (request_.options.size() > before) {
      std::reverse(request_.options.begin() + static_cast<std::ptrdiff_t>(before),
                   request_.options.end());
      set_spread(shape);
      return;
    }
    const Accelerator& accelerator = context_.fleet.topology().accelerator(allowed.type);
    if (!first_refusal) first_refusal = no_size(allowed.type, shape);
    request_.excluded.push_back({accelerator.id, *std::move(first_refusal)});
  }

  /// Over what the level means for the type; the widest of several.
  void set_spread(const GangShape& shape) {
    if (!role_.topology.spread) return;
    SpreadSpec spread = *role_.topology.spread;
    spread.level = shape.level_here(spread.level);
    if (!request_.spread || request_.spread->level < spread.level) request_.spread = spread;
  }

  /// Ascending.
  [[nodiscard]] std::vector<std::uint32_t> sizes_of(FleetTypeId type,
                                                    const GangShape& shape) const {
    const CountRange range = shape.range();
    if (range.min == range.max) return {range.min};
    std::vector<std::uint32_t> sizes;
    if (context_.sizes != nullptr && request_.work) {
      const Work& work = context_.works[*request_.work];
      sizes = context_.sizes->counts({*request_.work, type, range.max}, work, range);
    } else {
      sizes = shape.usual_sizes();
    }
    if (role_.layout) keep_whole_replicas(sizes, range);
    std::erase_if(sizes, [&](std::uint32_t devices) { return !shape.refusal(devices).empty(); });
    return sizes;
  }

  void keep_whole_replicas(std::vector<std::uint32_t>& sizes, const CountRange& range) const {
    const std::uint64_t replica = role_.layout->plan.ranks();
    std::erase_if(sizes, [&](std::uint32_t devices) { return devices % replica != 0; });
    for (std::uint64_t devices = replica; devices <= range.max; devices *= 2) {
      if (devices >= range.min) sizes.push_back(static_cast<std::uint32_t>(devices));
    }
    std::ranges::sort(sizes);
    const auto repeated = std::ranges::unique(sizes);
    sizes.erase(repeated.begin(), repeated.end());
  }

  /// Adds the option or records why it never runs.
  std::optional<Rejection> add_option(const AllowedType& allowed, const GangShape& shape,
                                      std::uint32_t devices) {
    if (std::string why = shape.refusal(devices); !why.empty()) return never(std::move(why));
    GangOption option{shape.gang(devices), allowed.speed, std::nullopt};
    const std::optional<std::string>& too_much = context_.fleet.refusal(option.gang);
    if (too_much) return never(*too_much);
    if (request_.work && option.gang.share == kWholeDevice) {
      option.plan = PlanKey{*request_.work, allowed.type, devices};
      const CountRange range = shape.range();
      // Sizes of a range were chosen because they have a plan.
      if (range.min == range.max) {
        if (std::optional<Rejection> none = no_plan(*option.plan)) return none;
      }
    }
    request_.options.push_back(std::move(option));
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Rejection> no_plan(const PlanKey& key) const {
    if (context_.sizes == nullptr) return std::nullopt;
    const std::optional<Rejection>& none = context_.sizes->refusal(key, context_.works[key.work]);
    if (!none) return std::nullopt;
    return Rejection{none->kind, none->blocking, "work: " + none->reason};
  }

  /// Why no size of a range is possible: what the largest lacks.
  [[nodiscard]] Rejection no_size(FleetTypeId type, const GangShape& shape) const {
    const CountRange range = shape.range();
    std::optional<Rejection> none;
    if (request_.work) none = no_plan({*request_.work, type, range.max});
    if (none) return *std::move(none);
    std::string reason = shape.refusal(range.max);
    if (!reason.empty()) return never(std::move(reason));
    return never(fmt::format("work: no number of {} from {} to {} has a plan",
                             context_.fleet.topology().accelerator(type).id, range.min, range.max));
  }

  [[nodiscard]] std::string never_text() const {
    std::vector<std::string_view> reasons;
    for (const ExcludedType& type : request_.excluded) reasons.push_back(type.why.reason);
    if (reasons.empty()) reasons.push_back("types: the fleet has no accelerator");
    return fmt::format("never: role \"{}\": {}", role_.name, fmt::join(reasons, "; "));
  }

  void finish() {
    std::uint32_t least = request_.options.front().gang.devices;
    std::uint32_t most = least;
    for (const GangOption& option : request_.options) {
      least = std::min(least, option.gang.devices);
      most = std::max(most, option.gang.devices);
    }
    request_.devices_min = least;
    request_.devices_max = most;
    for (GangOption& option : request_.options) {
      option.speed *= static_cast<double>(option.gang.devices) / most;
    }
  }

  const JobSpec& spec_;
  const RoleSpec& role_;
  const ResolveContext& context_;
  RoleRequest request_;
};

class JobResolver {
 public:
  JobResolver(const JobSpec& spec, const ResolveContext& context)
      : spec_(spec), context_(context) {}

  Result<JobRequest> resolve() {
    Status status = check_at(spec_, context_.now);
    if (status) status = check_software();
    if (status) status = set_tenant();
    if (status) status = set_data();
    if (status) status = add_roles();
    if (!status) return forward_error(status);
    set_plain();
    set_checkpoints();
    return std::move(request_);
  }

 private:
  /// An image that is ignored would mean a program that the user did not request.
  Status check_software() const {
    if (spec_.software.image.empty()) return {};
    return input_error(spec_.software.where,
                       "software.image: ranks run on the node's own system, no container image is "
                       "started; remove the key");
  }

  Status set_tenant() {
    Result<TenantId> tenant = context_.tenants.job_tenant(spec_.tenant, spec_.where);
    if (!tenant) return forward_error(tenant);
    request_.tenant = *tenant;
    return {};
  }

  Status set_data() {
    std::vector<std::string_view> names;
    for (const SiteFacts& site : context_.fleet.topology().sites()) {
      names.push_back(site.spec.name);
    }
    for (const DataSpec& data : spec_.data) {
      const auto site = std::find(names.begin(), names.end(), data.site);
      if (site == names.end()) {
        return input_error(data.where, fmt::format("site: the fleet has no site \"{}\"{}",
                                                   data.site, did_you_mean(data.site, names)));
      }
      request_.data.push_back({static_cast<std::uint8_t>(site - names.begin()), data.size});
    }
    return {};
  }

  Status add_roles() {
    const Result<std::uint64_t> sites = sites_of(spec_, context_.fleet.topology());
    if (!sites) return tl::unexpected(sites.error());
    std::uint64_t gangs = 0;
    for (const RoleSpec& role : spec_.roles) {
      Result<RoleRequest> resolved = RoleResolver(spec_, role, context_).resolve(*sites);
      if (!resolved) return forward_error(resolved);
      gangs += resolved->gangs;
      request_.roles.push_back(*std::move(resolved));
    }
    if (gangs > 1 && !context_.fleet.fits_together(request_)) {
      return infeasible("never: " + why_never_together(context_.fleet, request_));
    }
    return {};
  }

  void set_plain() {
    const bool yields = spec_.kind == JobKind::kBatch || spec_.kind == JobKind::kFineTune;
    request_.name = spec_.name;
    request_.kind = spec_.kind;
    request_.priority = spec_.priority;
    request_.preemptible = spec_.preemptible.value_or(yields);
    request_.goal = spec_.goal;
    request_.deadline = spec_.deadline;
    request_.budget = spec_.budget;
    request_.time_limit = duration_of(spec_.time_limit);
    request_.estimate = duration_of(spec_.estimate);
  }

  void set_checkpoints() {
    const CheckpointSpec& stated = spec_.checkpoint;
    if (stated.interval || trains(spec_)) {
      request_.checkpoint_interval = duration_of(stated.interval).value_or(kUsualInterval);
    }
    request_.checkpoint_cost = duration_of(stated.cost).value_or(Duration());
    request_.restart = duration_of(stated.restart).value_or(usual_restart());
  }

  [[nodiscard]] Duration usual_restart() const {
    if (!trains(spec_) || context_.sizes == nullptr) return Duration();
    double devices = 0;
    for (const RoleRequest& role : request_.roles) {
      devices += static_cast<double>(role.gangs) * role.devices_max;
    }
    const PlannerFacts& facts = context_.sizes->sources().facts;
    const Result<Seconds> restart =
        restart_time(facts.catalog, facts.calibration, devices, RestartKind::kCold);
    return restart ? Duration::from_seconds(restart->value()) : Duration();
  }

  const JobSpec& spec_;
  const ResolveContext& context_;
  JobRequest request_;
};

}  // namespace

Result<JobRequest> resolve_job(const JobSpec& spec, const ResolveContext& context) {
  return JobResolver(spec, context).resolve();
}

}  // namespace orrery
