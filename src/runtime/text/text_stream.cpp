#include "runtime/text/text_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/assert.hpp"
#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

struct SequenceSplit {
  std::int64_t training = 0;
  std::int64_t held_out = 0;
};

// Adjacent sequences share a token: the last target of one is the first input of the next.
SequenceSplit split_of(const TextCorpus& corpus, std::int64_t sequence) {
  const std::int64_t all = (corpus.tokens() - 1) / sequence;
  const std::int64_t held_out = all < 2 ? 0 : std::max<std::int64_t>(1, all / 100);
  return {.training = all - held_out, .held_out = held_out};
}

}  // namespace

SampleOrder::SampleOrder(std::uint64_t seed, std::uint64_t count) : seed_(seed), count_(count) {
  ORRERY_ASSERT(count > 0 && count <= std::uint64_t{1} << 62, "there is something to order");
  half_bits_ = std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2);
}

std::uint64_t SampleOrder::operator[](std::uint64_t sample) const {
  Rng keys = Rng::stream(seed_, fmt::format("order of epoch {}", sample / count_));
  std::array<std::uint64_t, 4> rounds{};
  for (std::uint64_t& key : rounds) key = keys.next_u64();
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t at = sample % count_;
  do {
    std::uint64_t left = at >> half_bits_;
    std::uint64_t right = at & mask;
    for (const std::uint64_t key : rounds) {
      left ^= Rng(right ^ key).next_u64() & mask;
      std::swap(left, right);
    }
    at = left << half_bits_ | right;
  } while (at >= count_);
  return at;
}

TextStream::TextStream(TextCorpus corpus, std::int64_t sequence, SampleOrder order)
    : corpus_(std::move(corpus)), sequence_(sequence), order_(order) {
  const SequenceSplit split = split_of(corpus_, sequence);
  training_ = split.training;
  held_out_ = split.held_out;
}

Result<TextStream> TextStream::create(TextCorpus corpus, std::int64_t sequence,
                                      std::uint64_t seed) {
  ORRERY_ASSERT(sequence > 0, "a sequence has a token");
  if (corpus.tokens() <= sequence) {
    return input_error({}, fmt::format("the training text has {} tokens, shorter than one sequence "
                                       "of {} and the token that follows it",
                                       corpus.tokens(), sequence));
  }
  const auto training = static_cast<std::uint64_t>(split_of(corpus, sequence).training);
  return TextStream(std::move(corpus), sequence, SampleOrder(seed, training));
}

void TextStream::training_samples(std::uint64_t first, std::span<std::int32_t> tokens) const {
  const auto length = static_cast<std::size_t>(sequence_) + 1;
  ORRERY_ASSERT(tokens.size() % length == 0, "samples are whole");
  for (std::size_t begin = 0; begin < tokens.size(); begin += length) {
    read(static_cast<std::int64_t>(order_[first++]), tokens.subspan(begin, length));
  }
}

void TextStream::held_out_samples(std::int64_t first, std::span<std::int32_t> tokens) const {
  const auto length = static_cast<std::size_t>(sequence_) + 1;
  ORRERY_ASSERT(tokens.size() % length == 0, "samples are whole");
  for (std::size_t begin = 0; begin < tokens.size(); begin += length) {
    ORRERY_ASSERT(first < held_out_, "the sample is one of those held out");
    read(training_ + first++, tokens.subspan(begin, length));
  }
}

void TextStream::read(std::int64_t sequence, std::span<std::int32_t> tokens) const {
  corpus_.read(sequence * sequence_, tokens);
}

}  // namespace orrery
