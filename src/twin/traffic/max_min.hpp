// twin/traffic/max_min.hpp - weighted max-min fair rates of flows that share resources, kept up to
// date as flows come and go.
//
// One per world, owned by the simulator; network (twin/traffic/job_traffic.hpp) and storage
// (twin/world/storage_load.hpp) put their resources and flows into the same one. One thread. Fluid:
// a rate holds until the next update, nothing has a length or a queue.
//
// Rates are those of progressive filling (D. Bertsekas and R. Gallager, Data Networks, 2nd ed.,
// 1992, chapter 6; weighted: the level that rises is rate / weight). They are unique, and a set of
// rates is the fair one exactly when each flow either has its demand or crosses a full resource on
// which no other has a higher level, its bottleneck. That makes them local: update() fills only the
// flows that changed and, until the condition holds everywhere, those it finds in breach of it.
//
// Invariants after update(): no resource carries more than its capacity, but for rounding of one
// part in 10^9; every flow has its demand or a bottleneck. Load on a resource is held in steps of
// 2^-49 of the largest capacity it had, so sums are exact: with all flows gone it is zero.
//
// Cost: a change is O(uses of the flow). update() is O(uses of the flows it fills x log) for each
// of the rounds it takes to find them, few in practice, and O(flows) for each full resource whose
// level changes. A resource that is no bottleneck couples no flows: an event there costs its own
// flow.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "base/quantity.hpp"

namespace orrery {

/// A bandwidth that several flows share: a bundle of links, a storage system.
using ResourceId = Id<struct ResourceTag>;
/// Position among the live flows; reused once a flow is removed.
using FlowId = Id<struct FlowTag>;

/// What one byte/s of a flow takes of a resource.
struct ResourceUse {
  ResourceId resource;
  double multiplicity = 1;  ///< above 0
};

struct FlowTerms {
  double weight = 1;  ///< above 0; on a full resource rates are proportional to the weights
  /// Upper limit of the rate, at least 0.
  BytesPerSecond demand{std::numeric_limits<double>::infinity()};
};

class SharedLinks {
 public:
  /// Levels and loads that differ by less than `tolerance` of themselves count as the same: a flow
  /// is left as it is while what it could gain, or owes a slower one, at its bottleneck is less.
  /// Capacities hold all the same. Rates are then fair to about the tolerance, and an event spreads
  /// only as far as it is felt. Precondition: 1e-9 to 0.1.
  explicit SharedLinks(double tolerance = kExact);

  /// Precondition: finite, not negative.
  ResourceId add_resource(BytesPerSecond capacity);
  void set_capacity(ResourceId id, BytesPerSecond capacity);

  /// A flow without uses has its demand. Its rate is 0 until the next update. Preconditions: uses
  /// ascending by resource, each once; a finite demand where there are none. Takes the id that was
  /// freed last, else a new one.
  FlowId add_flow(const FlowTerms& terms, std::span<const ResourceUse> uses);
  void set_terms(FlowId id, const FlowTerms& terms);
  void remove_flow(FlowId id);

  /// Makes the rates fair again. Returns the flows whose rate differs by more than kReportedChange
  /// of itself from the one last returned here, ascending; removed flows are not among them. Valid
  /// until the next update. Equal states reached by other ways give rates that agree to about one
  /// part in 10^9; the same calls in the same order give the same bits.
  std::span<const FlowId> update();

  [[nodiscard]] BytesPerSecond rate(FlowId id) const { return flows_[id.value()].rate; }
  [[nodiscard]] const FlowTerms& terms(FlowId id) const { return flows_[id.value()].terms; }
  [[nodiscard]] BytesPerSecond capacity(ResourceId id) const {
    return BytesPerSecond(resources_[id.value()].capacity);
  }
  /// What flows take of the resource, as of the last update.
  [[nodiscard]] BytesPerSecond load(ResourceId id) const {
    return BytesPerSecond(resources_[id.value()].load);
  }
  [[nodiscard]] std::size_t flow_count() const { return flows_.size() - free_.size(); }
  /// Number of flows that the last update filled.
  [[nodiscard]] std::size_t filled() const { return filling_.size(); }

  static constexpr double kExact = 1e-9;
  static constexpr double kReportedChange = 1e-6;

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  struct Use {
    ResourceId resource;
    double multiplicity = 1;
    double load = 0;         ///< of this flow, within the resource's
    std::uint32_t slot = 0;  ///< among the members of the resource
  };
  struct Flow {
    FlowTerms terms;
    BytesPerSecond rate;
    BytesPerSecond reported;
    ResourceId bottleneck;  ///< none: it has its demand, or is being filled
    std::vector<Use> uses;
    bool live = false;
    bool changed = false;              ///< since the last update
    std::uint32_t filling = kNowhere;  ///< position in filling_ during an update

    [[nodiscard]] double level() const { return rate.value() / terms.weight; }
  };
  struct Member {
    FlowId flow;
    std::uint32_t use = 0;  ///< among the uses of the flow
  };
  struct Resource {
    double capacity = 0;
    double step = 0;  ///< of load
    double load = 0;
    std::uint32_t bound = 0;  ///< flows whose bottleneck it is
    /// Bounds on levels of flows that are not being filled: none bound here is lower than `floor`,
    /// and none at all is higher than `ceiling`.
    double floor = 0;
    double ceiling = 0;
    bool changed = false;              ///< capacity or users changed since the last update
    std::uint32_t touched = kNowhere;  ///< position in touched_ during an update
    std::vector<Member> members;
  };
  /// A resource during an update, as flows being filled see it.
  struct Touched {
    ResourceId resource;
    double left = 0;           ///< capacity not taken by flows with a rate
    double weight = 0;         ///< of the flows still rising, times multiplicity
    double lowest_bound = 0;   ///< level of the flows whose bottleneck it became
    double highest = 0;        ///< level of any flow filled
    std::uint32_t rising = 0;  ///< flows
    std::uint32_t filled = 0;  ///< flows, rising or not
    std::uint32_t first = 0;   ///< position of its first flow in crossings_
    bool binds = false;
  };
  /// Levels at which a resource will be full, and at which a flow will have its demand, if all rise
  /// until then.
  struct Full {
    double level = 0;
    ResourceId resource;  ///< breaks ties
    friend auto operator<=>(const Full&, const Full&) = default;
  };
  struct Satisfied {
    double level = 0;
    std::uint32_t at = 0;  ///< in filling_; breaks ties
    friend auto operator<=>(const Satisfied&, const Satisfied&) = default;
  };

  void mark(ResourceId id);
  void mark(FlowId id);
  /// Coarsens the step of load to what the capacity requires.
  void coarsen(Resource& resource);
  void leave(const Use& use);
  /// Removes a flow from the loads and adds it to the flows to fill.
  void admit(FlowId id);
  void admit_marked();
  void admit_all_if_many();
  void prepare();
  void list_crossings();
  void fill();
  void freeze(std::uint32_t at, double level, ResourceId bottleneck);
  void freeze_at(std::uint32_t touched);
  /// The rising flow that reaches its demand first; nullptr: no flow rises.
  [[nodiscard]] const Satisfied* next_satisfied();
  /// The resource that is full first, or none.
  [[nodiscard]] Full next_full();
  [[nodiscard]] double level_of_full(const Touched& touched) const {
    return touched.left / touched.weight;
  }
  /// Adds the flows outside the filling that the new rates put in breach of fairness.
  void find_breaches();
  void find_breaches_on(const Touched& touched);
  void settle(const Touched& touched);
  void settle();

  double tolerance_;
  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_;
  std::vector<ResourceId> changed_resources_;
  std::vector<FlowId> changed_flows_;
  std::vector<FlowId> reported_;

  // Scratch of one update; members to keep their memory.
  std::vector<FlowId> filling_;
  std::vector<FlowId> breaches_;
  std::vector<Touched> touched_;
  std::vector<std::uint32_t> crossings_;  ///< positions in filling_, by touched resource
  std::vector<Satisfied> satisfied_;      ///< ascending
  std::size_t next_satisfied_ = 0;
  std::vector<Full> full_;            ///< a heap, the least first
  std::vector<std::uint8_t> frozen_;  ///< by position in filling_
};

}  // namespace orrery
