// scheduler/request/share_fit.hpp - which node, and which of its devices, a request for parts of
// devices gets.
//
// The scheduler builds one ShareFit over the nodes it may use and passes it every request in turn;
// each choice sees the nodes and the distribution of requests, never a later request. Not
// thread-safe.
//
// Invariant: a cached score is that of the node in its current state.
// Cost: a choice looks at every node once (about 1 ns each) and scores again those that changed
// since the last request of the same kind; memory is 16 bytes for each node and kind.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "scheduler/plans/typical_requests.hpp"
#include "scheduler/request/share_request.hpp"

namespace orrery {

/// Position of a node among those a ShareFit was built over.
using ShareNodeId = Id<struct ShareNodeTag>;

enum class ShareRule {
  /// Least CPU and devices left on the node, each as a part of the largest node's.
  kBestFit,
  /// Fragmentation gradient descent: least growth of the devices that typical requests cannot use
  /// (Weng et al., "Beware of Fragmentation", USENIX ATC 2023). As in its authors' implementation,
  /// the growth passes through a sigmoid and counts in whole points of 100, about 40 thousandths
  /// each at 0.
  kFragmentation,
  /// The default: least loss of worth, see node_worth().
  kWorth,
};

/// Free thousandths of the node that a typical request cannot use, on average: all of them if the
/// request does not fit, else those of devices with less free than it asks for one.
[[nodiscard]] double node_fragmentation(const ShareNode& node, const TypicalRequests& typical);

/// The worth of the node in devices: the worth of its devices F plus, for the host, half of what
/// requests of each kind alone could use, min(F, CPU left / CPU per worth, memory left / memory per
/// worth), averaged over kinds by the worth they request. So CPU-hungry requests go where CPU is
/// plentiful, frugal ones where it is scarce, and parts where they leave parts that are in demand.
[[nodiscard]] double node_worth(const ShareNode& node, const TypicalRequests& typical);

struct ShareScore {
  double value = 0;  ///< higher is better
  ShareDevices devices = 0;
};

/// The best devices of the node under the rule. Precondition: the request fits.
[[nodiscard]] ShareScore share_score(ShareRule rule, const ShareNode& node,
                                     const ShareRequest& request, const TypicalRequests& typical);

struct ShareChoice {
  ShareNodeId node;
  ShareDevices devices = 0;
};

class ShareFit {
 public:
  ShareFit(ShareRule rule, TypicalRequests typical, std::vector<ShareNode> nodes);

  /// The node with the highest score, ties by ascending id; nothing where the request fits nowhere.
  [[nodiscard]] std::optional<ShareChoice> choose(const ShareRequest& request);

  /// Precondition: the request fits on the chosen devices.
  void take(const ShareRequest& request, const ShareChoice& choice);
  /// Undoes take().
  void give_back(const ShareRequest& request, const ShareChoice& choice);

  [[nodiscard]] std::span<const ShareNode> nodes() const { return nodes_; }

 private:
  /// Scores of every node for requests of one kind, as of change number `seen`.
  struct Kind {
    std::vector<ShareScore> scores;  ///< value is -infinity where the request does not fit
    std::uint64_t seen = 0;
  };

  Kind& kind_of(const ShareRequest& request);
  /// The score of node `i`. Precondition: the scores of the nodes before it are up to date.
  [[nodiscard]] ShareScore judged(const Kind& kind, std::size_t i,
                                  const ShareRequest& request) const;

  ShareRule rule_;
  TypicalRequests typical_;
  std::vector<ShareNode> nodes_;
  std::vector<std::size_t>
      twins_;  ///< the nearest earlier node that was equal at the start, or the node itself
  std::uint64_t changes_ = 1;
  std::vector<std::uint64_t> changed_at_;  ///< number of the node's last change
  std::map<ShareRequest, Kind> kinds_;
};

}  // namespace orrery
