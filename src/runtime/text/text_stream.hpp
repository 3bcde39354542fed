// runtime/text/text_stream.hpp - the order in which a training run sees its text: sequence by
// sequence, each once per epoch in an order that differs between epochs, some held out for
// evaluation.
//
// Sample k is a pure function of the corpus, the sequence length, the seed and k. So a run can
// resume exactly from its step number alone, and any rank can fetch the samples of any shard: those
// of step s are s x batch + shard x (batch / shards) + i. Immutable; safe to use from every thread.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/text/text_corpus.hpp"

namespace orrery {

/// A permutation of 0 to n - 1 for each epoch: a Feistel network of four rounds (M. Luby and C.
/// Rackoff, "How to construct pseudorandom permutations from pseudorandom functions", SIAM Journal
/// on Computing 17(2), 1988) over the next power of four, walked until it falls below n (J. Black
/// and P. Rogaway, "Ciphers with arbitrary finite domains", 2002). O(1) time and space.
class SampleOrder {
 public:
  /// Precondition: 1 <= count <= 2^62.
  SampleOrder(std::uint64_t seed, std::uint64_t count);

  /// Returns which of the `count` items is the sample of that number; a new epoch begins every
  /// `count` samples.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t sample) const;

 private:
  std::uint64_t seed_;
  std::uint64_t count_;
  int half_bits_ = 1;
};

class TextStream {
 public:
  /// Sequences of `sequence` tokens, each with the token that follows it; the last hundredth of
  /// them, at least one, is held out where there are two or more. An error if the corpus is shorter
  /// than one.
  [[nodiscard]] static Result<TextStream> create(TextCorpus corpus, std::int64_t sequence,
                                                 std::uint64_t seed);

  [[nodiscard]] const TextCorpus& corpus() const { return corpus_; }
  [[nodiscard]] std::int64_t held_out_sequences() const { return held_out_; }

  /// Fills `tokens` with the samples `first`, first + 1 and so on, sequence + 1 tokens each.
  /// Precondition: whole samples.
  void training_samples(std::uint64_t first, std::span<std::int32_t> tokens) const;

  /// Fills `tokens` with the held-out sequences from `first` on, in the text's order. Precondition:
  /// there are that many.
  void held_out_samples(std::int64_t first, std::span<std::int32_t> tokens) const;

 private:
  TextStream(TextCorpus corpus, std::int64_t sequence, SampleOrder order);

  void read(std::int64_t sequence, std::span<std::int32_t> tokens) const;

  TextCorpus corpus_;
  std::int64_t sequence_;
  std::int64_t training_ = 0;
  std::int64_t held_out_ = 0;
  SampleOrder order_;
};

}  // namespace orrery
