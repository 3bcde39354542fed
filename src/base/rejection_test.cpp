// base/rejection_test.cpp - how a "no" reads.
#include "base/rejection.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orrery {
namespace {

TEST(Rejection, NamesItsKindItsReasonAndWhatBlocksIt) {
  const Rejection busy{RejectionKind::kBusy, {"su-1", "su-2"}, "48 of 64 accelerators are free"};
  EXPECT_EQ(busy.text(), "busy: 48 of 64 accelerators are free (blocked by su-1, su-2)");
}

TEST(Rejection, LeavesTheListOutWhenNothingBlocks) {
  const Rejection never{RejectionKind::kNever, {}, "the fleet has 128 accelerators"};
  EXPECT_EQ(never.text(), "never: the fleet has 128 accelerators");
}

TEST(Rejection, HasAWordForEveryKind) {
  std::set<std::string_view> words;
  for (const RejectionKind kind :
       {RejectionKind::kBusy, RejectionKind::kNever, RejectionKind::kQuota, RejectionKind::kPower,
        RejectionKind::kMemory, RejectionKind::kStack, RejectionKind::kBudget,
        RejectionKind::kLater}) {
    words.insert(name_of(kind));
  }
  EXPECT_EQ(words, (std::set<std::string_view>{"budget", "busy", "later", "memory", "never",
                                               "power", "quota", "stack"}));
}

}  // namespace
}  // namespace orrery
