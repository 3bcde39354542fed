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

TEST_F(ServedCheckpointTest, ScalesBetweenTwoNumbers) {
  const JobSpec spec = spec_of({.artifact = directory_, .scale = "2..8"});
  ASSERT_TRUE(spec.service.scaling);
  EXPECT_EQ(spec.service.scaling->min, 2u);
  EXPECT_EQ(spec.service.scaling->max, 8u);
  EXPECT_EQ(spec.roles[0].replicas, 2u) << "it begins with as few as may be";
  EXPECT_FALSE(spec_of({.artifact = directory_, .scale = "none"}).service.scaling);
  for (const char* const wrong : {"8", "1..", "..8", "a..b", "1..8x", "-1..2"}) {
    EXPECT_EQ(refusal({.artifact = directory_, .scale = wrong}),
              "--scale: \"" + std::string(wrong) + "\", expected MIN..MAX, such as 1..8, or none");
  }
  EXPECT_NE(refusal({.artifact = directory_, .replicas = 1, .scale = "2..8"}).find("2 to 8"),
            std::string::npos);
  std::optional<ScalingSpec> scaling;
  ASSERT_TRUE(take_scaling("0..4", scaling));
  scaling->idle = Seconds(60);
  ASSERT_TRUE(take_scaling("1..4", scaling));
  EXPECT_FALSE(scaling->idle) << "replicas rest no more";
}

TEST_F(ServedCheckpointTest, ANameThatIsNoneIsRefused) {
  EXPECT_NE(refusal({.artifact = directory_, .name = "a b"}).find("a b"), std::string::npos);
  EXPECT_NE(refusal({.artifact = directory_, .model = "a b"}).find("a b"), std::string::npos);
}

TEST(ServiceRequestTest, LatenciesAreThoseOfThe99thPercentileWhereNoneIsNamed) {
  SloSpec slo;
  ASSERT_TRUE(take_slo({"ttft=1s", "tpot=50ms", "ttft_p50=0.3s"}, slo));
  EXPECT_EQ(slo.ttft.p99, Seconds(1));
  EXPECT_EQ(slo.tpot.p99, Seconds(0.05));
  EXPECT_EQ(slo.ttft.p50, Seconds(0.3));
  for (const char* wrong : {"ttft", "ttft_p98=1s", "e2e=1s", "=1s", "ttft=fast"}) {
    const Status taken = take_slo({wrong}, slo);
    ASSERT_FALSE(taken) << wrong;
    EXPECT_TRUE(taken.error().message.starts_with("--slo: ")) << taken.error().message;
  }
}

}  // namespace
}  // namespace orrery
