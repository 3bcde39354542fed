#include "runtime/training/training_state.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "runtime/trainer/gradient_norm.hpp"

namespace orrery {
namespace {

constexpr std::string_view kFirstMoment = "optimizer.first_moment";
constexpr std::string_view kSecondMoment = "optimizer.second_moment";

struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

FloatRange part_of(std::size_t size, std::uint32_t rank, std::uint32_t world) {
  return {size * rank / world, size * (rank + 1) / world};
}

std::vector<std::uint64_t> shape_of(const ParameterTensor& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

}  // namespace

TrainingState::TrainingState(const ParameterLayout& layout, std::uint64_t seed)
    : layout_(layout),
      parameters_(layout.size()),
      first_moment_(layout.size()),
      second_moment_(layout.size()) {
  initialise(layout, seed, parameters_);
}

Result<double> TrainingState::step(const AdamW& optimizer, std::span<const float> gradient_sum,
                                   const OptimizerStep& how, double clip) {
  const auto mean = static_cast<double>(how.gradient_scale);
  const double norm = gradient_norm(gradient_sum) * mean;
  if (!std::isfinite(norm)) {
    return environment_error(fmt::format("the gradient of step {} is not finite", steps_ + 1));
  }
  OptimizerStep clipped = how;
  clipped.gradient_scale = static_cast<float>(mean * clip_factor(norm, clip));
  update(optimizer, layout_,
         {.begin = 0,
          .parameters = parameters_,
          .gradient = gradient_sum,
          .first_moment = first_moment_,
          .second_moment = second_moment_},
         clipped);
  ++steps_;
  return norm;
}

std::vector<PieceView> TrainingState::pieces(std::uint32_t rank, std::uint32_t world) const {
  std::vector<PieceView> pieces;
  const FloatRange mine = part_of(layout_.size(), rank, world);
  for (const ParameterTensor& tensor : layout_.tensors()) {
    const std::size_t begin = std::max(tensor.begin, mine.begin);
    const std::size_t end = std::min(tensor.begin + tensor.size, mine.end);
    if (begin >= end) continue;
    pieces.push_back({{.tensor = tensor.name,
                       .shape = shape_of(tensor),
                       .begin = begin - tensor.begin,
                       .end = end - tensor.begin},
                      std::as_bytes(std::span(parameters_).subspan(begin, end - begin))});
  }
  for (const auto& [name, moment] :
       {std::pair{kFirstMoment, &first_moment_}, std::pair{kSecondMoment, &second_moment_}}) {
    if (mine.begin == mine.end) continue;
    pieces.push_back(
        {{.tensor = std::string(name),
          .shape = {layout_.size()},
          .begin = mine.begin,
          .end = mine.end},
         std::as_bytes(std::span(*moment).subspan(mine.begin, mine.end - mine.begin))});
  }
  return pieces;
}

Status TrainingState::read_tensor(CheckpointReader& reader, const TensorRange& range,
                                  std::span<float> out) const {
  return reader.read(range, std::as_writable_bytes(out));
}

Status TrainingState::restore(CheckpointReader& reader) {
  for (const ParameterTensor& tensor : layout_.tensors()) {
    const TensorRange whole{.tensor = tensor.name, .begin = 0, .end = tensor.size};
    const auto found =
        std::find_if(reader.tensors().begin(), reader.tensors().end(),
                     [&](const PlacedTensor& placed) { return placed.info.name == tensor.name; });
    if (found != reader.tensors().end() && found->info.shape != shape_of(tensor)) {
      return input_error(
          {}, fmt::format("the checkpoint is of another model: its {} is {}, not {}", tensor.name,
                          fmt::join(found->info.shape, " x "), fmt::join(tensor.shape, " x ")));
    }
    const std::span<float> to = std::span(parameters_).subspan(tensor.begin, tensor.size);
    if (Status read = read_tensor(reader, whole, to); !read) return read;
  }
  for (const auto& [name, moment] :
       {std::pair{kFirstMoment, &first_moment_}, std::pair{kSecondMoment, &second_moment_}}) {
    const TensorRange whole{.tensor = name, .begin = 0, .end = layout_.size()};
    if (Status read = read_tensor(reader, whole, *moment); !read) return read;
  }
  steps_ = reader.manifest().id.step;
  return {};
}

Shared<void> TrainingState::send(Communicator& ranks, std::uint32_t to) const {
  for (const AlignedFloats* each : {&parameters_, &first_moment_, &second_moment_}) {
    if (auto sent = ranks.send(std::as_bytes(std::span(*each)), to); !sent) return sent;
  }
  return ranks.send(std::as_bytes(std::span(&steps_, 1)), to);
}

Shared<void> TrainingState::receive(Communicator& ranks, std::uint32_t from) {
  for (AlignedFloats* each : {&parameters_, &first_moment_, &second_moment_}) {
    const auto bytes = std::as_writable_bytes(std::span(*each));
    if (auto received = ranks.receive(bytes, from); !received) return received;
  }
  return ranks.receive(std::as_writable_bytes(std::span(&steps_, 1)), from);
}

std::string TrainingState::hash() const {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ORRERY_ASSERT(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1,
                "SHA-256 is always there");
  EVP_DigestUpdate(context, &steps_, sizeof steps_);
  for (const AlignedFloats* each : {&parameters_, &first_moment_, &second_moment_}) {
    EVP_DigestUpdate(context, each->data(), each->size() * sizeof(float));
  }
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context, digest.data(), nullptr);
  EVP_MD_CTX_free(context);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace orrery
