#include "twin/world/storage_load.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/numbers/rng.hpp"
#include "fleet/fleet_test.hpp"
#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

std::string site_text(const std::string& name, const std::string& storage) {
  return "- name: " + name + "\n" + storage +
         R"(  halls:
  - name: hall
    pods:
    - name: su
      racks:
      - count: 100
        cooling: in-row-or-dense-air
        nodes: [{type: dgx-h100, count: 4}]
)";
}

/// Two sites with 4 appliances of 90 GB/s read, 65 GB/s write; drives in the nodes at the first; 10
/// GB/s between them, a third site apart.
const Topology& fleet() {
  static const Topology kFleet = [] {
    const std::string lustre =
        "  storage:\n  - {name: lustre, system: ddn-ai400x2-lustre, units: 4}\n";
    return built(
        "apiVersion: orrery/v1\nkind: Fleet\nname: test\nsites:\n" +
        site_text("east", lustre + "  - {name: drives, system: node-local-raid0-8gen4}\n") +
        site_text("west", lustre) + site_text("apart", lustre) +
        "wan:\n- {from: east, to: west, bandwidth: 80 Gb/s, latency: 20 ms}\n");
  }();
  return kFleet;
}

Instant at(double seconds) { return Instant() + Duration::from_seconds(seconds); }

class StorageLoadTest : public ::testing::Test {
 protected:
  [[nodiscard]] StorageId named(std::string_view name, std::uint32_t site = 0) const {
    return *storage.find(site, name);
  }
  [[nodiscard]] TransferRequest checkpoint(double bytes, double nodes) const {
    return {.bytes = Bytes(bytes),
            .to = named("lustre"),
            .nodes = nodes,
            .node = &node_type("dgx-h100")};
  }
  TransferId start(const TransferRequest& request, double seconds) {
    const Result<TransferId> started = storage.start(request, at(seconds));
    EXPECT_TRUE(started) << started.error().text();
    return started ? *started : TransferId();
  }
  void update(double seconds) { storage.rates_changed(links.update(), at(seconds)); }
  /// The time of the next completions, and their number.
  std::pair<double, std::size_t> next() {
    const Instant end = storage.next_completion();
    const std::size_t through = storage.advance(end).size();
    storage.rates_changed(links.update(), end);
    return {(end - Instant()).count_seconds(), through};
  }

  SharedLinks links;
  StorageLoad storage{links, fleet(), builtin_constants()};
};

TEST_F(StorageLoadTest, two_hundred_checkpoints_at_once_take_what_the_system_writes) {
  for (int i = 0; i < 200; ++i) start(checkpoint(1e12, 4), 0);
  update(0);
  const auto [seconds, through] = next();
  EXPECT_NEAR(seconds, 200 * 1e12 / (4 * 65e9), 1e-3);
  EXPECT_EQ(through, 200U);
  EXPECT_EQ(storage.next_completion(), Instant::max());
  EXPECT_EQ(links.flow_count(), 0U);
}

TEST_F(StorageLoadTest, a_lone_checkpoint_of_a_node_takes_what_its_nics_carry) {
  start(checkpoint(1e12, 1), 5);
  update(5);
  EXPECT_NEAR(next().first, 5 + 1e12 / 80e9, 1e-6) << "two 400 Gb/s ports carry 80 GB/s";
}

TEST_F(StorageLoadTest, what_nodes_keep_for_each_other_moves_over_their_nics_beside_all_systems) {
  start(checkpoint(1e12, 4), 0);
  start({.bytes = Bytes(7e12), .nodes = 4, .node = &node_type("dgx-h100")}, 0);
  update(0);
  EXPECT_NEAR(next().first, 1e12 / (4 * 65e9), 1e-6);
  EXPECT_NEAR(next().first, 7e12 / (4 * 350e9), 1e-6) << "eight 400 Gb/s ports carry 350 GB/s";
}

TEST_F(StorageLoadTest, a_second_checkpoint_slows_the_first_from_when_it_starts) {
  // 10 nodes could move 800 GB/s, the system writes 260 GB/s.
  const TransferId first = start(checkpoint(2.6e12, 10), 0);
  update(0);
  const TransferId second = start(checkpoint(2.6e12, 10), 4);
  update(4);
  EXPECT_NEAR(storage.left(first, at(4)).value(), 6 * 0.26e12, 1e6);
  // What is left of the first shares: 6 x 0.26 TB at 130 GB/s.
  EXPECT_NEAR(next().first, 4 + 12, 1e-6);
  EXPECT_NEAR(storage.left(second, at(16)).value(), 4 * 0.26e12, 1e6);
  EXPECT_NEAR(next().first, 16 + 4, 1e-6) << "alone again";
}

TEST_F(StorageLoadTest, reading_and_writing_do_not_take_from_each_other_and_shares_go_by_nodes) {
  const TransferId small = start(checkpoint(1e15, 10), 0);
  const TransferId large = start(checkpoint(1e15, 30), 0);
  const TransferId load = start(
      {.bytes = Bytes(1e15), .from = named("lustre"), .nodes = 100, .node = &node_type("dgx-h100")},
      0);
  update(0);
  EXPECT_DOUBLE_EQ(links.rate(storage.flow(small)).value(), 65e9);
  EXPECT_DOUBLE_EQ(links.rate(storage.flow(large)).value(), 195e9);
  EXPECT_DOUBLE_EQ(links.rate(storage.flow(load)).value(), 360e9);
}

TEST_F(StorageLoadTest, drives_in_the_nodes_are_shared_with_nobody) {
  const TransferRequest local{
      .bytes = Bytes(1e12), .to = named("drives"), .nodes = 10, .node = &node_type("dgx-h100")};
  const double alone = [&] {
    start(local, 0);
    update(0);
    return next().first;
  }();
  for (int i = 0; i < 10; ++i) start(local, alone);
  for (int i = 0; i < 10; ++i) start(checkpoint(1e15, 10), alone);
  update(alone);
  const auto [seconds, through] = next();
  EXPECT_NEAR(seconds, 2 * alone, 1e-6);
  EXPECT_EQ(through, 10U);
}

TEST_F(StorageLoadTest, staging_takes_the_link_between_the_sites_each_way_by_itself) {
  const TransferRequest there{
      .bytes = Bytes(1e12), .from = named("lustre", 0), .to = named("lustre", 1)};
  const TransferRequest back{
      .bytes = Bytes(2e12), .from = named("lustre", 1), .to = named("lustre", 0)};
  start(there, 0);
  start(there, 0);
  start(back, 0);
  update(0);
  const auto [seconds, through] = next();
  EXPECT_NEAR(seconds, 2e12 / 10e9, 1e-6);
  EXPECT_EQ(through, 3U);
}

TEST_F(StorageLoadTest, a_cancelled_transfer_says_what_had_not_arrived) {
  const TransferId id = start(checkpoint(2.6e12, 10), 0);
  update(0);
  EXPECT_NEAR(storage.cancel(id, at(3)).value(), 7 * 0.26e12, 1e6);
  EXPECT_EQ(storage.next_completion(), Instant::max());
  links.update();
  EXPECT_EQ(start(checkpoint(1, 1), 4), id) << "its place is free again";
}

TEST_F(StorageLoadTest, a_system_that_fails_stops_its_transfers_until_it_is_back) {
  const TransferId id = start(checkpoint(2.6e12, 10), 0);
  update(0);
  storage.set_health(named("lustre"), 0);
  update(5);
  EXPECT_EQ(storage.next_completion(), Instant::max());
  EXPECT_NEAR(storage.left(id, at(50)).value(), 1.3e12, 1e6);
  storage.set_health(named("lustre"), 0.5);
  update(100);
  EXPECT_NEAR(next().first, 110, 1e-6);
}

TEST_F(StorageLoadTest, nothing_to_move_is_through_at_once) {
  start(checkpoint(0, 1), 7);
  update(7);
  EXPECT_EQ(next(), (std::pair<double, std::size_t>{7, 1}));
}

TEST_F(StorageLoadTest, says_which_way_is_missing) {
  const Result<TransferId> apart = storage.start(
      {.bytes = Bytes(1), .from = named("lustre", 0), .to = named("lustre", 2)}, at(0));
  ASSERT_FALSE(apart);
  EXPECT_NE(apart.error().text().find("no wan link of the fleet joins east and apart"),
            std::string::npos);
  const Result<TransferId> inside = storage.start(
      {.bytes = Bytes(1), .from = named("drives", 0), .to = named("lustre", 1)}, at(0));
  ASSERT_FALSE(inside);
  EXPECT_NE(inside.error().text().find("drives is inside nodes"), std::string::npos);
  EXPECT_EQ(links.flow_count(), 0U);
}

TEST_F(StorageLoadTest, what_moved_is_what_the_rates_added_up_to_and_never_more_than_the_system) {
  Rng rng(9);
  double now = 0;
  double sent = 0;   // of transfers that are through or under way
  double moved = 0;  // sum of rate x time
  std::set<TransferId> moving;
  for (int step = 0; step < 300; ++step) {
    const double arrival = now + static_cast<double>(rng.below(40));
    const Instant end = std::min(storage.next_completion(), at(arrival));
    const double length = (end - at(now)).count_seconds();
    for (const TransferId id : moving) {
      moved += links.rate(storage.flow(id)).value() * length;
    }
    now = (end - Instant()).count_seconds();
    for (const TransferId id : storage.advance(end)) EXPECT_EQ(moving.erase(id), 1U);
    if (end == at(arrival)) {
      const double bytes = 1e11 * static_cast<double>(1 + rng.below(100));
      sent += bytes;
      moving.insert(start(checkpoint(bytes, 1 + static_cast<double>(rng.below(20))), now));
    }
    update(now);
  }
  double left = 0;
  for (const TransferId id : moving) left += storage.left(id, at(now)).value();
  EXPECT_NEAR(sent - left, moved, 1e-5 * moved);
  EXPECT_LE(moved, 4 * 65e9 * now);
  EXPECT_GT(moved, 0.5 * 4 * 65e9 * now) << "the system was busy";
}

}  // namespace
}  // namespace orrery
