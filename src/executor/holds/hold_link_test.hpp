// executor/holds/hold_link_test.hpp - a HoldLink with a scripted cluster beside it and a manager
// that answers as a test says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/scripted_cluster_test.hpp"
#include "executor/holds/hold_link.hpp"

namespace orrery {

/// Four nodes of a manager, of which the link holds what waiting jobs need.
class HoldLinkTest : public testing::Test {
 protected:
  explicit HoldLinkTest(std::string fleet = four_nodes())
      : cluster_({.fleet = std::move(fleet), .nodes_begin = NodeHealth::kJoining}) {}
  void begin(HoldPool pool = {}) {
    pool.manager = "slurm";
    pool.nodes = {NodeId(0), NodeId(1), NodeId(2), NodeId(3)};
    if (pool.use == PoolUse::kLent) {
      pool.lent = {.nodes = pool.nodes, .most = most_, .time = Duration::hours(24)};
    }
    link_ = std::make_unique<HoldLink>(HoldSetup{.term = term_, .pools = {pool}}, cluster_.state(),
                                       cluster_.now());
    settle();
  }

  /// Hands effects on: inputs to control, orders to orders_.
  void settle() {
    for (HoldEffect& effect : link_->take()) {
      if (auto* input = std::get_if<InputKind>(&effect)) {
        cluster_.send(std::move(*input));
      } else {
        orders_.push_back(std::get<ManagerOrder>(effect));
      }
    }
  }
  /// Lets time pass; the manager answers each question for a list with `holds_`.
  void wait(Duration time) {
    const Instant end = cluster_.now() + time;
    while (cluster_.now() < end) {
      cluster_.wait(Duration::seconds(1));
      while (link_->next_due() <= cluster_.now()) {
        link_->advance(cluster_.core(), cluster_.now());
        settle();
        answer_lists();
      }
    }
  }
  void answer_lists() {
    std::vector<ManagerOrder> orders = std::exchange(orders_, {});
    for (ManagerOrder& order : orders) {
      if (const auto* list = std::get_if<ListHolds>(&order.what)) {
        if (silent_) continue;
        hear(ManagerListing{.asked = list->asked,
                            .complete = complete_,
                            .trouble = trouble_,
                            .holds = holds_,
                            .nodes = nodes_,
                            .foreign = list->foreign ? std::optional(foreign_) : std::nullopt});
      } else {
        asked_.push_back(std::move(order));
      }
    }
  }
  void hear(std::variant<HoldAnswer, ManagerListing> what) {
    link_->deliver({0, std::move(what)}, cluster_.state(), cluster_.now());
    settle();
  }

  /// The orders of a kind so far.
  template <class Order>
  [[nodiscard]] std::vector<Order> asked() const {
    std::vector<Order> found;
    for (const ManagerOrder& order : asked_) {
      if (const auto* one = std::get_if<Order>(&order.what)) found.push_back(*one);
    }
    return found;
  }
  /// The manager lends nodes to the hold.
  void run(const HoldKey& key, const std::string& id, std::vector<std::string> nodes) {
    holds_.push_back(
        {.key = key, .id = id, .phase = HoldPhase::kRunning, .nodes = std::move(nodes)});
  }
  [[nodiscard]] std::string name(std::uint32_t node) const {
    return cluster_.topology().node_name(NodeId(node));
  }
  [[nodiscard]] const Hold& only() const {
    EXPECT_EQ(link_->holds().size(), 1u);
    return link_->holds()[0];
  }
  JobId submit(std::uint32_t devices) {
    const JobId id = cluster_.submit(cluster_.job(devices));
    cluster_.tick();
    return id;
  }

  std::uint64_t term_ = 3;
  std::uint32_t most_ = 4;  ///< nodes that the manager lends at once
  ScriptedCluster cluster_;
  std::unique_ptr<HoldLink> link_;
  std::vector<ManagerOrder> orders_;
  std::vector<ManagerOrder> asked_;
  std::vector<HoldSeen> holds_;
  std::vector<ManagerNode> nodes_;
  std::vector<ForeignWork> foreign_;
  std::string trouble_;
  bool complete_ = true;
  bool silent_ = false;
};

}  // namespace orrery
