#include "tokens/bpe/merge_tables.hpp"

#include <bit>

namespace orrery {
namespace {

std::size_t table_size(std::size_t entries) { return std::bit_ceil(2 * entries + 2); }

}  // namespace

void WordTable::reserve(std::size_t words) { entries_.assign(table_size(words), {}); }

std::size_t WordTable::place_of(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = hash & mask;
  while (entries_[at].size != 0 && (entries_[at].hash != hash || word_of(entries_[at]) != word)) {
    at = (at + 1) & mask;
  }
  return at;
}

void WordTable::add(std::string_view word, std::int32_t token) {
  const std::uint64_t hash = word_hash(word);
  Entry& entry = entries_[place_of(word, hash)];
  if (entry.size == 0) {
    entry = {hash, static_cast<std::uint32_t>(bytes_.size()),
             static_cast<std::uint32_t>(word.size()), token, false};
    bytes_ += word;
  }
  entry.token = token;
}

const WordTable::Entry* WordTable::find(std::string_view word, std::uint64_t hash) const {
  if (entries_.empty()) return nullptr;
  const Entry& entry = entries_[place_of(word, hash)];
  return entry.size == 0 ? nullptr : &entry;
}

void PairTable::reserve(std::size_t pairs) { entries_.assign(table_size(pairs), {}); }

void PairTable::add(std::uint64_t pair, Merge merge) {
  std::size_t at = first_place(pair);
  while (entries_[at].pair != kFree && entries_[at].pair != pair) {
    at = (at + 1) & (entries_.size() - 1);
  }
  entries_[at] = {pair, merge};
}

void CharacterTable::add(char32_t character) {
  if (character >= known_.size()) known_.resize(character + 1);
  known_[character] = true;
}

void CharacterTable::join(char32_t left, char32_t right) {
  joined_.add(pair(left, right), {0, 0});
  if (left < kAscii && right < kAscii) ascii_joined_[left].set(right);
}

}  // namespace orrery
