// tests/end_to_end/small_model.hpp - a model that orrery-train trains in a second, to be served.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace orrery {

/// Trains it with the program ORRERY_TRAIN in `directory`, which ends with '/': its checkpoints are
/// in cp/. `context`: tokens, which are bytes.
inline void train_small_model(const std::string& directory, int context = 128) {
  std::filesystem::create_directories(directory + "text");
  std::ofstream text(directory + "text/a.txt");
  for (int i = 0; i < 50; ++i) text << "The quick brown fox jumps over the lazy dog.\n";
  text.close();
  std::ofstream(directory + "training.yaml") << R"(apiVersion: orrery/v1
kind: Training
name: small
model: {layers: 2, width: 32, heads: 2, sequence: )"
                                             << context << R"(}
data: {paths: [text]}
batch: {sequences: 4}
optimizer: {peak_rate: 1e-2}
checkpoint: {directory: cp}
steps: 3
output: run
)";
  const std::string train =
      "cd " + directory + " && " ORRERY_TRAIN " training.yaml >train.log 2>&1";
  std::stringstream said;
  const int status = std::system(train.c_str());
  said << std::ifstream(directory + "train.log").rdbuf();
  ASSERT_EQ(status, 0) << said.str();
}

}  // namespace orrery
