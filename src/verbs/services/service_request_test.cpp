#include "verbs/services/service_request.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/checkpoint/checkpoint_directory.hpp"
#include "verbs/scratch_files_test.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

std::string refusal(const ServiceOptions& options) {
  const Result<std::string> spec = service_spec(options, {});
  return spec ? "" : spec.error().text();
}

TEST(ServiceRequestTest, WhatCannotBeServedIsRefusedWithWhatCan) {
  const ScratchFiles files;
  EXPECT_EQ(refusal({.artifact = "/none/build/quickstart/run/checkpoint"}),
            "/none/build/quickstart/run/checkpoint: there is no such file or directory; run "
            "scripts/quickstart first");
  files.write("model.bin", "GGUF");
  EXPECT_EQ(refusal({.artifact = files.path("model.bin")}),
            files.path("model.bin") +
                " is a file: expected one whose name ends in .gguf, or a directory of checkpoints "
                "or of Hugging Face");
  files.write("other/model.safetensors", "");
  EXPECT_NE(refusal({.artifact = files.path("other")}).find("no complete checkpoint"),
            std::string::npos);
  files.write("model.gguf", "GGUF");
  EXPECT_EQ(refusal({.artifact = files.path("model.gguf")}), "");
  files.write("hub/config.json", "{}");
  EXPECT_EQ(refusal({.artifact = files.path("hub")}), "");
  EXPECT_NE(refusal({.artifact = files.path("hub"), .engine = "vlm"}).find("--engine"),
            std::string::npos);
}

class ServedCheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Manifest manifest{.id = {.job = "run", .by = {.attempt = 1, .epoch = 0}, .step = 5},
                            .world = 1,
                            .shards = {}};
    files_.write("my run/step-000000005/manifest.json", manifest_text(manifest).value());
  }
  /// Reads the spec back.
  [[nodiscard]] JobSpec spec_of(const ServiceOptions& options) const {
    const std::string text = service_spec(options, {"--slots", "4"}).value();
    return read_job_spec(Document::parse(text, "spec").value()).value();
  }
  const ScratchFiles files_;
  const std::string directory_ = files_.path("my run");
};

TEST_F(ServedCheckpointTest, IsServedUnderTheNameOfItsDirectory) {
  const JobSpec spec = spec_of({.artifact = directory_ + "/"});
  EXPECT_EQ(spec.kind, JobKind::kServe);
  EXPECT_EQ(spec.name, "my-run");
  ASSERT_EQ(spec.service.revisions.size(), 1u);
  EXPECT_EQ(spec.service.revisions[0].model, "my-run");
  EXPECT_EQ(spec.service.revisions[0].artifact, directory_);
  EXPECT_EQ(spec.service.revisions[0].engine.arguments, (std::vector<std::string>{"--slots", "4"}));
  EXPECT_EQ(spec.restart.policy, RestartPolicy::kAtOnce);
  EXPECT_GT(spec.restart.max, 0u) << "a replica that is killed starts again";
}

TEST_F(ServedCheckpointTest, OptionsAreInItsSpec) {
  const JobSpec spec = spec_of({.artifact = directory_,
                                .name = "chat",
                                .model = "lab/gpt",
                                .replicas = 3,
                                .accelerators = 2,
                                .types = {"h100", "l40s"},
                                .tenant = "lab"});
  EXPECT_EQ(spec.name, "chat");
  EXPECT_EQ(spec.tenant, "lab");
  EXPECT_EQ(spec.service.revisions[0].model, "lab/gpt");
  ASSERT_EQ(spec.roles.size(), 1u);
  EXPECT_EQ(spec.roles[0].replicas, 3u);
  EXPECT_EQ(spec.roles[0].accelerators, 2u);
  EXPECT_EQ(spec.roles[0].types.size(), 2u);
}

TEST_F(ServedCheckpointTest, ANameThatIsNoneIsRefused) {
  EXPECT_NE(refusal({.artifact = directory_, .name = "a b"}).find("a b"), std::string::npos);
  EXPECT_NE(refusal({.artifact = directory_, .model = "a b"}).find("a b"), std::string::npos);
}

}  // namespace
}  // namespace orrery
