// runtime/checkpoint/saved_state_test.hpp - shared by the tests of checkpoints: a temporary
// directory, and a small state of known values that is saved in pieces and read again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/numbers/rng.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"

namespace orrery {

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_ckpt_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

/// Returns the value; an error ends the test with its text.
template <class T>
T must_have(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}
inline void must_do(const Status& status) {
  if (!status) throw std::runtime_error(status.error().text());
}

inline std::string bytes_of_file(const std::string& path) {
  constexpr std::size_t kSizeMax = std::size_t{1} << 24;
  return must_have(read_file(path, kSizeMax));
}

/// Tensors of different types and sizes, one of a single element, one without any.
class SavedState {
 public:
  explicit SavedState(std::uint64_t seed) {
    const auto add = [&](TensorInfo info) {
      std::string bytes(elements_of(info.shape).value() * bytes_of(info.type), '\0');
      Rng values = Rng::stream(seed, info.name);
      for (char& byte : bytes) byte = static_cast<char>(values.next_u64() >> 56);
      tensors_.push_back({std::move(info), std::move(bytes)});
    };
    add({"block.0.attention.weight", ElementType::kF32, {33, 65}});
    add({"block.0.norm", ElementType::kBf16, {1001}});
    add({"nothing", ElementType::kF32, {0, 4}});
    add({"optimizer.step", ElementType::kU64, {}});
    add({"tokens.seen", ElementType::kI32, {17}});
  }

  struct Tensor {
    TensorInfo info;
    std::string bytes;
  };
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] std::vector<Tensor>& tensors() { return tensors_; }

  [[nodiscard]] static std::uint64_t elements(const Tensor& tensor) {
    return elements_of(tensor.info.shape).value();
  }

  [[nodiscard]] static PieceView piece(const Tensor& tensor, std::uint64_t begin,
                                       std::uint64_t end) {
    const std::uint64_t width = bytes_of(tensor.info.type);
    const std::span<const char> all(tensor.bytes);
    return {{tensor.info.name, tensor.info.type, tensor.info.shape, begin, end, 0},
            std::as_bytes(all.subspan(begin * width, (end - begin) * width))};
  }

  /// Returns all tensors whole, for a world of one.
  [[nodiscard]] std::vector<PieceView> whole() const {
    std::vector<PieceView> pieces;
    pieces.reserve(tensors_.size());
    for (const Tensor& tensor : tensors_) pieces.push_back(piece(tensor, 0, elements(tensor)));
    return pieces;
  }

  /// Cuts each tensor at random into a few pieces, and gives each piece to a random rank.
  [[nodiscard]] std::vector<std::vector<PieceView>> cut(std::uint32_t world, Rng& random) const {
    std::vector<std::vector<PieceView>> ranks(world);
    for (const Tensor& tensor : tensors_) {
      std::vector<std::uint64_t> cuts{0, elements(tensor)};
      for (std::uint32_t i = 1; i < world; ++i) cuts.push_back(random.below(cuts[1] + 1));
      std::ranges::sort(cuts);
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        ranks[random.below(world)].push_back(piece(tensor, cuts[i], cuts[i + 1]));
      }
    }
    return ranks;
  }

  /// Writes the shards of a checkpoint, replacing earlier ones, and returns the manifest for them.
  static Manifest write(const std::string& directory, const CheckpointId& id,
                        const std::vector<std::vector<PieceView>>& ranks) {
    const auto world = static_cast<std::uint32_t>(ranks.size());
    const std::string step = step_directory(directory, id.step);
    std::filesystem::create_directories(step);
    Manifest manifest{.id = id, .world = world, .extra = R"({"sample":17,"rng":[1,2]})"};
    SnapshotBuffer snapshot;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const ShardName name{id, rank, world};
      std::filesystem::remove(step + "/" + name.file());
      must_do(snapshot.take(name, ranks[rank]));
      manifest.shards.push_back(must_have(write_shard(step, snapshot)).record);
    }
    return manifest;
  }

  /// Commits a checkpoint of a world of one.
  void commit(const std::string& directory, const CheckpointId& id) const {
    must_do(commit_checkpoint(directory, write(directory, id, {whole()})));
  }

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace orrery
