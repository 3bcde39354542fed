// perf/repository_facts_test.hpp - the catalog and the calibration built into the program, for
// tests.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/calibration.hpp"

namespace orrery {

inline const Catalog& builtin_facts() {
  static const Result<Catalog> kCatalog = Catalog::load(builtin_catalog(), {});
  EXPECT_TRUE(kCatalog) << (kCatalog ? "" : kCatalog.error().text());
  return *kCatalog;
}

inline const Calibration& builtin_constants() {
  static const Result<Calibration> kCalibration = Calibration::load(builtin_calibration(), {});
  EXPECT_TRUE(kCalibration) << (kCalibration ? "" : kCalibration.error().text());
  return *kCalibration;
}

inline const NodeType& node_type(std::string_view name) {
  const NodeType* found = builtin_facts().find<NodeType>(name);
  EXPECT_NE(found, nullptr) << name;
  static const NodeType kNone{};
  return found == nullptr ? kNone : *found;
}

}  // namespace orrery
