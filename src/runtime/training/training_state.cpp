#include "runtime/training/training_state.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "runtime/trainer/gradient_norm.hpp"
#include "runtime/trainer/sha256.hpp"
#include "runtime/training/gradient_length.hpp"
#include "runtime/training/saved_weights.hpp"

namespace orrery {
namespace {

constexpr std::string_view kFirstMoment = "optimizer.first_moment";
constexpr std::string_view kSecondMoment = "optimizer.second_moment";

std::vector<std::uint64_t> shape_of(const ParameterTensor& tensor) {
  return {tensor.shape.begin(), tensor.shape.end()};
}

}  // namespace

TrainingState::TrainingState(const TransformerConfig& config, std::uint64_t seed,
                             const StateShare& share)
    : model_(config, share.part),
      share_(share),
      held_(held_range(model_.own().size(), share.replica, share.replicas)),
      stepped_(share.moments == StateShare::Moments::kOfHeldRange
                   ? held_
                   : FloatRange{0, model_.own().size()}),
      parameters_(model_.own().size()),
      first_moment_(stepped_.size()),
      second_moment_(stepped_.size()) {
  initialise(model_.own(), seed, parameters_);
}

Status TrainingState::step(const AdamW& optimizer, std::span<const float> gradient_sum,
                           const OptimizerStep& how, const GradientClip& clip) {
  if (!std::isfinite(clip.length)) {
    return environment_error(fmt::format("the gradient of step {} is not finite", steps_ + 1));
  }
  OptimizerStep clipped = how;
  clipped.gradient_scale = static_cast<float>(static_cast<double>(how.gradient_scale) *
                                              clip_factor(clip.length, clip.limit));
  update(optimizer, model_.own(),
         {.begin = stepped_.begin,
          .parameters = std::span(parameters_).subspan(stepped_.begin, stepped_.size()),
          .gradient = gradient_sum,
          .first_moment = first_moment_,
          .second_moment = second_moment_},
         clipped);
  ++steps_;
  return {};
}

Shared<void> TrainingState::gather_weights(Communicator& column, std::span<float> room) {
  if (share_.moments == StateShare::Moments::kOfPart) return {};
  const auto own = std::span(parameters_).subspan(held_.begin, held_.size());
  std::copy(own.begin(), own.end(), room.data() + held_.begin);
  if (auto got = column.all_gather_parts(std::as_writable_bytes(room),
                                         held_parts(parameters_.size(), column.size()));
      !got) {
    return got;
  }
  std::copy(room.begin(), room.end(), parameters_.begin());
  return {};
}

const AlignedFloats& TrainingState::vector(std::size_t which) const {
  const std::array<const AlignedFloats*, kVectors> all{&parameters_, &first_moment_,
                                                       &second_moment_};
  return *all.at(which);
}

Shared<AlignedFloats> TrainingState::assembled(Communicator& all, std::size_t which) const {
  const std::size_t begin = which == 0 ? 0 : stepped_.begin;
  const HeldFloats held{held_, std::span(vector(which)).subspan(held_.begin - begin, held_.size())};
  AlignedFloats range(even_range(model_.whole().size(), all.rank(), all.size()).size());
  auto put = model_.assemble(all, held, range);
  if (!put) return tl::unexpected(put.error());
  return range;
}

Shared<std::array<AlignedFloats, TrainingState::kVectors>> TrainingState::ranges(
    Communicator& all) const {
  std::array<AlignedFloats, kVectors> ranges;
  for (std::size_t which = 0; which < kVectors; ++which) {
    auto range = assembled(all, which);
    if (!range) return tl::unexpected(range.error());
    ranges.at(which) = std::move(*range);
  }
  return ranges;
}

void TrainingState::take(std::size_t vector, std::size_t begin, std::span<const float> floats) {
  const std::array<AlignedFloats*, kVectors> all{&parameters_, &first_moment_, &second_moment_};
  AlignedFloats& to = *all.at(vector);
  const FloatRange here = vector == 0 ? FloatRange{0, to.size()} : stepped_;
  model_.visit(here, {begin, begin + floats.size()}, [&](const FloatRun& run) {
    std::copy_n(floats.data() + (run.whole - begin), run.size, to.data() + run.here - here.begin);
  });
}

Shared<SavedPart> TrainingState::saved_part(Communicator& all) const {
  SavedPart saved;
  const FloatRange mine = even_range(model_.whole().size(), all.rank(), all.size());
  std::array<std::span<const float>, kVectors> vectors;
  if (!share_.whole()) {
    auto put = ranges(all);
    if (!put) return tl::unexpected(put.error());
    saved.assembled = *std::move(put);
  }
  for (std::size_t which = 0; which < kVectors; ++which) {
    vectors.at(which) = share_.whole() ? std::span(vector(which)).subspan(mine.begin, mine.size())
                                       : std::span<const float>(saved.assembled.at(which));
  }
  for (const ParameterTensor& tensor : model_.whole().tensors()) {
    const FloatRange own = FloatRange{tensor.begin, tensor.begin + tensor.size}.within(mine);
    if (own.size() == 0) continue;
    saved.pieces.push_back({{.tensor = tensor.name,
                             .shape = shape_of(tensor),
                             .begin = own.begin - tensor.begin,
                             .end = own.end - tensor.begin},
                            std::as_bytes(vectors[0].subspan(own.begin - mine.begin, own.size()))});
  }
  for (const auto& [name, moment] :
       {std::pair{kFirstMoment, vectors[1]}, std::pair{kSecondMoment, vectors[2]}}) {
    if (mine.size() == 0) continue;
    saved.pieces.push_back({{.tensor = std::string(name),
                             .shape = {model_.whole().size()},
                             .begin = mine.begin,
                             .end = mine.end},
                            std::as_bytes(moment)});
  }
  return saved;
}

template <class Source>
Status TrainingState::read_weights(Source& source) {
  const auto& saved = source.tensors();
  const Status fits =
      check_saved_shapes(model_.whole(), [&](std::string_view name) -> const TensorInfo* {
        const auto found =
            std::ranges::find_if(saved, [&](const auto& each) { return each.info.name == name; });
        return found == saved.end() ? nullptr : &found->info;
      });
  if (!fits) return fits;
  Status read;
  model_.visit({0, parameters_.size()}, [&](const FloatRun& run) {
    if (!read) return;
    const ParameterTensor& tensor = model_.whole().tensors()[run.tensor];
    const std::size_t begin = run.whole - tensor.begin;
    read = source.read({.tensor = tensor.name, .begin = begin, .end = begin + run.size},
                       std::as_writable_bytes(std::span(parameters_).subspan(run.here, run.size)));
  });
  return read;
}

Status TrainingState::restore_weights(SafetensorsFile& file) { return read_weights(file); }

Status TrainingState::restore(CheckpointReader& reader) {
  if (Status read = read_weights(reader); !read) return read;
  Status read;
  for (const auto& [name, moment] :
       {std::pair{kFirstMoment, &first_moment_}, std::pair{kSecondMoment, &second_moment_}}) {
    model_.visit(stepped_, [&](const FloatRun& run) {
      if (!read) return;
      const auto to = std::span(*moment).subspan(run.here - stepped_.begin, run.size);
      read = reader.read({.tensor = name, .begin = run.whole, .end = run.whole + run.size},
                         std::as_writable_bytes(to));
    });
  }
  if (read) steps_ = reader.manifest().id.step;
  return read;
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

Shared<std::string> TrainingState::hash(Communicator& all) const {
  Sha256 digest;
  digest.add(std::as_bytes(std::span(&steps_, 1)));
  for (std::size_t which = 0; which < kVectors; ++which) {
    if (share_.whole()) {
      digest.add(std::as_bytes(std::span(vector(which))));
      continue;
    }
    auto range = assembled(all, which);
    if (!range) return tl::unexpected(range.error());
    if (all.rank() != 0) {
      auto sent = all.send(std::as_bytes(std::span(*range)), 0);
      if (!sent) return tl::unexpected(sent.error());
      continue;
    }
    digest.add(std::as_bytes(std::span(*range)));
    for (std::uint32_t rank = 1; rank < all.size(); ++rank) {
      range->resize(even_range(model_.whole().size(), rank, all.size()).size());
      auto got = all.receive(std::as_writable_bytes(std::span(*range)), rank);
      if (!got) return tl::unexpected(got.error());
      digest.add(std::as_bytes(std::span(*range)));
    }
  }
  return digest.text();
}

}  // namespace orrery
