#include <algorithm>
#include <queue>
#include <tuple>

#include "tokens/bpe/merge_model.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShort =
    48;  ///< tokens; below it, looking at all pairs is faster than a heap

void merge_few(const PairTable& merges, std::size_t begin, std::vector<std::int32_t>& tokens) {
  std::array<Merge, kShort> pairs;
  std::int32_t* token = tokens.data() + begin;
  std::size_t count = tokens.size() - begin;
  const auto look = [&](std::size_t i) {
    pairs[i] = merges.find(PairTable::pair(token[i], token[i + 1]));
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == Merge::kNone) break;
    token[best] = pairs[best].token;
    std::copy(token + best + 2, token + count, token + best + 1);
    if (best + 2 < count) {
      std::copy(pairs.begin() + static_cast<std::ptrdiff_t>(best) + 2,
                pairs.begin() + static_cast<std::ptrdiff_t>(count) - 1,
                pairs.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    --count;
    if (best > 0) look(best - 1);
    if (best + 1 < count) look(best);
  }
  tokens.resize(begin + count);
}

/// Tokens as a linked list, and their pairs in a heap.
class LongMerge {
 public:
  LongMerge(const PairTable& merges, std::size_t begin, std::vector<std::int32_t>& tokens)
      : merges_(merges),
        begin_(begin),
        tokens_(tokens),
        next_(tokens.size() - begin),
        previous_(next_.size()) {}

  void run() {
    const std::size_t count = next_.size();
    for (std::size_t i = 0; i < count; ++i) {
      next_[i] = i + 1;
      previous_[i] = i == 0 ? kNone : i - 1;
    }
    for (std::size_t i = 0; i + 1 < count; ++i) look(i);
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      if (is_current(top)) merge(top);
    }
    std::size_t kept = begin_;
    for (std::size_t i = 0; i < count; i = next_[i]) tokens_[kept++] = tokens_[begin_ + i];
    tokens_.resize(kept);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Candidate {
    std::uint32_t rank;
    std::size_t place;
    std::int32_t token;

    bool operator>(const Candidate& other) const {
      return std::tie(rank, place) > std::tie(other.rank, other.place);
    }
  };

  [[nodiscard]] Merge pair_at(std::size_t place) const {
    return merges_.find(PairTable::pair(tokens_[begin_ + place], tokens_[begin_ + next_[place]]));
  }
  void look(std::size_t place) {
    const Merge merge = pair_at(place);
    if (merge.rank != Merge::kNone) queue_.push({merge.rank, place, merge.token});
  }
  [[nodiscard]] bool is_current(const Candidate& candidate) const {
    const std::size_t right = next_[candidate.place];
    if (right == kNone || right >= next_.size()) return false;
    const Merge merge = pair_at(candidate.place);
    return merge.rank != Merge::kNone && merge.token == candidate.token;
  }
  void merge(const Candidate& candidate) {
    const std::size_t left = candidate.place;
    const std::size_t right = next_[left];
    tokens_[begin_ + left] = candidate.token;
    next_[left] = next_[right];
    next_[right] = kNone;
    if (next_[left] < next_.size()) {
      previous_[next_[left]] = left;
      look(left);
    }
    if (previous_[left] != kNone) look(previous_[left]);
  }

  const PairTable& merges_;
  std::size_t begin_;
  std::vector<std::int32_t>& tokens_;
  std::vector<std::size_t> next_;  ///< kNone: merged into its left
  std::vector<std::size_t> previous_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

void merge_tokens(const PairTable& merges, std::size_t begin, std::vector<std::int32_t>& tokens) {
  const std::size_t count = tokens.size() - begin;
  if (count < 2) return;
  if (count <= kShort) {
    merge_few(merges, begin, tokens);
  } else {
    LongMerge(merges, begin, tokens).run();
  }
}

}  // namespace orrery
