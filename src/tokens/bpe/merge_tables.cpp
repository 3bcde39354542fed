#include "tokens/bpe/merge_tables.hpp"

#include <bit>
#include <cstring>

namespace orrery {
namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;

std::uint64_t mixed(std::uint64_t value) {
  value *= kOdd;
  return value ^ (value >> 32);
}

std::uint64_t hash_of(std::string_view word) {
  std::uint64_t hash = word.size() * kOdd;
  const char* at = word.data();
  std::size_t left = word.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, 8);
    hash = mixed(hash ^ bytes);
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < left; ++i) {
    bytes |= static_cast<std::uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  }
  return mixed(mixed(hash ^ bytes));
}

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
  const std::uint64_t hash = hash_of(word);
  Entry& entry = entries_[place_of(word, hash)];
  if (entry.size == 0) {
    entry = {hash, static_cast<std::uint32_t>(bytes_.size()),
             static_cast<std::uint32_t>(word.size()), token, false};
    bytes_ += word;
  }
  entry.token = token;
}

const WordTable::Entry* WordTable::find(std::string_view word) const {
  if (entries_.empty()) return nullptr;
  const Entry& entry = entries_[place_of(word, hash_of(word))];
  return entry.size == 0 ? nullptr : &entry;
}

void PairTable::reserve(std::size_t pairs) { entries_.assign(table_size(pairs), {}); }

std::size_t PairTable::place_of(std::uint64_t pair) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = mixed(mixed(pair)) & mask;
  while (entries_[at].pair != kFree && entries_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

void PairTable::add(std::uint64_t pair, Merge merge) { entries_[place_of(pair)] = {pair, merge}; }

Merge PairTable::find(std::uint64_t pair) const { return entries_[place_of(pair)].merge; }

}  // namespace orrery
