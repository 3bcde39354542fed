#include "hardware/fact_overlay.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace orrery {
namespace {

Result<FactOverlay> overlay_of(const std::string& text) {
  return fact_overlay(*Document::parse_all(text, "f.yaml"));
}

TEST(FactOverlay, SortsDocumentsByTheirKind) {
  const auto overlay =
      overlay_of("kind: Catalog\n---\nkind: Calibration\n---\n{name: second, kind: Catalog}\n");
  ASSERT_TRUE(overlay) << overlay.error().text();
  EXPECT_EQ(overlay->catalogs.size(), 2u);
  EXPECT_EQ(overlay->catalogs.back().root().size(), 2u);
  EXPECT_EQ(overlay->calibrations.size(), 1u);
  EXPECT_FALSE(overlay->empty());
  EXPECT_TRUE(FactOverlay().empty());
}

TEST(FactOverlay, RefusesOtherKinds) {
  const auto other = overlay_of("kind: Catalog\n---\nname: x\nkind: Fleet\n");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().text(),
            "f.yaml:4:7: expected a document of kind Catalog or Calibration after the fleet, found "
            "\"Fleet\"");
  const auto none = overlay_of("[1]\n");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "f.yaml:1:1: expected a document of kind Catalog or Calibration after the fleet, found "
            "no kind");
  const auto model = overlay_of("kind: Model\n");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().text(),
            "f.yaml:1:7: expected a document of kind Catalog or Calibration after the fleet, found "
            "\"Model\"; models are read from models/ of --catalog");
}

TEST(FactOverlay, ReadsTheFilesOfADirectoryInTheOrderOfTheirNames) {
  namespace fs = std::filesystem;
  const fs::path directory = fs::path(testing::TempDir()) / "orrery_fact_overlay";
  fs::create_directories(directory / "models");
  const std::string path = directory.string();
  ASSERT_TRUE(read_fact_overlays("")->empty());
  EXPECT_TRUE(read_fact_overlays(path)->front().empty());
  for (const char* name :
       {"b.yaml", "a.yaml", "calibration_x.yaml", "models/m.yaml", "notes.txt"}) {
    std::ofstream(directory / name) << "name: " << name << "\n";
  }
  const auto read = read_fact_overlays(path);
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->front().catalogs.size(), 2u);
  EXPECT_EQ(read->front().catalogs.front().file(), path + "/a.yaml");
  EXPECT_EQ(read->front().calibrations.size(), 1u);
  EXPECT_EQ(read->front().models.size(), 1u);
  fs::remove_all(directory);
  EXPECT_FALSE(read_fact_overlays(path));
}

}  // namespace
}  // namespace orrery
