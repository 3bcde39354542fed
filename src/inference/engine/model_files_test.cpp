#include "inference/engine/model_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "inference/engine/served_model_test.hpp"
#include "runtime/checkpoint/saved_state_test.hpp"

namespace orrery {
namespace {

constexpr const char* kSpec = R"(apiVersion: orrery/v1
kind: Training
name: tiny
model: {family: llama, layers: 2, width: 32, heads: 4, kv_heads: 2, ffn: 48, sequence: 100,
  tied_embedding: false}
data: {paths: [/usr/include/c++]}
batch: {sequences: 4}
)";

class ModelFilesTest : public CheckpointTest {
 protected:
  /// Saves the weights of a model as its trainer does, without the optimiser's state.
  void save(const ServedModelForTest& model) {
    std::vector<PieceView> pieces;
    for (const ParameterTensor& tensor : model.layout().tensors()) {
      const std::span<const float> floats(model.parameters());
      pieces.push_back({{.tensor = tensor.name,
                         .shape = {tensor.shape.begin(), tensor.shape.end()},
                         .begin = 0,
                         .end = tensor.size},
                        std::as_bytes(floats.subspan(tensor.begin, tensor.size))});
    }
    const std::string checkpoints = directory_ + "/checkpoint";
    must_do(commit_checkpoint(checkpoints,
                              SavedState::write(checkpoints, {"tiny", {1, 0}, 7}, {pieces})));
  }
  void write_spec(const std::string& text) { std::ofstream(directory_ + "/training.yaml") << text; }
  [[nodiscard]] ModelFiles files() const { return {.checkpoint = directory_ + "/checkpoint"}; }
  [[nodiscard]] std::string error() const {
    const Result<ServedModel> model = load_served_model(files());
    return model ? "" : model.error().text();
  }
};

TEST_F(ModelFilesTest, ACheckpointIsLoadedWithTheSpecBesideIt) {
  const ServedModelForTest model(ServedModelForTest::tiny(TransformerFamily::kLlama));
  save(model);
  write_spec(kSpec);
  const Result<ServedModel> loaded = load_served_model(files());
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->name, "tiny");
  EXPECT_EQ(loaded->origin, "orrery-train, step 7");
  EXPECT_EQ(loaded->model.weights(), model.packed().weights());
  EXPECT_TRUE(std::equal(model.packed().token_row(0), model.packed().token_row(255),
                         loaded->model.token_row(0)));
}

TEST_F(ModelFilesTest, AShorterContextIsThatOfTheModel) {
  save(ServedModelForTest(ServedModelForTest::tiny(TransformerFamily::kLlama)));
  write_spec(kSpec);
  ModelFiles files = this->files();
  files.context_max = 40;
  EXPECT_EQ(load_served_model(files)->model.config().sequence, 40);
  files.context_max = 400;
  EXPECT_EQ(load_served_model(files)->model.config().sequence, 100);
}

TEST_F(ModelFilesTest, TheWeightsAreKeptInTheFormatThatIsWanted) {
  save(ServedModelForTest(ServedModelForTest::tiny(TransformerFamily::kLlama)));
  write_spec(kSpec);
  ModelFiles files = this->files();
  EXPECT_EQ(load_served_model(files)->model.format(), WeightFormat::kF32);
  files.weights = WeightFormat::kInt8;
  EXPECT_EQ(load_served_model(files)->model.format(), WeightFormat::kInt8);
}

TEST_F(ModelFilesTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(error(), "--checkpoint: " + directory_ + "/checkpoint is no directory and no file");
  const Result<ServedModel> none = load_served_model({.checkpoint = "build/quickstart/run/none"});
  EXPECT_EQ(none.error().text(),
            "--checkpoint: build/quickstart/run/none is no directory and no file: run "
            "scripts/quickstart first");
  std::filesystem::create_directories(directory_ + "/checkpoint");
  EXPECT_NE(error().find("there is no training.yaml"), std::string::npos);
  write_spec(kSpec);
  EXPECT_NE(error().find("has no valid checkpoint"), std::string::npos);
}

TEST_F(ModelFilesTest, TheFormatFollowsFromWhatIsThere) {
  EXPECT_EQ(format_of(directory_), ModelFormat::kCheckpoint);
  std::ofstream(directory_ + "/model.bin") << "GGUF and more";
  EXPECT_EQ(format_of(directory_ + "/model.bin"), ModelFormat::kGguf);
  std::ofstream(directory_ + "/text") << "GG";
  EXPECT_NE(format_of(directory_ + "/text").error().text().find("a file in an unknown format"),
            std::string::npos);
  std::ofstream(directory_ + "/config.json") << "{}";
  EXPECT_EQ(format_of(directory_), ModelFormat::kHuggingFace);
}

TEST_F(ModelFilesTest, OtherModelsAreRefused) {
  save(ServedModelForTest(ServedModelForTest::tiny(TransformerFamily::kGpt)));
  write_spec(kSpec);
  EXPECT_NE(error(), "");
  std::string moe = kSpec;
  moe.replace(moe.find("ffn: 48"), 7, "ffn: 48, experts: 4");
  write_spec(moe);
  EXPECT_NE(error().find("\"experts\" is 4"), std::string::npos);
}

}  // namespace
}  // namespace orrery
