#include "runtime/elastic/member_group.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "runtime/elastic/group_of_threads_test.hpp"

namespace orrery {
namespace {

/// Does a step: sums all ones of the members. Nothing: a member was lost.
std::optional<std::int32_t> step(MemberGroup& group) {
  std::vector<std::int32_t> one(3000, 1);
  const Elements in_out(std::as_writable_bytes(std::span(one)), SumType::kInt32);
  if (!group.communicator().all_reduce(in_out)) return std::nullopt;
  return one[2999];
}

const RealClock kClock;

class GroupThreads : public testing::TestWithParam<TestGang::Memory> {
 protected:
  TestGang gang_{4, GetParam()};
};

TEST_P(GroupThreads, GoOnWithoutWhoeverDies) {
  for (std::uint32_t dies = 0; dies < 4; ++dies) {
    gang_ = TestGang(4, GetParam());
    std::latch stepped(4);
    gang_.run([&](std::uint32_t rank) {
      auto group = gang_.found(rank);
      ASSERT_NE(group, nullptr);
      ASSERT_EQ(step(*group), 4);
      stepped.arrive_and_wait();
      if (rank == dies) return;
      std::uint64_t done = 1;
      std::optional<std::int32_t> sum;
      for (; done < 50; ++done) {
        sum = step(*group);
        if (!sum) break;
      }
      ASSERT_FALSE(sum);
      const Status again = group->regroup(done);
      ASSERT_TRUE(again) << again.error().text();
      EXPECT_EQ(group->size(), 3u);
      EXPECT_EQ(group->roster().step(), done);
      EXPECT_EQ(step(*group), 3);
      group->farewell();
    });
  }
}

TEST_P(GroupThreads, ADeathEndsTheCollectivesOfGroupsThatTheDeadWasNotIn) {
  gang_ = TestGang(4, GetParam());
  std::latch stepped(4);
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    ASSERT_EQ(step(*group), 4);
    stepped.arrive_and_wait();
    if (rank == 3) return;
    Communicator pair = group->among(rank < 2 ? std::vector{0u, 1u} : std::vector{2u, 3u});
    std::vector<float> some(9000, 1);
    for (bool lost = false; !lost;) {
      lost = !pair.all_reduce(Elements(some));
      // All groups synchronise here, so that no pair continues by itself.
      lost = lost || !step(*group);
    }
    const Status again = group->regroup(1);
    ASSERT_TRUE(again) << again.error().text();
    ASSERT_EQ(group->size(), 3u);
    std::vector<float> one(5, 1);
    if (rank < 2) ASSERT_TRUE(group->among({0, 1}).all_reduce(Elements(one)));
    if (rank == 2) ASSERT_TRUE(group->among({2}).all_reduce(Elements(one)));
    EXPECT_EQ(one[4], rank < 2 ? 2 : 1);
    EXPECT_EQ(step(*group), 3);
    group->farewell();
  });
}

TEST_P(GroupThreads, WhatWasHalfSentWhenACollectiveWasGivenUpHarmsNobody) {
  std::latch given_up(1);
  gang_ = TestGang(3, GetParam());
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    if (rank == 2) return;
    if (rank == 0) {
      std::vector<float> large(4 << 20, 1);
      ASSERT_FALSE(group->communicator().all_reduce(Elements(large)));
    }
    if (rank == 0) given_up.count_down();
    if (rank == 1) given_up.wait();  // no rank has read what rank 0 sent
    const Status again = group->regroup(0);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(step(*group), 2);
    group->farewell();
  });
}

TEST_P(GroupThreads, NobodyWaitsInACollectiveForWhoHasLeftIt) {
  gang_ = TestGang(3, GetParam());
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    ASSERT_EQ(step(*group), 3);
    // Rank 2 has noticed a loss that the others have not.
    if (rank < 2) ASSERT_EQ(step(*group), std::nullopt);
    const Status again = group->regroup(rank);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(group->roster().generation, 2u);
    EXPECT_EQ(group->roster().source(), 2u);
    EXPECT_EQ(step(*group), 3);
    group->farewell();
  });
}

TEST_P(GroupThreads, WhoLeavesInPeaceIsNotMissed) {
  gang_ = TestGang(4, GetParam());
  std::latch left(2);
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    ASSERT_TRUE(group->communicator().barrier());
    if (rank < 2) {
      group->farewell();
      left.count_down();
      return;
    }
    left.wait();
    EXPECT_EQ(step(*group), std::nullopt);
    if (rank == 3) {
      // The other member is lost and has not left in peace: rank 3 is half of the rest, without the
      // lowest.
      const Status again = group->regroup(1);
      ASSERT_FALSE(again);
      EXPECT_NE(again.error().message.find("1 of 4 ranks"), std::string::npos);
    }
  });
}

TEST_P(GroupThreads, NewcomersWaitUntilTheyAreAsManyAsHaveAPlaceTogether) {
  gang_ = TestGang(4, GetParam());
  std::latch one_waits(1);
  std::latch two_wait(1);
  gang_.run([&](std::uint32_t rank) {
    GroupSettings settings = gang_.of(rank);
    settings.world = 2;
    settings.members_unit = 2;
    if (rank == 3) one_waits.wait();
    auto made =
        rank < 2 ? MemberGroup::found(kClock, settings, 1) : MemberGroup::join(kClock, settings);
    ASSERT_TRUE(made) << made.error().text();
    MemberGroup& group = **made;
    if (rank == 0) {
      while (group.waiting() == 0) ASSERT_FALSE(group.tend());
      one_waits.count_down();
      while (!group.tend()) {
      }
      two_wait.count_down();
    }
    if (rank == 1) two_wait.wait();
    if (rank < 2) ASSERT_TRUE(group.regroup(1));
    EXPECT_EQ(group.size(), 4u);
    EXPECT_EQ(step(group), 4);
    group.farewell();
  });
}

TEST_P(GroupThreads, AFounderThatDiesBeforeAllHaveMetIsReplaced) {
  gang_ = TestGang(3, GetParam());
  std::latch died(1);
  gang_.run([&](std::uint32_t rank) {
    if (rank == 1) {
      GroupSettings settings = gang_.of(1);
      settings.meeting = Duration::milliseconds(500);
      EXPECT_FALSE(MemberGroup::found(kClock, settings, 0)) << "not all have come";
      died.count_down();
      const auto instead = gang_.join(9);
      ASSERT_NE(instead, nullptr);
      EXPECT_EQ(instead->rank(), 1u);
      EXPECT_EQ(step(*instead), 3);
      return instead->farewell();
    }
    if (rank == 2) died.wait();
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(group->rank(), rank);
    EXPECT_EQ(step(*group), 3);
    group->farewell();
  });
}

TEST_P(GroupThreads, WhoFindsNoRoomWaitsForIt) {
  gang_ = TestGang(3, GetParam());
  std::atomic<bool> asked{false};
  std::latch met(2);
  gang_.run([&](std::uint32_t rank) {
    GroupSettings settings = gang_.of(rank);
    settings.world = settings.members_max = 2;
    if (rank == 2) {
      met.wait();
      const auto group = MemberGroup::join(kClock, settings);
      ASSERT_TRUE(group) << group.error().text();
      EXPECT_EQ((*group)->size(), 2u);
      EXPECT_EQ(step(**group), 2);
      return (*group)->farewell();
    }
    auto group = MemberGroup::found(kClock, settings, 0).value();
    met.count_down();
    while (!asked) {
      EXPECT_FALSE(group->tend()) << "there is no room";
      if (rank == 0 && group->waiting() > 0) asked = true;
    }
    if (rank == 1) return;
    EXPECT_EQ(step(*group), std::nullopt);
    ASSERT_TRUE(group->regroup(1));
    EXPECT_EQ(group->size(), 2u);
    EXPECT_EQ(step(*group), 2);
    group->farewell();
  });
}

TEST_P(GroupThreads, WhoComesLaterIsFedByWhoIsFarthest) {
  std::latch met(3);
  gang_.run([&](std::uint32_t rank) {
    // Rank 3 joins when the others are running.
    if (rank == 3) met.wait();
    auto group = rank == 3 ? nullptr
                           : MemberGroup::found(
                                 kClock,
                                 [&] {
                                   GroupSettings settings = gang_.of(rank);
                                   settings.world = 3;
                                   return settings;
                                 }(),
                                 7)
                                 .value();
    if (rank == 3) {
      group = gang_.join(3);
      ASSERT_NE(group, nullptr);
    } else {
      met.count_down();
    }
    for (std::uint64_t done = 7; group->size() < 4; ++done) {
      std::int32_t wanted = group->tend() ? 1 : 0;
      const Elements vote(std::as_writable_bytes(std::span(&wanted, 1)), SumType::kInt32);
      ASSERT_TRUE(group->communicator().all_reduce(vote));
      if (wanted > 0) ASSERT_TRUE(group->regroup(done));
    }
    EXPECT_EQ(group->rank(), rank);
    EXPECT_FALSE(group->roster().members[3].step);
    EXPECT_GE(group->roster().step(), 7u);
    EXPECT_EQ(group->roster().source(), 0u);
    EXPECT_EQ(step(*group), 4);
    group->farewell();
  });
}

TEST_P(GroupThreads, HalfWithoutTheLowestMemberDoesNotGoOn) {
  gang_ = TestGang(2, GetParam());
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    ASSERT_EQ(step(*group), 2);
    if (rank == 0) return;
    EXPECT_EQ(step(*group), std::nullopt);
    const Status again = group->regroup(1);
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find("1 of 2 ranks"), std::string::npos);
  });
}

TEST_P(GroupThreads, WhoIsSilentTooLongIsLeftOutAndKnowsIt) {
  std::latch over(2);
  gang_ = TestGang(3, GetParam());
  gang_.run([&](std::uint32_t rank) {
    GroupSettings settings = gang_.of(rank);
    settings.patience = Duration::seconds(1);
    auto group = MemberGroup::found(kClock, settings, 0).value();
    ASSERT_EQ(step(*group), 3);
    if (rank == 2) {
      over.wait();  // alive, but silent
      EXPECT_FALSE(group->regroup(0));
      return;
    }
    const Status again = group->regroup(0);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(group->size(), 2u);
    EXPECT_EQ(step(*group), 2);
    group->farewell();
    over.count_down();
  });
}

TEST_P(GroupThreads, AStrangerAtThePortIsSentAway) {
  gang_ = TestGang(2, GetParam());
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    if (rank == 1) {
      GroupSettings other = gang_.of(9);
      other.gang = "another/1/0";
      other.meeting = Duration::milliseconds(300);
      EXPECT_FALSE(MemberGroup::join(kClock, other));
      ASSERT_EQ(step(*group), 2);
    } else {
      ASSERT_EQ(step(*group), 2);
      EXPECT_FALSE(group->tend());
    }
    group->farewell();
  });
}

INSTANTIATE_TEST_SUITE_P(Memory, GroupThreads,
                         testing::Values(TestGang::Memory::kOwn, TestGang::Memory::kShared));

}  // namespace
}  // namespace orrery
