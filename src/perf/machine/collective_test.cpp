#include "perf/machine/collective.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

// Eight ranks a domain at 100 GB/s each, then 10 GB/s a rank.
Network two_levels() {
  Network network;
  network.count = 2;
  network.levels[0] = {.size = 8, .bandwidth = 100e9, .all_to_all = 50e9};
  network.levels[1] = {.size = 64, .bandwidth = 10e9, .all_to_all = 10e9};
  return network;
}

TEST(Collective, a_group_of_one_exchanges_nothing) {
  const Network network = two_levels();
  const Span alone = span_of(network, 1, 1);
  EXPECT_EQ(all_gather_seconds(network, alone, 1e9), 0);
  EXPECT_EQ(all_reduce_seconds(network, alone, 1e9), 0);
  EXPECT_EQ(all_to_all_seconds(network, alone, 1e9), 0);
}

TEST(Collective, a_ring_inside_a_domain_moves_n_minus_1_over_n_of_the_bytes) {
  const Network network = two_levels();
  EXPECT_DOUBLE_EQ(all_gather_seconds(network, span_of(network, 4, 1), 8e9), 8e9 * 0.75 / 100e9);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(network, span_of(network, 4, 1), 8e9),
                   2 * 8e9 * 0.75 / 100e9);
}

TEST(Collective, members_in_one_domain_share_the_traffic_between_domains) {
  Network network = two_levels();
  network.levels[1].bandwidth = 5e9;
  // 16 neighbours: 8 in each of two domains, half of the bytes come in over 8 links.
  EXPECT_DOUBLE_EQ(all_gather_seconds(network, span_of(network, 16, 1), 16e9),
                   16e9 * 0.5 / (8 * 5e9));
  // 8 ranks, one a domain: seven eighths over the one link each has.
  EXPECT_DOUBLE_EQ(all_gather_seconds(network, span_of(network, 8, 8), 16e9), 16e9 * 7 / 8 / 5e9);
}

TEST(Collective, a_group_for_which_no_unit_has_room_left_lies_across_them) {
  Network network = two_levels();
  network.levels[0].size = 72;
  network.levels[1].size = 576;
  const auto inside = [&](double ranks, double size, double stride) {
    network.ranks = ranks;
    return span_of(network, size, stride).inside[0];
  };
  // Eight racks of 72 hold eight groups of 64; the ninth gets the eight ranks left in each.
  EXPECT_EQ(inside(512, 64, 1), 64);
  EXPECT_EQ(inside(576, 64, 1), 8);
  EXPECT_EQ(inside(576, 16, 4), 2);
  EXPECT_EQ(inside(576, 36, 2), 36);
  EXPECT_EQ(inside(576, 72, 1), 72);
  EXPECT_EQ(inside(0, 64, 1), 64) << "nothing is known of the other groups";
}

TEST(Collective, sums_in_the_switch_halve_the_traffic_of_an_all_reduce) {
  Network network = two_levels();
  const Span span = span_of(network, 8, 1);
  const double ring = all_reduce_seconds(network, span, 8e9);
  network.levels[0].reduction_factor = 1;
  EXPECT_DOUBLE_EQ(all_reduce_seconds(network, span, 8e9), ring / 2);
}

TEST(Collective, copies_of_a_token_that_are_not_merged_all_cross) {
  const Network network = two_levels();
  const Span span = span_of(network, 16, 1);
  // Half of the experts of a token are in the other of two domains.
  EXPECT_DOUBLE_EQ(dispatch_seconds(network, span, {.bytes = 1e9, .fanout = 8, .merging = 0}),
                   8 * 0.5 * 1e9 / 10e9);
  const double one = dispatch_seconds(network, span, {.bytes = 1e9, .fanout = 1, .merging = 1});
  EXPECT_DOUBLE_EQ(dispatch_seconds(network, span, {.bytes = 1e9, .fanout = 1, .merging = 0}), one);
}

TEST(Collective, a_token_crosses_to_a_domain_once_however_many_of_its_experts_are_there) {
  const Network network = two_levels();
  const Span span = span_of(network, 16, 1);
  const double one = dispatch_seconds(network, span, {.bytes = 1e9, .fanout = 1});
  const double many = dispatch_seconds(network, span, {.bytes = 1e9, .fanout = 1000});
  EXPECT_DOUBLE_EQ(one, 1e9 * 0.5 / 10e9);
  // At most one copy crosses, and at most 15 go over the links inside.
  EXPECT_NEAR(many, 15e9 / 50e9, 1e-3);
}

TEST(Collective, never_takes_longer_with_more_bandwidth_or_fewer_bytes) {
  Rng rng = Rng::stream(3, "collective");
  for (int round = 0; round < 200; ++round) {
    Network network = two_levels();
    network.levels[0].latency = rng.uniform() * 1e-5;
    network.levels[1].latency = rng.uniform() * 1e-5;
    const Span span = span_of(network, static_cast<double>(1 + rng.below(64)),
                              static_cast<double>(1 + rng.below(8)));
    const double bytes = rng.uniform() * 1e10;
    const double before = all_reduce_seconds(network, span, bytes);
    EXPECT_LE(all_reduce_seconds(network, span, bytes / 2), before);
    network.levels[rng.below(2)].bandwidth *= 1 + rng.uniform();
    EXPECT_LE(all_reduce_seconds(network, span, bytes), before);
  }
}

// NVIDIA's figure for eight H100 with sums in the switches: 480 GB/s bus bandwidth, 360 for rings.
TEST(Collective, eight_h100_all_reduce_a_gibibyte_at_about_their_measured_bus_bandwidth) {
  const Accelerator* h100 = builtin_facts().find<Accelerator>("h100");
  ASSERT_NE(h100, nullptr);
  const Result<Machine> machine =
      machine_of(builtin_facts(), {.accelerator = h100, .accelerators = 8});
  ASSERT_TRUE(machine);
  const Network network = network_of(*machine, builtin_constants());
  const double bytes = 1 << 30;
  const double seconds = all_reduce_seconds(network, span_of(network, 8, 1), bytes);
  const double bus = bytes / seconds * 2 * 7 / 8;
  EXPECT_GT(bus, 300e9);
  EXPECT_LT(bus, 560e9);
}

}  // namespace
}  // namespace orrery
