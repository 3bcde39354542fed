// node/keeper/exit_cause_test.cpp - what is the program's fault, and what is not.
#include "node/keeper/exit_cause.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(ExitCause, IsTheProgramUnlessALineSaysOtherwise) {
  EXPECT_EQ(exit_cause(3, "KeyError: 'x'\n").layer, FaultLayer::kProgram);
  EXPECT_EQ(exit_cause(3, "").evidence, "");
  EXPECT_EQ(exit_cause(0, "No space left on device").evidence, "");
  EXPECT_NE(exit_cause(137, "").evidence.find("out of memory"), std::string::npos);
}

TEST(ExitCause, QuotesTheNewestLineThatBlamesTheMachine) {
  const Blame storage =
      exit_cause(1, "No route to host\nsave\nOSError: Stale file handle: 'a'\nend\n");
  EXPECT_EQ(storage.layer, FaultLayer::kStorage);
  EXPECT_EQ(storage.evidence, "OSError: Stale file handle: 'a'");
  EXPECT_EQ(exit_cause(1, "x: Network is unreachable").layer, FaultLayer::kNetwork);
  EXPECT_EQ(exit_cause(134, "GPU has fallen off the bus").layer, FaultLayer::kAccelerator);
}

TEST(ExitCause, IsNoPeerThatWentAway) {
  EXPECT_EQ(exit_cause(1, "Connection reset by peer\n").layer, FaultLayer::kProgram);
}

TEST(ExitCause, IsTheProgramsOwnWhereItHadAllTheMemoryItAskedFor) {
  const Blame blame = out_of_memory(2, std::uint64_t{3} << 30);
  EXPECT_EQ(blame.layer, FaultLayer::kProgram);
  EXPECT_EQ(blame.evidence,
            "out of memory: the kernel killed 2 of the job's processes here, which may use 3 GiB "
            "together");
}

TEST(ExitCause, ReadsTheEndAlone) {
  const std::string old = "Input/output error\n" + std::string(10'000, 'x');
  EXPECT_EQ(exit_cause(1, old).layer, FaultLayer::kProgram);
}

}  // namespace
}  // namespace orrery
