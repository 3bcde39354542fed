#include "executor/controller_settings.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Result<ControllerSettings> settings_of(const std::string& lines) {
  const Result<Document> document =
      Document::parse("apiVersion: orrery/v1\nkind: Controller\n" + lines, "controller.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_controller_settings(*document);
}

std::string refusal_of(const std::string& lines) {
  const Result<ControllerSettings> settings = settings_of(lines);
  return settings ? "" : settings.error().text();
}

TEST(ControllerSettings, HaveTheTimesOfASharedLog) {
  const Result<ControllerSettings> settings = settings_of("speaks_for: 4 s\nclaims_after: 5.5 s\n");
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(settings->speaks_for, Seconds(4));
  EXPECT_EQ(settings->claims_after, Seconds(5.5));
}

TEST(ControllerSettings, LeaveASecondBetweenAFormerLeaderAndTheNext) {
  EXPECT_EQ(refusal_of("claims_after: 2.2 s\n"), "") << "the defaults leave it";
  EXPECT_EQ(
      refusal_of("claims_after: 2.1 s\n"),
      "controller.yaml:1:1: claims_after: expected at least 1 s more than speaks_for, which is "
      "1.2 s; found 2.1 s");
  EXPECT_NE(refusal_of("speaks_for: 2 s\n"), "");
  EXPECT_EQ(refusal_of("speaks_for: 0.5 s\n"),
            "controller.yaml:1:1: speaks_for, claims_after: expected times of 1 s to 10 min");
  EXPECT_NE(refusal_of("claims_after: 601 s\n"), "");
}

}  // namespace
}  // namespace orrery
