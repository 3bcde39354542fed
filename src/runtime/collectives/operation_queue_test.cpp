#include "runtime/collectives/operation_queue.hpp"

#include <gtest/gtest.h>

#include <latch>

#include "runtime/elastic/group_of_threads_test.hpp"

namespace orrery {
namespace {

std::span<std::byte> raw(std::vector<float>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

std::vector<float> numbers_of(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<float> numbers(count);
  for (float& each : numbers) each = static_cast<float>(rng.uniform() - 0.5);
  return numbers;
}

class PendingThreads : public testing::TestWithParam<std::tuple<std::uint32_t, TestGang::Memory>> {
 protected:
  [[nodiscard]] static std::uint32_t world() { return std::get<0>(GetParam()); }
  TestGang gang_{world(), std::get<1>(GetParam())};
};

class PendingDeathThreads : public PendingThreads {};

TEST_P(PendingThreads, OperationsBegunTogetherHaveTheBitsOfThoseThatWait) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    for (const std::size_t count : {1u, 5000u, 100'000u}) {
      std::vector<float> waited = numbers_of(rank, count);
      std::vector<float> also_waited = numbers_of(rank + 100, count);
      ASSERT_TRUE(ranks.all_reduce(Elements(waited)));
      ASSERT_TRUE(ranks.all_reduce(Elements(also_waited)));
      std::vector<float> outside = numbers_of(rank, count);
      auto* memory = reinterpret_cast<float*>(group->workspace().data());
      const std::span<float> inside(memory, count);
      std::ranges::copy(numbers_of(rank + 100, count), inside.begin());
      std::vector<float> mine(3, static_cast<float>(rank));
      std::vector<float> all(std::size_t{3} * world());
      Pending first = ranks.begin(ranks.plan().all_reduce(Elements(outside)));
      Pending second = ranks.begin(ranks.plan().all_reduce(Elements(inside)));
      Pending third = ranks.begin(ranks.plan().all_gather(raw(mine), raw(all)));
      if (rank % 2 == 0) {
        ASSERT_TRUE(second.wait());
        ASSERT_TRUE(first.done()) << "what was begun before has come to its end before";
      }
      while (!third.done()) ranks.progress();
      ASSERT_TRUE(third.wait());
      ASSERT_TRUE(second.wait());
      ASSERT_TRUE(first.wait());
      ASSERT_EQ(outside, waited);
      ASSERT_TRUE(std::equal(also_waited.begin(), also_waited.end(), inside.begin()));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t from = i / 3;
        ASSERT_EQ(all[i], static_cast<float>(from));
      }
    }
    group->farewell();
  });
}

TEST_P(PendingThreads, WhoWaitsComesAfterAllThatWasBegun) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    for (std::uint32_t round = 0; round < 100; ++round) {
      std::vector<float> some(round % 3 == 0 ? 30'000 : 10, 1);
      std::vector<float> one{static_cast<float>(rank)};
      Pending begun = ranks.begin(ranks.plan().all_reduce(Elements(some)));
      if (round % 2 == rank % 2) {
        // Handles are waited for in different orders or not at all: operations run in the order of
        // beginning.
        ASSERT_TRUE(begun.wait());
      }
      if (world() > 1) {
        std::vector<float> from_next(700);
        std::vector<float> mine(700, static_cast<float>(rank));
        auto sent = ranks.begin_send(raw(mine), (rank + 1) % world());
        ASSERT_TRUE(sent);
        ASSERT_TRUE(begun.done());
        ASSERT_TRUE(ranks.receive(raw(from_next), (rank + world() - 1) % world()));
        ASSERT_EQ(from_next[699], static_cast<float>((rank + world() - 1) % world()));
        ASSERT_TRUE(ranks.end_send(*sent));
      }
      ASSERT_TRUE(ranks.broadcast(raw(one), 0));
      ASSERT_TRUE(begun.done());
      ASSERT_EQ(one[0], 0);
      ASSERT_EQ(some.back(), static_cast<float>(world()));
    }
    group->farewell();
  });
}

TEST_P(PendingThreads, ADroppedHandleWaitsSoThatItsBuffersMayGo) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    for (std::uint32_t round = 0; round < 20; ++round) {
      std::vector<float> large(200'000, 1);
      {
        const Pending dropped = ranks.begin(ranks.plan().all_reduce(Elements(large)));
      }
      ASSERT_EQ(large[round], static_cast<float>(world()));
      std::vector<float> next(10, 1);
      std::vector<float> last(10, 2);
      Pending handle = ranks.begin(ranks.plan().all_reduce(Elements(next)));
      handle = ranks.begin(ranks.plan().all_reduce(Elements(last)));
      ASSERT_EQ(next[9], static_cast<float>(world())) << "a handle that is overwritten waits";
      ASSERT_TRUE(handle.wait());
      ASSERT_EQ(last[9], static_cast<float>(2 * world()));
    }
    group->farewell();
  });
}

TEST_P(PendingDeathThreads, ADeathEndsAllThatIsPendingAndAllThatIsBegunLater) {
  std::latch begun(world() - 1);
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    std::vector<float> first(100'000, 1);
    std::vector<float> second(3, 1);
    std::vector<float> third(3, 1);
    if (rank == world() - 1) {
      // This rank has begun one of the two, and dies while that is pending.
      Pending one = ranks.begin(ranks.plan().all_reduce(Elements(first)));
      begun.wait();
      group.reset();
      EXPECT_TRUE(one.done()) << "a handle outlives its group";
      // If the others had begun it, too, it may have succeeded: then with the complete sum.
      if (one.wait()) {
        EXPECT_EQ(first.front(), static_cast<float>(world()));
        EXPECT_EQ(first.back(), static_cast<float>(world()));
      }
      return;
    }
    Pending one = ranks.begin(ranks.plan().all_reduce(Elements(first)));
    Pending two = ranks.begin(ranks.plan().all_reduce(Elements(second)));
    begun.count_down();
    while (!two.done()) ranks.progress();
    const Shared<void> ended = two.wait();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().rank, world() - 1);
    Pending three = ranks.begin(ranks.plan().all_reduce(Elements(third)));
    ASSERT_TRUE(three.done());
    EXPECT_FALSE(three.wait());
    const Status again = group->regroup(0);
    ASSERT_TRUE(again) << again.error().text();
    std::vector<float> left(5, 1);
    Communicator& anew = group->communicator();
    ASSERT_TRUE(anew.begin(anew.plan().all_reduce(Elements(left))).wait());
    EXPECT_EQ(left[4], static_cast<float>(world() - 1));
    group->farewell();
  });
}

TEST_P(PendingThreads, WhatIsPendingWhenAGenerationEndsHasMetALostPeer) {
  std::latch met(world());
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    Communicator& ranks = group->communicator();
    std::vector<float> some(100'000, 1);
    std::optional<Pending> pending;
    met.arrive_and_wait();
    if (rank == 0 && world() > 1) {
      pending.emplace(ranks.begin(ranks.plan().all_reduce(Elements(some))));
    }
    ASSERT_TRUE(group->regroup(1));
    if (pending) {
      EXPECT_TRUE(pending->done());
      EXPECT_FALSE(pending->wait());
      pending.reset();
      some.clear();
      some.shrink_to_fit();
    }
    std::vector<float> after(100'000, 2);
    ASSERT_TRUE(group->communicator().all_reduce(Elements(after)));
    EXPECT_EQ(after[99'999], static_cast<float>(2 * world()));
    group->farewell();
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, PendingDeathThreads,
                         testing::Combine(testing::Values(3, 5),
                                          testing::Values(TestGang::Memory::kOwn,
                                                          TestGang::Memory::kShared)));
INSTANTIATE_TEST_SUITE_P(Worlds, PendingThreads,
                         testing::Combine(testing::Values(1, 2, 3, 5),
                                          testing::Values(TestGang::Memory::kOwn,
                                                          TestGang::Memory::kShared)));

}  // namespace
}  // namespace orrery
