#include "verbs/schedule/artifact_paths.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

class ArtifactPathsTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(files_.path("run/checkpoint")); }
  [[nodiscard]] std::string artifact(const std::string& path) const {
    return "kind: Serve\nrevisions:\n- model: m\n  artifact: " + path +
           "   # from training\nz: 1\n";
  }
  [[nodiscard]] Result<std::string> placed(const std::string& text) const {
    return with_absolute_artifacts(text, "chat.yaml", here_);
  }
  const ScratchFiles files_;
  const std::string here_ = std::filesystem::path(files_.path("run")).parent_path().string();
};

TEST_F(ArtifactPathsTest, ARelativeArtifactBecomesAbsoluteAndTheRestStays) {
  const std::string absolute = "\"" + here_ + "/run/checkpoint\"";
  for (const char* typed : {"run/checkpoint", "\"run/checkpoint\"", "'run/checkpoint'"}) {
    const auto text = placed(artifact(typed));
    ASSERT_TRUE(text) << text.error().text();
    EXPECT_EQ(*text, artifact(absolute)) << typed;
  }
  const auto flow = placed("revisions: [{model: m, artifact: run/../run/checkpoint}]\n");
  ASSERT_TRUE(flow) << flow.error().text();
  EXPECT_EQ(*flow, "revisions: [{model: m, artifact: " + absolute + "}]\n");
}

TEST_F(ArtifactPathsTest, AnAbsoluteArtifactAndATextThatIsNoSpecStay) {
  for (const std::string& text : {artifact("/models/m"), std::string("{"), std::string("- 1\n"),
                                  std::string("kind: Batch\n"), std::string("revisions: 3\n")}) {
    EXPECT_EQ(placed(text).value(), text);
  }
}

TEST_F(ArtifactPathsTest, AMissingDirectoryIsAnErrorAtItsLine) {
  const auto gone = placed(artifact("run/none"));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().text(),
            "chat.yaml:4:13: artifact: " + here_ + "/run/none is not a directory");
  const auto before = placed(artifact("build/quickstart/run/checkpoint"));
  ASSERT_FALSE(before);
  EXPECT_TRUE(before.error().text().ends_with(
      "/build/quickstart/run/checkpoint is not a directory; run scripts/quickstart first"))
      << before.error().text();
}

}  // namespace
}  // namespace orrery
