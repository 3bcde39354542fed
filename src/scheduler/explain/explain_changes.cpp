// The smallest changes that start a job now. Each one is decided for the job alone, which is quick,
// and if that helps, in the pass that the scheduler would make under it: it is shown only if the
// job starts there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "scheduler/explain/explain_trial.hpp"
#include "scheduler/power/gang_power.hpp"
#include "scheduler/price/gang_pricing.hpp"
#include "scheduler/price/run_time.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {
namespace {

/// Running jobs tried one by one, and how many of them are shown.
constexpr std::size_t kOthersMost = 24;
constexpr std::size_t kOthersShown = 4;
/// The most passes in which the largest size that starts is sought.
constexpr std::uint32_t kSizePasses = 3;

std::string_view word_of(TopologyLevel level) {
  for (const auto& word : enum_words(level)) {
    if (word.value == level) return word.word;
  }
  return "";
}

class ChangeSearch {
 public:
  ChangeSearch(ExplainTrial& trial, const ExplainNames& names, Explanation& out)
      : trial_(trial), names_(names), out_(out), s_(trial.situation()), role_(role_of(trial)) {}

  void run();

 private:
  static std::size_t role_of(const ExplainTrial& trial) {
    return JobPlacer::order_of(trial.request()).front();
  }
  [[nodiscard]] const RoleRequest& role() const { return trial_.request().roles[role_]; }
  [[nodiscard]] std::string type_name(FleetTypeId type) const {
    return s_.fleet.topology().accelerator(type).id;
  }

  /// Calls edit(gang) for every option of the role.
  template <class Edit>
  [[nodiscard]] JobRequest edited(Edit&& edit) const {
    JobRequest request = trial_.request();
    for (GangOption& option : request.roles[role_].options) edit(option.gang);
    return request;
  }
  /// Shows the change if the job starts in a pass of `changed`, with the request of the change if
  /// it has one, else with its own.
  bool try_change(Change change, const Situation& changed);
  /// Shows a change to another request if the job starts with it.
  bool try_request(ChangeKind kind, JobRequest request, std::string what);
  void show(Change change);
  void set_cost(Change& change) const;

  void try_without_plan();
  void try_choices();
  void try_levels();
  void try_rules();
  void try_sizes();
  void try_types();
  void try_others();
  void try_other(JobId id);
  /// `ended`: the situation without `job`, in which the explained job starts with `start`.
  [[nodiscard]] bool try_move(const RunningJob& job, const Situation& ended, const StartJob& start);
  void try_quota();
  void try_caps();
  [[nodiscard]] JobRequest of_size(std::uint32_t devices) const;

  ExplainTrial& trial_;
  const ExplainNames& names_;
  Explanation& out_;
  const Situation s_;
  const std::size_t role_;
  std::vector<RunningJob> running_;  ///< the jobs of s_, of which one may be changed
};

void ChangeSearch::run() {
  if (!out_.refusal) {
    try_sizes();
    try_types();
    out_.tried = trial_.tried();
    return;
  }
  switch (out_.refusal->kind) {
    case RejectionKind::kLater:
      try_without_plan();
      try_choices();
      break;
    case RejectionKind::kQuota:
      try_sizes();
      try_types();
      try_quota();
      break;
    case RejectionKind::kPower:
      try_sizes();
      try_types();
      try_caps();
      break;
    case RejectionKind::kBusy:
      try_levels();
      try_rules();
      try_sizes();
      try_types();
      try_others();
      break;
    case RejectionKind::kNever:
    case RejectionKind::kMemory:
    case RejectionKind::kStack:
    case RejectionKind::kBudget:
      try_levels();
      try_rules();
      try_sizes();
      try_types();
      break;
  }
  std::stable_sort(out_.changes.begin(), out_.changes.end(),
                   [](const Change& a, const Change& b) { return a.kind < b.kind; });
  out_.tried = trial_.tried();
}

// Compares time, dollars and energy with those of the wish on its canonical piece.
void ChangeSearch::set_cost(Change& change) const {
  const Duration unknown = Duration::from_seconds(trial_.policy().unknown_run.value());
  const Duration wished = time_left(trial_.job(), s_.plans, unknown);
  if (change.start.expected && wished > Duration()) {
    change.longer = change.start.expected->count_seconds() / wished.count_seconds() - 1;
  }
  const JobRequest& job = trial_.request();
  if (!change.start.price || job.roles.size() > 1 || job.roles[0].gangs > 1) return;
  const PriceContext context{s_, trial_.policy(), s_.fleet, nullptr};
  const Price ideal = ideal_price(context, trial_.job(), {0, 0, Duration()});
  std::int64_t more = 0;
  for (const PriceTerm term : {PriceTerm::kHire, PriceTerm::kEnergy, PriceTerm::kCarbon}) {
    more += (*change.start.price)[term] - ideal[term];
  }
  change.dearer = static_cast<double>(more) * 1e-6;
  if (job.goal != JobGoal::kEnergy) return;
  const ExpectedEnergy wanted = ideal_energy(context, trial_.job(), {0, 0, Duration()});
  const ExpectedEnergy found =
      energy_of(context, trial_.job(), change.start.gangs[0], change.start.terms[0]);
  if (wanted.known && found.known) {
    change.hungrier = static_cast<double>(found.joules - wanted.joules);
  }
}

void ChangeSearch::show(Change change) {
  set_cost(change);
  out_.changes.push_back(std::move(change));
}

bool ChangeSearch::try_change(Change change, const Situation& changed) {
  auto start = trial_.starts(changed, change.request ? *change.request : *trial_.job().request);
  if (!start) return false;
  change.start = *std::move(start);
  show(std::move(change));
  return true;
}

bool ChangeSearch::try_request(ChangeKind kind, JobRequest request, std::string what) {
  if (!trial_.decide(request)) return false;
  Change change{.kind = kind, .what = std::move(what), .request = std::move(request)};
  return try_change(std::move(change), trial_.whole());
}

// Tries the start without plans, as after the full wait for them.
void ChangeSearch::try_without_plan() {
  bool missing = false;
  JobRequest request = trial_.request();
  for (RoleRequest& role : request.roles) {
    for (GangOption& option : role.options) {
      if (!option.plan || (s_.plans != nullptr && s_.plans->find(*option.plan) != nullptr))
        continue;
      option.plan.reset();
      missing = true;
    }
  }
  if (missing) try_request(ChangeKind::kPlan, std::move(request), "without waiting for its plan");
}

// Tries only the options that the job would take if it had no patience.
void ChangeSearch::try_choices() {
  Policy policy = trial_.policy();
  policy.patience = Seconds(-1);
  const auto start = trial_.decide(s_, policy);
  if (!start) return;
  JobRequest request = trial_.request();
  for (std::size_t i = 0; i < request.roles.size(); ++i) {
    std::vector<GangOption> taken;
    for (const PlacedGang& gang : start->gangs) {
      const GangOption& option = trial_.request().roles[i].options[gang.option];
      if (gang.role == i && std::find(taken.begin(), taken.end(), option) == taken.end()) {
        taken.push_back(option);
      }
    }
    request.roles[i].options = std::move(taken);
  }
  try_request(ChangeKind::kPatience, std::move(request),
              "on what is free, without waiting for better");
}

// Shows the narrowest level that is wide enough.
void ChangeSearch::try_levels() {
  const TopologyLevel asked = role().options.front().gang.required;
  for (int at = static_cast<int>(asked) + 1; at <= static_cast<int>(TopologyLevel::kFleet); ++at) {
    const auto level = static_cast<TopologyLevel>(at);
    if (level != TopologyLevel::kFleet && !trial_.tree().has(level)) continue;
    JobRequest request = edited([&](GangRequest& gang) {
      gang.required = level;
      gang.preferred = std::max(gang.preferred, level);
    });
    if (try_request(ChangeKind::kLevel, std::move(request),
                    fmt::format("within a {} instead of a {}", word_of(level), word_of(asked)))) {
      return;
    }
  }
}

void ChangeSearch::try_rules() {
  const GangRequest& gang = role().options.front().gang;
  if (gang.segment != 0) {
    try_request(ChangeKind::kRule, edited([](GangRequest& g) { g.segment = 0; }),
                "without segments");
  }
  if (gang.exclusive) {
    try_request(ChangeKind::kRule, edited([](GangRequest& g) { g.exclusive.reset(); }),
                "without a place of its own");
  }
  if (gang.rails_aligned) {
    try_request(ChangeKind::kRule, edited([](GangRequest& g) { g.rails_aligned = false; }),
                "without aligned rails");
  }
}

// The speed is assumed proportional to the number of devices where there is no plan.
JobRequest ChangeSearch::of_size(std::uint32_t devices) const {
  JobRequest request = trial_.request();
  RoleRequest& role = request.roles[role_];
  GangOption option = role.options.front();
  option.speed *= static_cast<double>(devices) / option.gang.devices;
  option.gang.devices = devices;
  option.gang.node_devices = std::min(option.gang.node_devices, devices);
  if (option.plan) option.plan->devices = devices;
  if (option.plan && (s_.plans == nullptr || s_.plans->find(*option.plan) == nullptr)) {
    option.plan.reset();
  }
  role.options = {option};
  role.devices_min = role.devices_max = devices;
  return request;
}

// Finds the largest smaller size that fits by bisection: a size that fits still fits when it asks
// for less. If it does not start beside the other jobs of the queue, half the size is tried.
void ChangeSearch::try_sizes() {
  const GangRequest& gang = role().options.front().gang;
  if (gang.slice[0] != 0 || gang.share < kWholeDevice) return;
  std::uint32_t least = gang.devices;
  for (const GangOption& option : role().options) least = std::min(least, option.gang.devices);
  const std::uint32_t step =
      gang.devices > gang.node_devices ? gang.node_devices * std::max(1u, gang.segment) : 1;
  std::uint32_t fits = 0;
  std::uint32_t fails = (least + step - 1) / step;
  while (fails - fits > 1) {
    const std::uint32_t middle = fits + (fails - fits) / 2;
    (trial_.decide(of_size(middle * step)) ? fits : fails) = middle;
  }
  for (std::uint32_t tried = 0; fits > 0 && tried < kSizePasses; ++tried, fits /= 2) {
    const std::uint32_t devices = fits * step;
    Change change{.kind = ChangeKind::kSize,
                  .what = fmt::format("with {} accelerators instead of {}", devices, gang.devices),
                  .request = of_size(devices)};
    if (try_change(std::move(change), trial_.whole())) return;
  }
}

// Tries types that no option names. Without a plan the speed there is not known.
void ChangeSearch::try_types() {
  const Topology& topology = s_.fleet.topology();
  const GangOption& first = role().options.front();
  if (first.gang.slice[0] != 0) return;
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    const FleetTypeId type(t);
    const std::vector<GangOption>& options = role().options;
    const auto named = [&](const GangOption& option) { return option.gang.type == type; };
    if (std::any_of(options.begin(), options.end(), named)) continue;
    GangOption option = first;
    option.gang.type = type;
    option.gang.node_devices = std::min(first.gang.devices, topology.node_devices_max(type));
    option.gang.segment = 0;
    option.gang.rails_aligned = false;
    bool planned = false;
    if (option.plan) {
      option.plan->type = type;
      const PlanEntry* entry = s_.plans == nullptr ? nullptr : s_.plans->find(*option.plan);
      if (entry != nullptr && !*entry) continue;
      planned = entry != nullptr;
      if (!planned) option.plan.reset();
    }
    JobRequest request = trial_.request();
    request.roles[role_].options = {option};
    if (try_request(ChangeKind::kType, std::move(request),
                    fmt::format("on {} instead{}", type_name(type),
                                planned ? "" : " (its speed there is not known)")) &&
        !planned) {
      out_.changes.back().longer.reset();
      out_.changes.back().dearer.reset();
      out_.changes.back().hungrier.reset();
    }
  }
}

// Tries jobs that alone free enough devices, the smallest first. Jobs that are stopping end anyway.
void ChangeSearch::try_others() {
  std::vector<const RunningJob*> others;
  for (const RunningJob& job : s_.running) {
    const bool alone = out_.blocking.size() == 1 && out_.blocking.front() == job.id;
    if (job.stopping) continue;
    if (alone || job.devices() >= out_.refusal->missing) others.push_back(&job);
  }
  const auto rank = [&](const RunningJob* job) {
    const bool known = !out_.blocking.empty() && out_.blocking.front() == job->id;
    return std::tuple(!known, job->devices(), job->id);
  };
  const std::size_t tried = std::min(others.size(), kOthersMost);
  std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(tried),
                    others.end(),
                    [&](const RunningJob* a, const RunningJob* b) { return rank(a) < rank(b); });
  if (tried > 0) running_.assign(s_.running.begin(), s_.running.end());
  const std::size_t before = out_.changes.size();
  for (std::size_t i = 0; i < tried && out_.changes.size() < before + kOthersShown; ++i) {
    if (!trial_.passes_left()) return;
    try_other(others[i]->id);
  }
}

// The job that ends also gives back its power and its tenant's usage.
void ChangeSearch::try_other(JobId id) {
  const auto job = std::find_if(running_.begin(), running_.end(),
                                [&](const RunningJob& each) { return each.id == id; });
  FleetOverlay without(s_.fleet);
  give_back(without, std::span<const PlacedGang>(job->gangs));
  if (!trial_.place(without.view())) return;
  Situation ended = s_;
  ended.fleet = without.view();
  std::optional<PowerBudget> power;
  if (s_.power != nullptr) {
    power = *s_.power;
    for (std::size_t i = 0; i < job->gangs.size(); ++i) {
      power->remove(draws_of_gang(power->tree(), job->gangs[i], job->terms[i].draw));
    }
    ended.power = &*power;
  }
  std::optional<TenantUsage> usage;
  if (s_.usage != nullptr) {
    usage = *s_.usage;
    for (const PlacedGang& placed : job->gangs) {
      const GangRequest& gang = job->request->roles[placed.role].options[placed.option].gang;
      usage->apply({job->request->tenant, gang.type, rank_of(*job->request),
                    -static_cast<std::int64_t>(gang.devices)});
    }
    ended.usage = &*usage;
  }
  const auto alone = trial_.decide(ended);
  if (!alone) return;
  if (try_move(*job, ended, *alone)) return;
  std::rotate(job, job + 1, running_.end());
  Situation whole = trial_.whole();
  whole.fleet = ended.fleet;
  whole.power = ended.power;
  whole.usage = ended.usage;
  whole.running = std::span(running_).first(running_.size() - 1);
  whole.running_changes = {};
  Change change{.kind = ChangeKind::kJobEnds, .what = fmt::format("if {} ends", names_.job(id))};
  change.other = id;
  (void)try_change(std::move(change), whole);
  std::rotate(job, running_.end() - 1, running_.end());
}

// Tries to move the job to another place with the same options.
bool ChangeSearch::try_move(const RunningJob& job, const Situation& ended, const StartJob& start) {
  FleetOverlay with(ended.fleet);
  take(with, std::span<const PlacedGang>(start.gangs));
  Placer placer(trial_.tree());
  std::vector<PlacedGang> moved;
  for (const PlacedGang& gang : job.gangs) {
    const GangRequest& request = job.request->roles[gang.role].options[gang.option].gang;
    AllocationOrRefusal place = placer.place(with.view(), request);
    if (!place) return false;
    moved.push_back({gang.role, gang.option, *std::move(place), gang.host});
    take(with, moved.back().allocation, moved.back().host);
  }
  FleetOverlay after(ended.fleet);
  take(after, std::span<const PlacedGang>(moved));
  Situation whole = trial_.whole();
  whole.fleet = after.view();
  std::optional<PowerBudget> power;
  if (ended.power != nullptr) {
    power = *ended.power;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      power->add(draws_of_gang(power->tree(), moved[i], job.terms[i].draw));
    }
    whole.power = &*power;
  }
  const auto at = std::find_if(running_.begin(), running_.end(),
                               [&](const RunningJob& each) { return each.id == job.id; });
  at->gangs.swap(moved);
  whole.running = running_;
  whole.running_changes = {};
  const NodeId node = at->gangs.front().allocation.ranks.front().node;
  const Topology& topology = s_.fleet.topology();
  Change change{.kind = ChangeKind::kJobMoves,
                .what = fmt::format("if {} moves to {}", names_.job(job.id),
                                    topology.path(topology.place(node).rack))};
  change.other = job.id;
  change.moved = at->gangs;
  const bool helps = try_change(std::move(change), whole);
  at->gangs.swap(moved);
  return helps;
}

// Raises the tenant's room by the devices that an option lacks; the option that lacks fewest first.
void ChangeSearch::try_quota() {
  const JobRequest& job = trial_.request();
  if (s_.usage == nullptr || job.roles.size() > 1) return;
  std::vector<Change> ways;
  for (const GangOption& option : role().options) {
    const Room room = s_.usage->room(job.tenant, option.gang.type);
    const std::int64_t more = std::int64_t{option.gang.devices} * role().gangs - room.devices;
    if (more <= 0) continue;
    Change way{.kind = ChangeKind::kQuota,
               .what = fmt::format("if {} could take {} more {}", s_.usage->tree().path(job.tenant),
                                   more, type_name(option.gang.type))};
    way.request = job;
    way.request->roles[role_].options = {option};
    way.devices = more;
    ways.push_back(std::move(way));
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const Change& a, const Change& b) { return a.devices < b.devices; });
  for (Change& way : ways) {
    const FleetTypeId type = way.request->roles[role_].options.front().gang.type;
    const TenantTree tree = s_.usage->tree().with_room(job.tenant, type, way.devices);
    const TenantUsage usage = s_.usage->under(tree);
    Situation whole = trial_.whole();
    whole.tenants = &tree;
    whole.usage = &usage;
    if (try_change(std::move(way), whole)) return;
  }
}

// Raises the limit of one domain; where several lack power no single cap is the answer.
void ChangeSearch::try_caps() {
  if (s_.power == nullptr) return;
  Situation unlimited = s_;
  unlimited.power = nullptr;
  const auto wanted = trial_.decide(unlimited);
  if (!wanted) return;
  std::vector<NodeDraw> draws;
  for (std::size_t i = 0; i < wanted->gangs.size(); ++i) {
    const auto more = draws_of_gang(s_.power->tree(), wanted->gangs[i], wanted->terms[i].draw);
    draws.insert(draws.end(), more.begin(), more.end());
  }
  const auto lacks = s_.power->check(*s_.caps, draws);
  if (!lacks) return;
  constexpr double kStep = 100;  // watts
  const Milliwatts needed = s_.caps->room(lacks->domain) + lacks->missing;
  const double load = s_.power->tree().load_of(lacks->domain, needed).value();
  const Watts cap(std::ceil(load / kStep) * kStep);
  const std::optional<Watts> limit = s_.caps->limit(lacks->domain);
  if (!limit) return;
  PowerCaps caps = *s_.caps;
  caps.set_cap(lacks->domain, cap);
  Situation raised = trial_.whole();
  raised.caps = &caps;
  Change change{.kind = ChangeKind::kPowerCap,
                .what = fmt::format("with the cap of {} {:.1f} kW higher",
                                    s_.fleet.topology().power_name(lacks->domain),
                                    (cap.value() - limit->value()) / 1000)};
  change.domain = lacks->domain;
  change.cap = cap;
  (void)try_change(std::move(change), raised);
}

}  // namespace

void find_changes(ExplainTrial& trial, const ExplainNames& names, Explanation& out) {
  ChangeSearch(trial, names, out).run();
}

}  // namespace orrery
