#include "verbs/services/engine_artifact.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"
#include "verbs/services/service_request.hpp"

namespace orrery {
namespace {

TEST(EngineArtifact, LlamaCppServesAFileAndTheOthersADirectory) {
  const ScratchFiles files;
  files.write("tiny.gguf", "GGUF");
  files.write("hub/config.json", "{}");
  files.write("empty/notes", "");
  EXPECT_EQ(engine_artifact(EngineName::kLlamacpp, files.path("tiny.gguf")).value(),
            files.path("tiny.gguf"));
  for (const EngineName engine : {EngineName::kVllm, EngineName::kSglang, EngineName::kTrtllm}) {
    EXPECT_EQ(engine_artifact(engine, files.path("hub/")).value(), files.path("hub"));
  }
  const auto refusal = [](EngineName engine, const std::string& path) {
    const Result<std::string> found = engine_artifact(engine, path);
    return found ? "" : found.error().text();
  };
  EXPECT_EQ(refusal(EngineName::kVllm, files.path("none")),
            files.path("none") + ": there is no such file or directory");
  EXPECT_EQ(refusal(EngineName::kVllm, files.path("tiny.gguf")),
            files.path("tiny.gguf") +
                ": vllm serves a model in the form of a model hub, expected a directory with "
                "config.json and weights");
  EXPECT_NE(refusal(EngineName::kSglang, files.path("empty")).find("sglang serves"),
            std::string::npos);
  EXPECT_EQ(refusal(EngineName::kLlamacpp, files.path("hub")),
            files.path("hub") +
                ": llamacpp serves a file in GGUF, expected one whose name ends in .gguf");
}

TEST(EngineArtifact, AServiceOfAnotherEngineHasItInItsSpec) {
  const ScratchFiles files;
  files.write("hub/config.json", "{}");
  const Result<std::string> spec =
      service_spec({.artifact = files.path("hub"), .engine = "vllm"}, {"--max-num-seqs", "4"});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_NE(spec->find("name: vllm"), std::string::npos) << *spec;
  EXPECT_NE(spec->find("artifact: \"" + files.path("hub")), std::string::npos) << *spec;
}

}  // namespace
}  // namespace orrery
