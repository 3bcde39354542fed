#include "twin/design/design.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/quantity_text.hpp"
#include "twin/design/design_options.hpp"
#include "twin/faults/failure_file.hpp"

namespace orrery {
namespace {

constexpr std::string_view kDefaultFailures = "llama3";
constexpr double kSecondsOfYear = 8760 * 3600.0;
/// Most cuts of a fleet until it is inside its limits; each cut ends just below the exceeded limit.
constexpr int kCutsMax = 24;
constexpr double kBelow = 0.999;

/// Nodes that this many equal jobs take; small ones share a node.
std::uint32_t nodes_of(const WorkRate& rate, const DesignCandidate& candidate, std::uint32_t jobs) {
  const auto each = static_cast<std::uint32_t>(candidate.node->accelerators_per_node);
  if (rate.accelerators >= each) return jobs * ((rate.accelerators + each - 1) / each);
  const std::uint32_t together = each / rate.accelerators;
  return (jobs + together - 1) / together;
}

std::uint32_t round_up(std::uint32_t nodes, std::uint32_t unit) {
  return (nodes + unit - 1) / unit * unit;
}

/// A fleet of an option, while it is being sized.
struct Draft {
  std::vector<DesignGroup> groups;
  std::vector<DesignedWork> works;
  StorageChoice storage;
  DesignedSite site;
};

/// Builds and sizes the fleet of one option.
class Sizer {
 public:
  Sizer(const FactsView& facts, const Design& design, const DesignOption& option)
      : facts_(facts), design_(design), spec_(*design.spec), option_(option) {}

  /// Errors: kInfeasible; `needs` then holds what the least fleet takes.
  Result<Draft> size() {
    if (Status set = set_groups(); !set) return forward_error(set);
    Result<Draft> least = build(least_nodes());
    if (!least) return forward_error(least);
    if (!fits(*least)) {
      needs_ = {least->site.power_max, least->site.capex};
      return infeasible(describe_need(*least));
    }
    Result<Draft> draft = grow();
    if (!draft) return forward_error(draft);
    return finish(*std::move(draft));
  }

  struct Needs {
    Watts power;
    std::optional<Dollars> cost;
  };
  [[nodiscard]] const std::optional<Needs>& needs() const { return needs_; }

 private:
  Status set_groups() {
    for (std::size_t i = 0; i < spec_.workload.size(); ++i) {
      const DesignCandidate& candidate = design_.candidates[option_.candidate_of[i]];
      auto at = std::find_if(groups_.begin(), groups_.end(), [&](const DesignGroup& group) {
        return group.candidate == &candidate;
      });
      if (at == groups_.end()) {
        const RackOfNodes rack{static_cast<std::uint32_t>(candidate.node->accelerators_per_node),
                               rack_nodes(facts_.catalog, candidate)};
        Result<NodeFaults> faults = node_faults(facts_.catalog, *design_.failures, rack);
        if (!faults) return forward_error(faults);
        groups_.push_back({.candidate = &candidate, .faults = *faults});
        at = std::prev(groups_.end());
      }
      DesignedWork work{.asked = &spec_.workload[i],
                        .group = static_cast<std::size_t>(at - groups_.begin()),
                        .rate = *candidate.rates[i]};
      works_.push_back(std::move(work));
    }
    return {};
  }

  [[nodiscard]] std::uint32_t job_nodes(const DesignedWork& work, std::uint32_t jobs) const {
    return nodes_of(work.rate, *groups_[work.group].candidate, jobs);
  }

  [[nodiscard]] Spares spares_of(std::size_t group, double nodes) const {
    std::uint32_t largest = 1;
    for (const DesignedWork& work : works_) {
      if (work.group == group) largest = std::max(largest, job_nodes(work, 1));
    }
    return spares_for(groups_[group].faults, nodes, largest);
  }

  /// One job of each work, and spares.
  [[nodiscard]] std::vector<std::uint32_t> least_nodes() const {
    std::vector<std::uint32_t> nodes(groups_.size(), 0);
    for (const DesignedWork& work : works_) nodes[work.group] += job_nodes(work, 1);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::uint32_t jobs = nodes[g];
      const std::uint32_t unit = unit_nodes(*groups_[g].candidate);
      nodes[g] = round_up(jobs, unit);
      for (;;) {
        const std::uint32_t needed = jobs + spares_of(g, nodes[g]).nodes;
        if (needed <= nodes[g]) break;
        nodes[g] = round_up(needed, unit);
      }
    }
    return nodes;
  }

  [[nodiscard]] std::vector<std::uint32_t> nodes_for(double work) const {
    std::vector<double> accelerators(groups_.size(), 0);
    for (std::size_t i = 0; i < works_.size(); ++i) {
      accelerators[works_[i].group] += work * accelerators_for(design_, option_, i);
    }
    std::vector<std::uint32_t> nodes = least_nodes();
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::uint32_t unit = unit_nodes(*groups_[g].candidate);
      const double units =
          std::floor(accelerators[g] / groups_[g].candidate->node_accelerators() / unit);
      nodes[g] = std::max(nodes[g], static_cast<std::uint32_t>(units) * unit);
    }
    return nodes;
  }

  [[nodiscard]] Result<Draft> build(const std::vector<std::uint32_t>& nodes) const {
    Draft draft{.groups = groups_, .works = works_};
    for (std::size_t g = 0; g < nodes.size(); ++g) {
      draft.groups[g].nodes = nodes[g];
      const Spares spares = spares_of(g, nodes[g]);
      draft.groups[g].spares = spares.nodes;
      draft.groups[g].missing = spares.missing;
    }
    deal(draft);
    if (Status set = set_storage(draft); !set) return forward_error(set);
    Result<DesignedSite> site = probe_site(facts_, {spec_, draft.groups, draft.storage});
    if (!site) return forward_error(site);
    draft.site = *std::move(site);
    return draft;
  }

  /// Deals nodes: one job of each work, then repeatedly one of the work that is furthest behind its
  /// share.
  void deal(Draft& draft) const {
    std::vector<std::uint32_t> left(draft.groups.size(), 0);
    for (std::size_t g = 0; g < left.size(); ++g) {
      left[g] = draft.groups[g].nodes - draft.groups[g].spares;
    }
    const auto needs = [&](const DesignedWork& work) {
      return job_nodes(work, work.jobs + 1) - job_nodes(work, work.jobs);
    };
    for (DesignedWork& work : draft.works) {
      left[work.group] -= std::min(left[work.group], needs(work));
      work.jobs = 1;
    }
    for (;;) {
      DesignedWork* next = nullptr;
      double behind = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < draft.works.size(); ++i) {
        DesignedWork& work = draft.works[i];
        const double had = work.accelerators() / accelerators_for(design_, option_, i);
        if (needs(work) > left[work.group] || had >= behind) continue;
        behind = had;
        next = &work;
      }
      if (next == nullptr) return;
      left[next->group] -= needs(*next);
      ++next->jobs;
    }
  }

  [[nodiscard]] Result<TrainedJob> trained(const Draft& draft, const DesignedWork& work) const {
    const DesignGroup& group = draft.groups[work.group];
    TrainedJob job{.accelerators = static_cast<double>(work.rate.accelerators),
                   .node = group.candidate->node,
                   .step = Seconds(work.rate.step_seconds),
                   .count = static_cast<double>(work.jobs)};
    job.ingest = BytesPerSecond(work.rate.tokens * job.accelerators * work.asked->bytes_per_token);
    job.time_between_faults = Seconds(1 / (group.faults.rate * job.nodes()));
    if (work.asked->serves()) return job;
    Result<const CatalogModel*> model = facts_.models.require(work.asked->work.model);
    if (!model) return forward_error(model);
    Result<Bytes> bytes = checkpoint_bytes(
        facts_.calibration, count_parameters((*model)->model).total, CheckpointContent::kFull);
    if (!bytes) return forward_error(bytes);
    job.checkpoint = *bytes;
    return job;
  }

  Status set_storage(Draft& draft) const {
    StorageNeed need{.capacity = spec_.capacity.value_or(Bytes(0))};
    for (const DesignedWork& work : draft.works) {
      if (work.asked->serves()) continue;
      Result<TrainedJob> job = trained(draft, work);
      if (!job) return forward_error(job);
      const double tokens = work.asked->work.tokens.value_or(Tokens(0)).value();
      need.capacity += Bytes(tokens * work.asked->bytes_per_token);
      need.jobs.push_back(*job);
    }
    if (spec_.storage) {
      Result<const StorageSystem*> wanted =
          facts_.catalog.require<StorageSystem>(spec_.storage->type, spec_.storage->where);
      if (!wanted) return forward_error(wanted);
      need.wanted = *wanted;
    }
    Result<StorageChoice> storage = storage_for({facts_.catalog, facts_.calibration}, need);
    if (!storage) return forward_error(storage);
    draft.storage = *storage;
    return {};
  }

  [[nodiscard]] bool fits(const Draft& draft) const {
    const DesignSite& site = spec_.site;
    if (draft.site.power_max > site.power) return false;
    return !site.budget || (draft.site.capex && *draft.site.capex <= *site.budget);
  }

  [[nodiscard]] std::string describe_need(const Draft& least) const {
    std::vector<std::string> nodes;
    nodes.reserve(least.groups.size());
    for (const DesignGroup& group : least.groups) {
      nodes.push_back(fmt::format("{} {}", group.nodes, group.candidate->node->id));
    }
    std::string text =
        fmt::format("one job of each work needs {} with network and storage: {} at the meter",
                    fmt::join(nodes, " and "), print(least.site.power_max));
    if (least.site.capex) text += ", " + print(*least.site.capex);
    return text;
  }

  /// Shrinks the fleet from the solution of the programme to what the built fleet allows.
  Result<Draft> grow() const {
    double work = option_.work;
    Result<Draft> draft = build(nodes_for(work));
    for (int cut = 0; cut < kCutsMax && draft && !fits(*draft); ++cut) {
      double over = draft->site.power_max / spec_.site.power;
      if (spec_.site.budget && draft->site.capex) {
        over = std::max(over, *draft->site.capex / *spec_.site.budget);
      }
      work *= kBelow / std::max(over, 1.0);
      draft = build(nodes_for(work));
    }
    if (draft && !fits(*draft)) return build(least_nodes());
    return draft;
  }

  /// Writes the limits into the spec and computes the goodput of every job.
  Result<Draft> finish(Draft draft) const {
    Result<DesignedSite> site = build_site(facts_, {spec_, draft.groups, draft.storage});
    if (!site) return forward_error(site);
    draft.site = *std::move(site);
    for (DesignedWork& work : draft.works) {
      Result<TrainedJob> job = trained(draft, work);
      if (!job) return forward_error(job);
      const Seconds detect = draft.groups[work.group].faults.detect;
      Result<JobGoodput> goodput =
          work.asked->serves()
              ? served(*job, detect)
              : training_goodput({facts_.catalog, facts_.calibration}, *job, draft.storage, detect);
      if (!goodput) return forward_error(goodput);
      work.goodput = *goodput;
      work.tokens = work.rate.tokens * work.accelerators() * goodput->parts.effective;
    }
    return draft;
  }

  /// A service saves nothing and loses nothing: it only stands until it is up again.
  [[nodiscard]] Result<JobGoodput> served(const TrainedJob& job, Seconds detect) const {
    Result<Seconds> restart =
        restart_time(facts_.catalog, facts_.calibration, job.accelerators, RestartKind::kCold);
    if (!restart) return forward_error(restart);
    JobGoodput goodput{.restart = *restart};
    goodput.parts.detection = detect / job.time_between_faults;
    goodput.parts.restart = *restart / job.time_between_faults;
    goodput.parts.effective = 1 - goodput.parts.detection - goodput.parts.restart;
    return goodput;
  }

  const FactsView& facts_;
  const Design& design_;
  const DesignSpec& spec_;
  const DesignOption& option_;
  std::vector<DesignGroup> groups_;
  std::vector<DesignedWork> works_;
  std::optional<Needs> needs_;
};

class Designer {
 public:
  Designer(const FactsView& facts, const DesignSpec& spec, const DesignProgress& progress)
      : facts_(facts), spec_(spec), progress_(progress) {
    design_.spec = &spec;
    design_.beside = facts.calibration.first_of({"money.network.fraction"}) +
                     facts.calibration.first_of({"money.storage.fraction"});
  }

  Result<Design> answer() {
    Status done = set_failures();
    if (done) done = set_candidates();
    if (done) done = choose();
    if (!done) return forward_error(done);
    finish();
    return std::move(design_);
  }

 private:
  Status set_failures() {
    const DesignPart part = spec_.failures.value_or(DesignPart{std::string(kDefaultFailures), {}});
    Result<const FailureSpec*> failures =
        facts_.catalog.require<FailureSpec>(part.type, part.where);
    if (!failures) return forward_error(failures);
    design_.failures = *failures;
    return check_failure_spec(**failures, facts_.catalog);
  }

  Status set_candidates() {
    Result<std::vector<DesignCandidate>> candidates = design_candidates(facts_, spec_);
    if (!candidates) return forward_error(candidates);
    design_.candidates = *std::move(candidates);
    for (DesignCandidate& candidate : design_.candidates) {
      if (progress_) progress_(candidate);
      for (const DesignWork& work : spec_.workload) {
        candidate.rates.push_back(rate_of(facts_, candidate, work));
        const MaybeRate& rate = candidate.rates.back();
        if (rate) continue;
        if (rate.error().kind == ErrorKind::kInput && !rate.error().where.file.empty()) {
          return tl::unexpected(rate.error());
        }
        design_.refused.push_back(
            fmt::format("{}: {}: {}", candidate.accelerator->id, work.name, rate.error().message));
      }
    }
    return {};
  }

  Status choose() {
    Result<std::vector<DesignOption>> options = design_options(design_);
    if (!options) return forward_error(options);
    design_.reference = reference_of(design_);
    std::string nearest;
    double least = std::numeric_limits<double>::infinity();
    bool found = false;
    for (DesignOption& option : *options) {
      if (found) {
        design_.others.push_back(std::move(option));
        continue;
      }
      Sizer sizer(facts_, design_, option);
      Result<Draft> draft = sizer.size();
      if (draft) {
        take(*std::move(draft), option);
        found = true;
        continue;
      }
      if (draft.error().kind != ErrorKind::kInfeasible && !draft.error().where.file.empty()) {
        return forward_error(draft);
      }
      option.why = draft.error().message;
      if (sizer.needs() && excess(*sizer.needs()) < least) {
        least = excess(*sizer.needs());
        nearest = change_for(option, *sizer.needs());
      }
      design_.others.push_back(std::move(option));
    }
    if (found) return {};
    std::string why = "no candidate can do the work within the limits";
    for (const DesignOption& option : design_.others) {
      why += fmt::format("\n  {}: {}", option.label, option.why);
    }
    if (!nearest.empty()) why += "\nthe smallest change: " + nearest;
    return infeasible(why);
  }

  /// By how much the worse of the two limits is exceeded.
  [[nodiscard]] double excess(const Sizer::Needs& needs) const {
    double over = needs.power / spec_.site.power;
    if (spec_.site.budget && needs.cost) over = std::max(over, *needs.cost / *spec_.site.budget);
    return over;
  }

  [[nodiscard]] std::string change_for(const DesignOption& option,
                                       const Sizer::Needs& needs) const {
    std::vector<std::string> changes;
    if (needs.power > spec_.site.power) {
      changes.push_back(fmt::format("power: {}", print(needs.power * 1.001)));
    }
    if (spec_.site.budget && needs.cost && *needs.cost > *spec_.site.budget) {
      changes.push_back(fmt::format("budget: {}", print(*needs.cost * 1.001)));
    }
    return fmt::format("{} (with {})", fmt::join(changes, " and "), option.label);
  }

  void take(Draft draft, const DesignOption& option) {
    design_.chosen = option;
    const double power = draft.site.power_max / spec_.site.power;
    const bool money = spec_.site.budget && *draft.site.capex / *spec_.site.budget > power;
    design_.chosen.limit = money ? DesignLimit::kMoney : DesignLimit::kPower;
    design_.groups = std::move(draft.groups);
    design_.works = std::move(draft.works);
    design_.storage = draft.storage;
    design_.site = std::move(draft.site);
  }

  void finish() {
    explain_others(design_);
    design_.bill = bill_of(facts_, {spec_, design_.groups, design_.storage}, design_.site);
    DesignUse& use = design_.predicted;
    const double all = design_.accelerators();
    for (const DesignedWork& work : design_.works) {
      // Nodes missing beyond the spares reduce the works of their group.
      const DesignGroup& group = design_.groups[work.group];
      const double there = 1 - std::min(1.0, group.missing / group.nodes);
      const double part = work.accelerators() / all * there;
      const Goodput& parts = work.goodput.parts;
      use.useful += part * parts.effective;
      use.checkpoints += part * parts.checkpoints;
      use.lost += part * parts.lost_work;
      use.undetected += part * parts.detection;
      use.starting += part * (parts.restart + parts.reading);
    }
    use.unused = 1 - use.useful - use.checkpoints - use.lost - use.undetected - use.starting;
    set_money(all * use.useful);
  }

  void set_money(double useful) {
    std::optional<DollarsPerJoule> price = design_.site.electricity;
    if (!price) {
      const Result<Site> site =
          site_of(facts_.catalog, *design_.groups.front().candidate->node, {});
      if (site) price = site->electricity;
      design_.site.assumptions.push_back("electricity at the US industrial price");
    }
    if (!price) return;
    design_.energy_per_year = design_.site.power_typical * Seconds(kSecondsOfYear) * *price;
    if (!design_.site.capex) return;
    const Dollars yearly = *design_.site.capex / spec_.site.years + *design_.energy_per_year;
    design_.useful_hour = yearly / (8760 * useful);
  }

  const FactsView& facts_;
  const DesignSpec& spec_;
  const DesignProgress& progress_;
  Design design_;
};

}  // namespace

double Design::accelerators() const {
  double sum = 0;
  for (const DesignGroup& group : groups) sum += group.accelerators();
  return sum;
}

Result<Design> design_fleet(const FactsView& facts, const DesignSpec& spec,
                            const DesignProgress& progress) {
  return Designer(facts, spec, progress).answer();
}

}  // namespace orrery
