#include "runtime/collectives/collective_plan.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "runtime/elastic/group_of_threads_test.hpp"
#include "runtime/exchange/shm_exchange.hpp"

namespace orrery {
namespace {

using Machines = std::vector<std::uint32_t>;

TEST(MachinesOf, RanksThatOpenedEachOthersMemoryAreOfOne) {
  EXPECT_EQ(machines_of(std::vector<std::uint64_t>{3, 3, 12, 12}), (Machines{0, 0, 2, 2}));
  EXPECT_EQ(machines_of(std::vector<std::uint64_t>{5, 10, 5, 10}), (Machines{0, 1, 0, 1}));
  EXPECT_EQ(machines_of(std::vector<std::uint64_t>{0, 0}), (Machines{0, 1}));
}

TEST(MachinesOf, WhereTheyAreNoSetsEachIsAlone) {
  EXPECT_EQ(machines_of(std::vector<std::uint64_t>{7, 3, 5}), (Machines{0, 1, 2}));
  EXPECT_EQ(machines_of(std::vector<std::uint64_t>{3, 2}), (Machines{0, 1})) << "only one way";
}

/// An exchange that only knows which ranks share a machine, and does nothing.
class Placed final : public PeerExchange {
 public:
  Placed(std::uint32_t rank, Machines machines) : rank_(rank), machines_(std::move(machines)) {}
  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override {
    return static_cast<std::uint32_t>(machines_.size());
  }
  [[nodiscard]] std::uint32_t machine_of(std::uint32_t rank) const override {
    return machines_[rank];
  }
  Shared<std::size_t> show(std::span<const ShownPart> parts, Wait /*wait*/) override {
    return parts.size();
  }
  Shared<std::optional<std::span<const std::byte>>> look(std::uint32_t /*from*/,
                                                         Wait /*wait*/) override {
    return std::nullopt;
  }
  Shared<bool> settle(Wait /*wait*/) override { return true; }
  Shared<PartOnItsWay> begin_show(const ShownPart& /*part*/) override { return PartOnItsWay{}; }
  Shared<void> arrived(const PartOnItsWay& /*part*/) override { return {}; }
  std::optional<PeerLost> watch(Duration /*patience*/) override { return std::nullopt; }

 private:
  std::uint32_t rank_;
  Machines machines_;
};

/// Rounds of an all-reduce, and the bytes that leave a rank's machine.
struct Traffic {
  std::size_t rounds = 0;
  std::size_t outward = 0;
};

CollectivePlan plan_of(const Placed& exchange) {
  std::vector<std::uint32_t> members(exchange.size());
  for (std::uint32_t rank = 0; rank < exchange.size(); ++rank) members[rank] = rank;
  return {exchange, members};
}

Traffic traffic_of(const Machines& machines, std::size_t bytes, SumType type) {
  std::vector<std::byte> elements(bytes);
  Traffic traffic;
  for (std::uint32_t rank = 0; rank < machines.size(); ++rank) {
    const Placed exchange(rank, machines);
    const Rounds rounds = plan_of(exchange).all_reduce({elements, type});
    traffic.rounds = rounds.size();
    for (const Round& round : rounds) {
      for (const ShownPart& part : round.shown) {
        if (machines[part.to] != machines[rank]) traffic.outward += part.bytes.size();
      }
    }
  }
  return traffic;
}

TEST(CollectivePlan, MachinesTellEachOtherTheirSumsAndNotTheirRanks) {
  const std::size_t bytes = 65'536;
  const Traffic flat = traffic_of({0, 1, 2, 3, 4, 5, 6, 7}, bytes, SumType::kFloat32);
  EXPECT_EQ(flat.rounds, 2u);
  const Traffic two = traffic_of({0, 0, 0, 0, 4, 4, 4, 4}, bytes, SumType::kFloat32);
  EXPECT_EQ(two.rounds, 4u);
  // Each machine sends half of the bytes as sums for the other's part, and half as complete sums.
  EXPECT_EQ(two.outward, 2 * bytes);
  const Traffic four = traffic_of({0, 0, 2, 2, 4, 4, 6, 6}, bytes, SumType::kInt32);
  EXPECT_EQ(four.rounds, 4u);
  EXPECT_EQ(four.outward, 6 * bytes);
}

TEST(CollectivePlan, WhereMachinesAreNoNodesOfTheTreeAllRanksMeetAllOthers) {
  const auto rounds = [](const Machines& machines, SumType type) {
    return traffic_of(machines, 4096, type).rounds;
  };
  EXPECT_EQ(rounds({0, 0, 0, 0}, SumType::kFloat32), 2u) << "one machine";
  EXPECT_EQ(rounds({0, 1, 2, 3}, SumType::kFloat32), 2u) << "a rank a machine";
  EXPECT_EQ(rounds({0, 0, 2}, SumType::kFloat32), 2u) << "not as many on each";
  EXPECT_EQ(rounds({0, 1, 0, 1}, SumType::kFloat32), 2u) << "ranks by turns";
  EXPECT_EQ(rounds({0, 0, 2, 2, 0, 0}, SumType::kFloat32), 2u) << "a machine twice";
  EXPECT_EQ(rounds({0, 0, 0, 3, 3, 3}, SumType::kFloat32), 2u) << "three of six are no node";
  EXPECT_EQ(rounds({0, 0, 2, 2, 4, 4}, SumType::kFloat32), 4u) << "two of six are";
  EXPECT_EQ(rounds({0, 0, 2, 2}, SumType::kBfloat16), 2u) << "rounded once";
}

std::vector<float> numbers_of(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<float> numbers(count);
  for (float& each : numbers) each = static_cast<float>(rng.uniform() - 0.5);
  return numbers;
}

class MachineThreads : public testing::TestWithParam<Machines> {
 protected:
  [[nodiscard]] static std::uint32_t world() {
    return static_cast<std::uint32_t>(GetParam().size());
  }
};

TEST_P(MachineThreads, SumsHaveTheBitsOfRanksThatShareNothing) {
  for (const std::size_t count : {1u, 3000u, 60'000u}) {
    std::vector<float> apart;
    std::vector<float> mixed;
    for (const bool pretend : {false, true}) {
      TestGang gang(world(), pretend ? TestGang::Memory::kShared : TestGang::Memory::kOwn);
      if (pretend) gang.pretend_machines(GetParam());
      gang.run([&](std::uint32_t rank) {
        const auto group = gang.found(rank);
        ASSERT_NE(group, nullptr);
        if (pretend) {
          ASSERT_EQ(group->machines(), GetParam());
        }
        Communicator& ranks = group->communicator();
        std::vector<float> outside = numbers_of(rank, count);
        ASSERT_TRUE(ranks.all_reduce(Elements(outside)));
        auto* memory = reinterpret_cast<float*>(group->workspace().data());
        const std::span<float> inside(memory, count);
        std::ranges::copy(numbers_of(rank, count), inside.begin());
        Pending pending = ranks.begin(ranks.plan().all_reduce(Elements(inside)));
        while (!pending.done()) ranks.progress();
        ASSERT_TRUE(pending.wait());
        ASSERT_TRUE(std::ranges::equal(inside, outside));
        if (rank == world() - 1) (pretend ? mixed : apart) = outside;
        group->farewell();
      });
    }
    ASSERT_EQ(mixed, apart);
    ASSERT_EQ(mixed.size(), count);
  }
}

TEST_P(MachineThreads, EveryRankTellsEveryOtherWhateverMachineItIsOn) {
  TestGang gang(world(), TestGang::Memory::kShared);
  gang.pretend_machines(GetParam());
  gang.run([&](std::uint32_t rank) {
    const auto group = gang.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    for (const std::size_t each : {1u, 20'000u}) {
      const auto at = [&](std::size_t part) { return part * each; };
      const auto bytes = std::as_writable_bytes(
          std::span(reinterpret_cast<float*>(group->workspace().data()), each * world()));
      auto* numbers = reinterpret_cast<float*>(bytes.data());
      for (std::uint32_t to = 0; to < world(); ++to) {
        std::fill_n(numbers + at(to), each, static_cast<float>(rank * 10 + to));
      }
      std::vector<float> got(each * world());
      ASSERT_TRUE(ranks.all_to_all(bytes, std::as_writable_bytes(std::span(got))));
      for (std::uint32_t from = 0; from < world(); ++from) {
        ASSERT_EQ(got[at(from)], static_cast<float>(from * 10 + rank));
        ASSERT_EQ(got[at(from + 1) - 1], static_cast<float>(from * 10 + rank));
      }
      // Sends to the next rank while that one waits for the previous rank's part.
      std::vector<float> came(each);
      auto sent = ranks.begin_send(bytes.first(each * sizeof(float)), (rank + 1) % world());
      ASSERT_TRUE(sent);
      const std::uint32_t before = (rank + world() - 1) % world();
      ASSERT_TRUE(ranks.receive(std::as_writable_bytes(std::span(came)), before));
      ASSERT_TRUE(ranks.end_send(*sent));
      ASSERT_EQ(came[each - 1], static_cast<float>(before * 10));
    }
    group->farewell();
  });
}

TEST_P(MachineThreads, ADeathOnAnyMachineIsKnownOnAll) {
  for (std::uint32_t dies = 0; dies < world(); ++dies) {
    TestGang gang(world(), TestGang::Memory::kShared);
    gang.pretend_machines(GetParam());
    std::atomic<std::uint32_t> stepped = 0;
    gang.run([&](std::uint32_t rank) {
      auto group = gang.found(rank);
      ASSERT_NE(group, nullptr);
      std::vector<float> some(20'000, 1);
      ASSERT_TRUE(group->communicator().all_reduce(Elements(some)));
      ++stepped;
      stepped.notify_all();
      for (auto come = stepped.load(); come < world(); come = stepped.load()) stepped.wait(come);
      if (rank == dies) return;
      std::uint64_t done = 1;
      while (done < 50 && group->communicator().all_reduce(Elements(some))) ++done;
      ASSERT_LT(done, 50u);
      const Status again = group->regroup(done);
      ASSERT_TRUE(again) << again.error().text();
      std::vector<float> left(20'000, 1);
      ASSERT_TRUE(group->communicator().all_reduce(Elements(left)));
      EXPECT_EQ(left[19'999], static_cast<float>(world() - 1));
      group->farewell();
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, MachineThreads,
                         testing::Values(Machines{0, 0, 2, 2}, Machines{0, 0, 2, 2, 4, 4},
                                         Machines{0, 0, 2}, Machines{0, 1, 0, 1}));

}  // namespace
}  // namespace orrery
