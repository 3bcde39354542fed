// inference/hugging_face/hugging_face_weights.hpp - the weights of a Hugging Face directory:
// model.safetensors, or the files that model.safetensors.index.json names.
//
// Used by one thread while a model is loaded. Keeps its files open; reads go through a buffer of a
// few MB. Invariant: each tensor is in one file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inference/formats/weight_source.hpp"
#include "runtime/shards/safetensors.hpp"

namespace orrery {

class HuggingFaceWeights final : public WeightSource {
 public:
  /// Opens the files of a directory and checks their headers against each other. Errors name the
  /// file: none is there, a malformed header, an index that names other tensors than the files.
  [[nodiscard]] static Result<std::unique_ptr<HuggingFaceWeights>> open(
      const std::string& directory);

  /// Opens one file.
  [[nodiscard]] static Result<std::unique_ptr<HuggingFaceWeights>> of_file(const std::string& path);

  [[nodiscard]] std::span<const StoredTensor> tensors() const override { return tensors_; }
  [[nodiscard]] Status read(std::size_t tensor, std::span<float> to) override;

 private:
  [[nodiscard]] Status add(const std::string& path);
  [[nodiscard]] Status open_sharded(const std::string& directory, const std::string& index);

  std::vector<SafetensorsFile> files_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> file_of_;  ///< by tensor
};

}  // namespace orrery
