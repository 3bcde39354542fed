#include "scheduler/asked_policy.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

/// The error that a text is refused with; empty: it is accepted.
std::string refusal_of(std::string_view text) {
  const Result<Policy> policy = asked_policy(text);
  return policy ? "" : policy.error().text();
}

/// The error that a file is refused with, which has the usual first three lines; empty: it is
/// accepted.
std::string refusal_of_file(const std::string& name, const std::string& keys) {
  const std::string text = "apiVersion: orrery/v1\nkind: Policy\nname: " + name + "\n" + keys;
  const Result<Document> document = Document::parse(text, "p.yaml");
  const Result<Policy> policy = asked_policy(*document);
  return policy ? "" : policy.error().text();
}

TEST(AskedPolicy, AKeyWithoutAValueIsRefused) {
  EXPECT_EQ(refusal_of("hardware-aware:max_stretch="), "max_stretch: expected a value after '='");
  EXPECT_EQ(refusal_of("hardware-aware:ageing=1 d,max_stretch"),
            "max_stretch: expected a value after '='");
  EXPECT_EQ(refusal_of("hardware-aware:max_stretch= ,ageing=1 d"),
            "max_stretch: expected a value after '='");
}

TEST(AskedPolicy, VersionZeroIsRefusedWhereItIsStated) {
  EXPECT_EQ(refusal_of("hardware-aware:version=0"), "version: expected 1 to 3, found 0");
  EXPECT_EQ(refusal_of("fifo:version=0.0"), "version: expected 1 to 1, found 0");
  EXPECT_EQ(refusal_of("fifo:version=1"), "");
  EXPECT_EQ(refusal_of_file("las", "version: 0\n"),
            "p.yaml:4:1: version: expected 1 to 2, found 0");
  EXPECT_EQ(refusal_of_file("las", "version: 2\n"), "");
  EXPECT_EQ(policy_named("las:version=0")->version, 2U);
}

TEST(AskedPolicy, AKeyThatNoRuleReadsIsRefused) {
  EXPECT_EQ(refusal_of("easy:max_stretch=1"),
            "max_stretch: has no effect under easy (it needs order: fair, with inside: service or "
            "a yield_ratio)");
  EXPECT_EQ(refusal_of("fifo:min_run=60 s"),
            "min_run: has no effect under fifo (it needs preemption: by-order, entitled or rounds, "
            "blocked: reserves, or choice: cheapest)");
  EXPECT_EQ(refusal_of("hardware-aware:queue_limits=[60]"),
            "queue_limits: has no effect under hardware-aware (it needs order: attained-queues)");
  for (const char* text :
       {"capacity:ageing=1 d", "hardware-aware:inside=submitted,yield_ratio=0,attained_step=2",
        "easy:yield_ratio=2", "easy:reserve_devices=4", "fifo:reserve_jobs=4", "easy:offers=2",
        "capacity:patience=1 h", "gavel:plan_wait=1 s", "capacity:budget=9",
        "capacity:weights={hire: 2}", "srtf:preemption=anew,min_run=60 s"}) {
    EXPECT_NE(refusal_of(text).find("has no effect under"), std::string::npos) << text;
  }
}

TEST(AskedPolicy, AKeyThatARuleReadsIsTaken) {
  for (const char* text :
       {"hardware-aware:max_stretch=30", "capacity:inside=service,max_stretch=30",
        "capacity:yield_ratio=2,ageing=1 d", "capacity:min_run=0 s", "las:min_run=20 min",
        "gavel:min_run=60 s", "easy:blocked=reserves,min_run=60 s",
        "conservative:reserve_devices=1", "tiresias:queue_limits=[60]",
        "easy:choice=cheapest,offers=2,weights={hire: 2}", "fifo:choice=cheapest,min_run=60 s",
        "fifo:blocking=false,node_fit=first", "fifo:horizon=1 h", "capacity:oversubscription=1.5",
        "elasticflow:unknown_run=1 h", "fifo"}) {
    EXPECT_EQ(refusal_of(text), "") << text;
  }
}

TEST(AskedPolicy, ARefusedKeyOfAFileIsToldByItsLine) {
  EXPECT_EQ(refusal_of_file("easy", "node_fit: first\nweights:\n  hire: 2\n"),
            "p.yaml:5:1: weights: has no effect under easy (it needs choice: cheapest)");
  EXPECT_EQ(refusal_of_file("easy", "weights:\n"), "");
  EXPECT_EQ(refusal_of_file("ours", "weights: {hire: 2}\n"), "");
}

TEST(AskedPolicy, ARecordIsReadWithoutThis) {
  for (const char* text :
       {"easy:max_stretch=1", "fifo:min_run=60 s", "hardware-aware:max_stretch="}) {
    EXPECT_TRUE(policy_named(text)) << text;
  }
}

TEST(AskedPolicy, AFigureBeyondItsBoundsIsToldByTheLineOfItsKey) {
  EXPECT_EQ(refusal_of_file("ours", "ageing: 1 d\n\nyield_ratio: 0.5\n"),
            "p.yaml:6:1: yield_ratio: expected 0 or 1 to 1000");
  EXPECT_EQ(refusal_of_file("ours", "weights:\n  hire: 1\n  data: -1\n"),
            "p.yaml:6:3: weights.data: expected a number of at least 0, found -1");
  EXPECT_EQ(refusal_of_file("ours", "version: 9\n"),
            "p.yaml:4:1: version: expected 1 to 3 of hardware-aware, found 9");
  EXPECT_EQ(refusal_of_file("capacity", "offers: 2\npreemption: rounds\n"),
            "p.yaml:5:1: quotas: expected ignored, with preemption: rounds");
  EXPECT_EQ(refusal_of_file("capacity", "quotas: held\npreemption: rounds\n"),
            "p.yaml:4:1: quotas: expected ignored, with preemption: rounds");
  EXPECT_EQ(refusal_of_file("ours", "plan_wait: -1 s\n").substr(0, 12), "p.yaml:4:12:");
}

TEST(AskedPolicy, AValueOfAnotherTypeIsToldByItsKey) {
  EXPECT_EQ(refusal_of("hardware-aware:min_run=1 h,ageing=x").substr(0, 8), "ageing: ");
  EXPECT_EQ(refusal_of("hardware-aware:offers=many"),
            "offers: expected a whole number, found \"many\"");
  EXPECT_EQ(refusal_of("hardware-aware:weights={hire: x}").substr(0, 9), "weights: ");
  EXPECT_EQ(refusal_of("hardware-aware:yield_ratio=0.5"), "yield_ratio: expected 0 or 1 to 1000");
  EXPECT_EQ(refusal_of("hardware-aware:agieng=1 d").substr(0, 20), "unknown key \"agieng\"");
}

}  // namespace
}  // namespace orrery
