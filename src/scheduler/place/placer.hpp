// scheduler/place/placer.hpp - chooses devices for one gang, or reports what blocks it.
//
// Hierarchical best fit: the narrowest part of the fleet that holds the whole gang; among equal
// ones the one with the fewest free devices; inside it as few children as possible, the last of
// them the tightest. The free counts of domains answer in O(levels) whether a gang fits at all.
// What they do not count (CPU, memory, segments, rails, exclusive nodes) is counted node by node
// only where the counts alone were misleading, or where the request names it.
//
// Pure in its inputs: a Placer keeps only scratch memory. One thread. Ties by ascending id.
#pragma once

#include <span>
#include <vector>

#include "base/error.hpp"
#include "fleet/view.hpp"
#include "scheduler/place/place_tree.hpp"
#include "scheduler/request/gang.hpp"

namespace orrery {

enum class NodeFit : std::uint8_t {
  kFirst,  ///< nodes in their order
  kBest,
};

inline std::array<EnumWord<NodeFit>, 2> enum_words(NodeFit) {
  return {{{"first", NodeFit::kFirst}, {"best", NodeFit::kBest}}};
}

struct PlaceOptions {
  NodeFit fit = NodeFit::kBest;
  PlaceId within = PlaceTree::root();
  std::span<const NodeRun> avoid;          ///< where other gangs of the role already are
  std::size_t most = 1;                    ///< number of offers wanted
  std::uint16_t share_max = kWholeDevice;  ///< thousandths of a device that may be given out
};

using AllocationOrRefusal = tl::expected<Allocation, Refusal>;

class Placer {
 public:
  /// The tree must outlive the placer.
  explicit Placer(const PlaceTree& tree);

  [[nodiscard]] const PlaceTree& tree() const { return *tree_; }

  /// Precondition: the view is of the tree's topology. O(places + devices), or O(nodes + devices)
  /// for requests the free counts do not answer.
  [[nodiscard]] AllocationOrRefusal place(const FleetView& view, const GangRequest& request,
                                          const PlaceOptions& options = {});

  /// Whether place() would find room. O(1) for whole accelerators anywhere in the fleet that are
  /// all the request names, else as place().
  [[nodiscard]] bool fits(const FleetView& view, const GangRequest& request,
                          const PlaceOptions& options = {});

  /// Up to `options.most` different allocations, the one of place() first. Empty if place()
  /// refuses.
  [[nodiscard]] std::vector<Allocation> offers(const FleetView& view, const GangRequest& request,
                                               const PlaceOptions& options);

  /// Why place() would refuse. Precondition: it would.
  [[nodiscard]] Refusal refusal_of(const FleetView& view, const GangRequest& request,
                                   std::span<const NodeRun> avoid);

 private:
  /// A place that holds the gang while none inside it does.
  struct Holder {
    PlaceId place;
    NodeId node;  ///< when one node is enough
    std::uint32_t rank = 0;
    std::uint32_t free = 0;
  };
  /// What a node can give: units, and devices left over.
  struct NodeRoom {
    NodeId node;
    std::uint32_t units = 0;
    std::uint32_t left = 0;
  };
  struct PlaceRoom {
    PlaceId id;
    std::uint32_t units = 0;
    std::uint32_t free = 0;
  };
  struct Job {
    const FleetView* view = nullptr;
    const GangRequest* request = nullptr;
    const PlaceOptions* options = nullptr;
    std::uint32_t units = 0;  ///< units of request.node_devices
    std::uint32_t rest = 0;   ///< devices of the last, smaller unit
    std::uint64_t rails = 0;  ///< device positions that must be free on every node; 0: any
    TopologyLevel required = TopologyLevel::kFleet;
  };

  enum class Counting { kIndexed, kExact };

  void begin(const Job& job, Counting counting);
  [[nodiscard]] bool allowed(const Place& place) const;
  [[nodiscard]] std::uint32_t units_in(PlaceId id);
  [[nodiscard]] std::uint32_t count_units(const Place& place);
  [[nodiscard]] std::uint32_t free_in(const Place& place) const;
  [[nodiscard]] std::uint32_t node_units(NodeId node) const;
  [[nodiscard]] std::uint32_t host_units(NodeId node) const;
  [[nodiscard]] bool node_holds(NodeId node) const;
  [[nodiscard]] bool avoided(NodeId node) const;
  void note_avoided();
  [[nodiscard]] bool counts_answer(const Place& place) const;

  void find_holders();
  /// Whether the search is inside a place of the required level.
  enum class Inside { kNo, kYes };
  bool find_holders_in(PlaceId id, Inside inside);
  void find_nodes();
  void find_nodes_exactly();
  [[nodiscard]] NodeId tightest_node(DomainId from, std::uint32_t available) const;
  [[nodiscard]] std::uint32_t holder_key(NodeId node, std::uint32_t available) const;
  [[nodiscard]] NodeId first_node(DomainId from) const;
  [[nodiscard]] Refusal refusal();

  [[nodiscard]] bool fill(const Holder& holder, Allocation& out);
  [[nodiscard]] bool take_units(PlaceId id, Allocation& out);
  [[nodiscard]] bool take_from(PlaceId id, std::uint32_t units, Allocation& out);
  [[nodiscard]] bool take_nodes(const Place& place, std::uint32_t units, Allocation& out);
  [[nodiscard]] bool take_rest(const Place& place, Allocation& out);
  [[nodiscard]] std::uint64_t pick(NodeId node, std::uint64_t taken, std::uint32_t count) const;
  void hold_idle(Allocation& out) const;
  [[nodiscard]] std::vector<Allocation> attempt(Counting counting);
  [[nodiscard]] std::vector<Allocation> offers_on_rails();

  const PlaceTree* tree_;
  std::vector<std::uint8_t> rank_;  ///< by TopologyLevel; 0 is the narrowest of this fleet
  Job job_;
  Counting counting_ = Counting::kIndexed;
  std::uint32_t call_ = 0;
  std::vector<std::uint32_t> counted_;  ///< by place, valid where its stamp_ equals call_
  std::vector<std::uint32_t> stamp_;
  std::vector<std::uint32_t> avoided_;   ///< by node: call_ where options.avoid names it
  std::vector<std::uint32_t> avoiding_;  ///< by place: call_ where it contains such a node
  std::vector<Holder> holders_;
  std::vector<NodeRoom> room_;
  std::vector<PlaceRoom> rooms_;  ///< the places that devices are being taken from, widest first
};

/// The number of ranks for which a node has CPU, memory and disks.
[[nodiscard]] std::uint32_t host_ranks(const HostResources& host, const NodeState& state,
                                       const HostNeeds& need);

/// Places shares of an accelerator: on the fullest device that still has room, else on a free
/// device where fewest are free. O(nodes).
[[nodiscard]] AllocationOrRefusal place_share(const PlaceTree& tree, const FleetView& view,
                                              const GangRequest& request,
                                              const PlaceOptions& options);

}  // namespace orrery
