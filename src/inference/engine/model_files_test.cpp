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
  EXPECT_EQ(loaded->step, 7U);
  EXPECT_EQ(loaded->model.weights(), model.packed().weights());
  EXPECT_TRUE(std::equal(model.packed().token_row(0), model.packed().token_row(255),
                         loaded->model.token_row(0)));
}

TEST_F(ModelFilesTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(error(), "--checkpoint: " + directory_ + "/checkpoint is no directory");
  const Result<ServedModel> none = load_served_model({.checkpoint = "build/quickstart/run/none"});
  EXPECT_EQ(
      none.error().text(),
      "--checkpoint: build/quickstart/run/none is no directory: run scripts/quickstart first");
  std::filesystem::create_directories(directory_ + "/checkpoint");
  EXPECT_NE(error().find("there is no training.yaml"), std::string::npos);
  write_spec(kSpec);
  EXPECT_NE(error().find("has no valid checkpoint"), std::string::npos);
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
