// planner/serving/serving_plan.hpp - which accelerators to serve a model on, how many, how laid out
// and in which numbers: ranked services with price, draw, latency and memory, or why there is none.
//
// Every layout of one instance (planner/serving/serving_space.hpp) is loaded as far as its memory,
// its scheduler and the limits on latency allow (planner/serving/serving_capacity.hpp); as many
// instances as the offered rate needs share it. An instance stays inside a scale-up domain where
// the model fits one, else it takes several whole domains. Pure and deterministic; the facts and
// the question's model must outlive the answer. Cost: some fifty predictions a layout and number
// format.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perf/serving/serving_estimate.hpp"
#include "planner/serving/apart_plan.hpp"
#include "planner/serving/serving_capacity.hpp"
#include "planner/serving/serving_quote.hpp"
#include "planner/serving/serving_space.hpp"

namespace orrery {

enum class ServingObjective {
  kCost,    ///< dollars a generated token
  kEnergy,  ///< joules a generated token: tokens/s per watt
  kRack,    ///< tokens/s per rack
};

inline constexpr std::size_t kServingObjectives = 3;

inline std::array<EnumWord<ServingObjective>, kServingObjectives> enum_words(ServingObjective) {
  return {{{"cost", ServingObjective::kCost},
           {"energy", ServingObjective::kEnergy},
           {"rack", ServingObjective::kRack}}};
}

/// Accelerators of one type on which a service might run.
struct ServingChoice {
  std::string label;
  const Accelerator* accelerator = nullptr;
  const NodeType* node = nullptr;
  std::optional<std::uint64_t> accelerators;  ///< number available; none: as many as needed
  std::uint32_t domain = 1;                   ///< number in one scale-up domain, or node
  std::optional<Machine> joined = {};  ///< several domains and their network; none: not joined
  EconomicsOptions economics;
};

/// Nodes of the accelerator's default type in their default network, where the catalog states its
/// bandwidth.
[[nodiscard]] ServingChoice serving_choice(const Catalog& catalog, const Accelerator& accelerator,
                                           std::optional<std::uint64_t> accelerators);

struct ServingQuestion {
  const Model* model = nullptr;
  double input = 1;            ///< tokens of a prompt
  double output = 1;           ///< tokens generated
  std::optional<double> rate;  ///< requests a second; none: as many as the accelerators serve
  LatencyLimits limits;
  std::vector<ServingChoice> machines;
  std::vector<NumberFormat> formats;  ///< of the weights; empty: the planner's choice
  std::string engine = "vllm";
  std::string engine_version;
  ServingObjective objective = ServingObjective::kCost;
  std::size_t best = 5;
};

/// A service. Figures of `prediction` are of all instances together except batch and memory.
struct ServingOffer {
  std::size_t machine = 0;  ///< position in ServingQuestion::machines
  ServingPlan plan;         ///< with its replicas
  ServingNumbers numbers;
  NumberFormat cache = NumberFormat::kBf16;
  double concurrency = 0;   ///< most requests in flight, an instance
  double requests_max = 0;  ///< a second, by all instances within the limits
  ServingPrediction prediction;
  std::vector<ServingBound> bounds;  ///< what prevents a larger batch
  ServingQuote quote;
  ServingInterval throughput;
  ServingInterval latency;
  ServingInterval first_token;

  [[nodiscard]] double accelerators() const { return devices_of(plan) * plan.replicas; }
};

/// A service whose prompts and answers are computed by different instances.
struct ApartOffer {
  std::size_t machine = 0;  ///< position in ServingQuestion::machines
  ServingNumbers numbers;
  NumberFormat cache = NumberFormat::kBf16;
  ServingPlan prompts;  ///< with its replicas, as the other
  ServingPlan answers;
  double concurrency = 0;  ///< most sequences running, an instance of the answers
  ApartFigures figures;
  Seconds transfer;  ///< of a prompt's cache
  double requests = 0;
  double requests_max = 0;  ///< a second, by all instances within the limits
  ServingQuote quote;

  [[nodiscard]] double accelerators() const {
    return devices_of(prompts) * prompts.replicas + devices_of(answers) * answers.replicas;
  }
};

/// Accelerators of the largest instance that may be tried, where no domain holds the model.
[[nodiscard]] std::uint32_t largest_instance(const ServingChoice& choice);

/// Nodes over which one instance lies: it takes the same power of two of accelerators on each.
[[nodiscard]] std::uint32_t instance_nodes(const ServingChoice& choice, const ServingPlan& plan);

/// The figure that is small for a good offer: dollars or joules a token, or minus the tokens/s of a
/// rack. No value: the figure is not published.
[[nodiscard]] std::optional<double> score_of(const ServingQuote& quote, ServingObjective objective);

/// Why a machine has no service.
struct ServingRefusal {
  std::size_t machine = 0;
  Error why;
};

struct ServingAnswer {
  std::vector<ServingOffer> plans;       ///< best first
  std::vector<ServingOffer> by_machine;  ///< the best of each machine, best first
  std::array<std::optional<ServingOffer>, kServingObjectives> by_objective;
  std::vector<ApartOffer> apart;  ///< the best of each machine with prompts apart, best first
  std::vector<ServingRefusal> refused;
  std::uint64_t layouts = 0;  ///< number tried, with every number format
  std::vector<std::string> assumptions;
};

/// Ties: fewer accelerators, then the order of machines, formats and layouts. Errors: wrong sizes,
/// a model that generates no tokens; kInfeasible: no machine has a service, with the binding limit
/// and the smallest changes that help.
[[nodiscard]] Result<ServingAnswer> plan_serving(const PlannerFacts& facts,
                                                 const ServingQuestion& question);

/// One instance as the row of a run file: without a layout and a load, or as the offer has them.
[[nodiscard]] ServingRun run_of(const ServingQuestion& question, const ServingChoice& choice,
                                const ServingNumbers& numbers);
[[nodiscard]] ServingRun run_of(const ServingQuestion& question, const ServingOffer& offer);

}  // namespace orrery
