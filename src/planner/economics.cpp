#include "planner/economics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "perf/site/storage_path.hpp"

namespace orrery {
namespace {

constexpr std::string_view kDefaultFailures = "llama3";
constexpr std::string_view kDefaultStorage = "ddn-ai400x2-turbo";
/// Nodes that share one unit of the default storage.
constexpr double kNodesPerStorageUnit = 32;
constexpr std::string_view kDetection = "hang by iteration watchdog (3x mean)";

template <class T>
Known<T> known(Result<T> result) {
  if (result) return {.value = *std::move(result), .missing = ""};
  return {.value = std::nullopt, .missing = result.error().message};
}

/// Which phase of PowerLoad each term of a step is.
PhaseTimes phases_of(const Breakdown& terms) {
  const auto sum = [&](std::initializer_list<Term> which) {
    double seconds = 0;
    for (const Term term : which) seconds += std::max(0.0, terms[term]);
    return Seconds(seconds);
  };
  return {.compute = sum({Term::kMatmul, Term::kAttention, Term::kRecompute, Term::kEnds}),
          .memory = sum({Term::kElementwise, Term::kOptimizer}),
          .network = sum({Term::kTensorParallel, Term::kContextParallel, Term::kExpertParallel,
                          Term::kShard, Term::kPipelineSend, Term::kDataParallel}),
          .idle = sum({Term::kPipelineBubble, Term::kOffload, Term::kInput, Term::kLaunch,
                       Term::kStraggler})};
}

class EconomicsBuilder {
 public:
  EconomicsBuilder(const PlannerFacts& facts, const Machine& machine,
                   const EconomicsOptions& options)
      : facts_(facts), machine_(machine), options_(options) {}

  Result<Economics> build(double parameters) {
    if (Status set = set_running(); !set) return forward_error(set);
    if (Status set = set_reliability(parameters); !set) return forward_error(set);
    return std::move(result_);
  }

  Result<Economics> build_running() {
    if (Status set = set_running(); !set) return forward_error(set);
    return std::move(result_);
  }

 private:
  Status set_running() {
    const double per_node = std::max(1, machine_.node->accelerators_per_node);
    result_.accelerators =
        static_cast<double>(machine_.ranks) / std::max(1u, machine_.ranks_per_accelerator);
    result_.nodes = std::ceil(result_.accelerators / per_node);
    result_.power =
        known(power_model(facts_.catalog, facts_.calibration, *machine_.node, options_.power));
    if (result_.power.value) note(result_.power.value->assumptions);
    result_.site = known(site_of(facts_.catalog, *machine_.node, options_.site));
    if (!result_.site.value) return input_error({}, result_.site.missing);
    note(result_.site.value->assumptions);
    set_price();
    return {};
  }

  void note(const std::vector<std::string>& assumptions) {
    result_.assumptions.insert(result_.assumptions.end(), assumptions.begin(), assumptions.end());
  }

  [[nodiscard]] Result<AcceleratorCost> priced(PriceBasis basis) const {
    PriceOptions price = options_.price;
    price.basis = basis;
    if (basis == PriceBasis::kOwned) {
      if (!result_.power.value) return infeasible(result_.power.missing);
      price.owned.power = result_.power.value->training + result_.power.value->rest_training;
    }
    return accelerator_cost({facts_.catalog, facts_.calibration, *result_.site.value},
                            *machine_.node, price);
  }

  void set_price() {
    PriceBasis basis = options_.basis.value_or(PriceBasis::kOnDemand);
    result_.price = known(priced(basis));
    for (const PriceBasis other : {PriceBasis::kHyperscaler, PriceBasis::kSpot}) {
      if (options_.basis || result_.price.value) break;
      Known<AcceleratorCost> second = known(priced(other));
      if (!second.value) continue;
      result_.price = std::move(second);
      basis = other;
    }
    result_.owned = basis == PriceBasis::kOwned;
    if (!result_.price.value) return;
    if (!result_.owned) {
      result_.price.value->hire = result_.price.value->hire * options_.price_factor;
    }
    note(result_.price.value->assumptions);
    result_.assumptions.push_back(
        fmt::format("{} at ${:.2f} per accelerator-hour, {}", machine_.accelerator->name,
                    (result_.price.value->hire * kHour).value(), word_of(basis)));
  }

  Status set_reliability(double parameters) {
    const std::string profile_id = options_.failures.value_or(std::string(kDefaultFailures));
    Result<const FailureProfile*> profile = facts_.catalog.require<FailureProfile>(profile_id);
    if (!profile) return forward_error(profile);
    const std::string storage_id = options_.storage.value_or(std::string(kDefaultStorage));
    Result<const StorageSystem*> storage = facts_.catalog.require<StorageSystem>(storage_id);
    if (!storage) return forward_error(storage);
    const double units =
        options_.storage_units.value_or(std::ceil(result_.nodes / kNodesPerStorageUnit));
    result_.reliability = known(reliability_of(**profile, {*storage, units}, parameters));
    if (!result_.reliability.value) return {};
    result_.assumptions.push_back(fmt::format(
        "failures as in {}: {:.3g} in 1000 node-days; blocking checkpoints to {:.0f} x {}",
        (*profile)->id, (*profile)->failures_per_1000_node_days, units, (*storage)->id));
    return {};
  }

  struct Store {
    const StorageSystem* system;
    double units;
  };

  [[nodiscard]] Result<Reliability> reliability_of(const FailureProfile& profile,
                                                   const Store& store, double parameters) const {
    Reliability reliability;
    Result<Seconds> between = mean_time_to_failure(profile, result_.nodes);
    if (!between) return forward_error(between);
    reliability.mean_time_to_failure = *between;
    Result<CheckpointTimes> times = checkpoint(store, parameters);
    if (!times) return forward_error(times);
    reliability.checkpoint = *times;
    Result<Seconds> detect = detection_time(facts_.catalog, kDetection);
    if (!detect) return forward_error(detect);
    reliability.detect = *detect;
    Result<Seconds> restart =
        restart_time(facts_.catalog, facts_.calibration, result_.accelerators, RestartKind::kCold);
    if (!restart) return forward_error(restart);
    reliability.restart = *restart;
    return reliability;
  }

  [[nodiscard]] Result<CheckpointTimes> checkpoint(const Store& store, double parameters) const {
    const StoragePath path{
        .system = store.system, .units = store.units, .nodes = result_.nodes, .node_limit = {}};
    Result<BytesPerSecond> write =
        storage_rate(path, *machine_.node, facts_.calibration, Transfer::kWrite);
    if (!write) return forward_error(write);
    Result<BytesPerSecond> read =
        storage_rate(path, *machine_.node, facts_.calibration, Transfer::kRead);
    if (!read) return forward_error(read);
    Result<Bytes> bytes =
        checkpoint_bytes(facts_.calibration, parameters, CheckpointContent::kFull);
    if (!bytes) return forward_error(bytes);
    // Training waits for the whole write, which every stack can do, so no plan looks too good.
    const CheckpointTransfer transfer{.bytes = *bytes,
                                      .accelerators = result_.accelerators,
                                      .write = *write * options_.storage_speed,
                                      .read = *read * options_.storage_speed};
    return checkpoint_times(transfer);
  }

  const PlannerFacts& facts_;
  const Machine& machine_;
  const EconomicsOptions& options_;
  Economics result_;
};

std::optional<Watts> draw_of(const Economics& economics, const StepCost& cost) {
  if (!economics.power.value) return std::nullopt;
  const std::optional<PowerLoad> load = power_load_of(cost);
  if (!load) return std::nullopt;
  const Result<DevicePower> power = power_at(*economics.power.value, *load);
  if (!power) return std::nullopt;
  return power->total();
}

/// Price of a run of length `time`; the electricity of an owned machine is paid separately, rent
/// includes it.
std::optional<Dollars> price_of(const Economics& economics, Seconds time,
                                const std::optional<Energy>& energy) {
  if (!economics.price.value) return std::nullopt;
  Dollars price = economics.price.value->hire * time * economics.accelerators;
  if (!economics.owned) return price;
  if (!energy) return std::nullopt;
  return price + energy->facility * economics.site.value->electricity;
}

std::optional<Energy> energy_in(const Economics& economics, std::optional<Watts> each,
                                Seconds time) {
  if (!each || !economics.site.value) return std::nullopt;
  const Result<Energy> energy = energy_of(
      {.each = *each, .accelerators = economics.accelerators, .time = time}, *economics.site.value);
  return energy ? std::optional(*energy) : std::nullopt;
}

std::optional<Goodput> goodput_in(const Economics& economics, Seconds step) {
  if (!economics.reliability.value) return std::nullopt;
  const Reliability& r = *economics.reliability.value;
  const Result<Goodput> goodput = goodput_of({.mean_time_to_failure = r.mean_time_to_failure,
                                              .checkpoint = r.checkpoint,
                                              .detect = r.detect,
                                              .restart = r.restart,
                                              .step = step,
                                              .interval = {}});
  return goodput ? std::optional(*goodput) : std::nullopt;
}

}  // namespace

Result<Economics> economics_of(const PlannerFacts& facts, const Machine& machine,
                               const ModelWork& model, const EconomicsOptions& options) {
  return EconomicsBuilder(facts, machine, options).build(model.parameters);
}

Result<Economics> running_costs_of(const PlannerFacts& facts, const NodeType& node,
                                   const EconomicsOptions& options) {
  Result<const Accelerator*> accelerator = facts.catalog.require<Accelerator>(node.accelerator);
  if (!accelerator) return forward_error(accelerator);
  Machine one;
  one.accelerator = *accelerator;
  one.node = &node;
  return EconomicsBuilder(facts, one, options).build_running();
}

Status apply_power_cap(const PlannerFacts& facts, const PowerOptions& options, Machine& machine) {
  if (!options.cap) return {};
  PowerOptions shipped = options;
  shipped.cap.reset();
  Result<PowerModel> before = power_model(facts.catalog, facts.calibration, *machine.node, shipped);
  if (!before) return forward_error(before);
  Result<PowerModel> after = power_model(facts.catalog, facts.calibration, *machine.node, options);
  if (!after) return forward_error(after);
  const double clock = std::min(1.0, after->clock / before->clock);
  for (double& peak : machine.peak) peak *= clock;
  Result<double> memory = relative_throughput(after->memory_clock_bound, clock);
  if (!memory) return forward_error(memory);
  machine.memory_bandwidth *= *memory;
  return {};
}

PlanQuote quote_of(const Economics& economics, const StepCost& cost, const RunSize& size) {
  PlanQuote quote;
  const Seconds step(cost.seconds);
  const std::optional<Watts> each = draw_of(economics, cost);
  const std::optional<Energy> energy = energy_in(economics, each, step);
  quote.tokens_per_second = size.step_length / cost.seconds;
  quote.step_cost = price_of(economics, step, energy);
  if (energy) {
    quote.step_energy = energy->machines;
    quote.power = *each * economics.accelerators;
    quote.joules_per_flop = energy->machines / Flops(size.step_flops);
    quote.tokens_per_second_watt = quote.tokens_per_second / quote.power->value();
  }
  quote.goodput = goodput_in(economics, step);
  if (!size.length) return quote;
  quote.run_steps = std::ceil(*size.length / size.step_length);
  const double effective = quote.goodput ? quote.goodput->effective : 1;
  quote.run_time = step * (*quote.run_steps / effective);
  quote.run_energy = energy_in(economics, each, *quote.run_time);
  quote.run_cost = price_of(economics, *quote.run_time, quote.run_energy);
  return quote;
}

std::optional<PowerLoad> power_load_of(const StepCost& cost) {
  const Result<PowerLoad> load = power_load(phases_of(cost.terms));
  return load ? std::optional(*load) : std::nullopt;
}

std::optional<Joules> step_energy(const Economics& economics, const StepCost& cost) {
  const std::optional<Watts> each = draw_of(economics, cost);
  if (!each) return std::nullopt;
  return *each * economics.accelerators * Seconds(cost.seconds);
}

Joules floor_of_energy(const Economics& economics, double seconds) {
  if (!economics.power.value) return Joules(0);
  const PowerModel& power = *economics.power.value;
  return (power.idle + power.rest_idle) * economics.accelerators * Seconds(seconds);
}

}  // namespace orrery
