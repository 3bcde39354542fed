#include "perf/calibration.hpp"

#include <gtest/gtest.h>

#include <string>

#include "perf/builtin_calibration.hpp"

namespace orrery {
namespace {

std::string file_with(std::string_view constants) {
  return "apiVersion: orrery/v1\nkind: Calibration\nname: test\nconstants:\n" +
         std::string(constants);
}

constexpr std::string_view kHalf =
    "- {id: a.b, value: 0.5, prior: 0.6, spread: 0.1, low: 0, high: 1}\n";

FactOverlay overlay_of(const std::string& text) {
  return *fact_overlay(*Document::parse_all(text, "mine/calibration.yaml"));
}

Result<Calibration> load(std::string_view base, std::string_view overlay = "") {
  const std::string base_text = file_with(base);
  const std::string overlay_text = file_with(overlay);
  const EmbeddedFile sources[] = {{"base.yaml", base_text}};
  if (overlay.empty()) return Calibration::load(sources, {});
  const FactOverlay mine = overlay_of(overlay_text);
  return Calibration::load(sources, {&mine, 1});
}

TEST(Calibration, falls_back_from_the_special_constant_to_the_general_one) {
  const Result<Calibration> calibration = load(kHalf);
  ASSERT_TRUE(calibration);
  EXPECT_EQ(calibration->first_of({"a.b.c", "a.b"}), 0.5);
  EXPECT_EQ(calibration->find("a.b.c"), std::nullopt);
}

TEST(Calibration, an_overlay_replaces_a_constant) {
  const Result<Calibration> calibration =
      load(kHalf, "- {id: a.b, value: 0.7, prior: 0.6, spread: 0.1, low: 0, high: 1}\n");
  ASSERT_TRUE(calibration) << calibration.error().text();
  EXPECT_EQ(calibration->first_of({"a.b"}), 0.7);
}

TEST(Calibration, an_overlay_cannot_invent_a_constant_and_hears_the_nearest_name) {
  const Result<Calibration> calibration =
      load(kHalf, "- {id: a.bb, value: 0.7, prior: 0.6, spread: 0.1, low: 0, high: 1}\n");
  ASSERT_FALSE(calibration);
  EXPECT_NE(calibration.error().text().find("mine/calibration.yaml:5"), std::string::npos)
      << calibration.error().text();
  EXPECT_NE(calibration.error().text().find("a.b"), std::string::npos);
}

TEST(Calibration, an_overlay_has_each_constant_once) {
  const std::string constants =
      "- {id: a.b, value: 0.7, prior: 0.6, spread: 0.1, low: 0, high: 1}\n";
  const Result<Calibration> twice = load(kHalf, constants + constants);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().text(),
            "mine/calibration.yaml:6:3: constant a.b stands twice, first at "
            "mine/calibration.yaml:5:3");
}

TEST(Calibration, refuses_values_outside_their_bounds_and_ids_that_stand_twice) {
  EXPECT_FALSE(load("- {id: a, value: 2, prior: 0.6, spread: 0.1, low: 0, high: 1}\n"));
  EXPECT_FALSE(load(std::string(kHalf) + std::string(kHalf)));
}

TEST(Calibration, the_built_in_one_says_what_each_constant_means_and_where_its_prior_is_from) {
  const Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  ASSERT_TRUE(calibration) << calibration.error().text();
  for (const CalibrationConstant& constant : calibration->constants()) {
    EXPECT_FALSE(constant.meaning.empty()) << constant.id;
    EXPECT_FALSE(constant.source.empty()) << constant.id;
  }
}

TEST(Calibration, the_built_in_one_says_what_it_was_fitted_on_and_how_well) {
  const Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  ASSERT_TRUE(calibration) << calibration.error().text();
  for (const CalibrationHeader& header : calibration->headers()) {
    EXPECT_GE(header.version, 1);
    EXPECT_FALSE(header.command.empty());
    EXPECT_FALSE(header.fitted_on.empty());
  }
  int moved = 0;
  for (const CalibrationConstant& constant : calibration->constants()) {
    if (constant.rows == 0) continue;
    ++moved;
    EXPECT_GT(constant.spread, 0) << constant.id << ": rows moved it, so it was fitted";
  }
  EXPECT_GT(moved, 0);
  ASSERT_FALSE(calibration->residuals().empty());
  for (const ResidualKind& known : calibration->residuals()) {
    EXPECT_GT(known.rows, 0) << known.kind;
    EXPECT_GT(known.mape, 0) << known.kind;
  }
}

TEST(Calibration, an_overlay_replaces_the_residuals_of_a_kind) {
  const std::string base = file_with(kHalf) +
                           "residuals: [{kind: k, rows: 9, mape: 0.1, low: "
                           "0.9, high: 1.1}]\n";
  const std::string mine = file_with(kHalf) +
                           "residuals: [{kind: k, rows: 2, mape: 0.2, low: "
                           "0.5, high: 2}]\n";
  const EmbeddedFile sources[] = {{"base.yaml", base}};
  const FactOverlay overlay = overlay_of(mine);
  const Result<Calibration> calibration = Calibration::load(sources, {&overlay, 1});
  ASSERT_TRUE(calibration) << calibration.error().text();
  EXPECT_EQ(calibration->residual_of({"k"}).high, 2);
}

TEST(Calibration, an_unknown_kind_of_prediction_gets_the_widest_interval) {
  const Result<Calibration> calibration = Calibration::load(builtin_calibration(), {});
  ASSERT_TRUE(calibration);
  const ResidualKind unknown = calibration->residual_of({"never.seen"});
  for (const ResidualKind& known : calibration->residuals()) {
    EXPECT_LE(unknown.low, known.low);
    EXPECT_GE(unknown.high, known.high);
  }
}

}  // namespace
}  // namespace orrery
