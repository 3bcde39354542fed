// serving/routing/block_map.hpp - numbers by hash, in one flat table: what the prefix index is made
// of.
//
// Open addressing with linear probing; an entry that leaves lets those behind it move up, so no
// marks of the dead slow a search. The number 0 means that there is none. A plain value. Not
// thread-safe.
// Invariant: at most three of four cells are in use; a map that grows keeps its cells.
// Cost: O(1) expected a call, about one cache line; 16 bytes a cell, 21 to 43 bytes an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

class BlockMap {
 public:
  /// The number of a hash; 0: it has none.
  [[nodiscard]] std::uint64_t find(std::uint64_t hash) const {
    if (cells_.empty()) return 0;
    return cells_[cell_of(hash)].number;
  }
  /// Sets the number of a hash. Precondition: number > 0.
  void set(std::uint64_t hash, std::uint64_t number);
  /// Sets bits of the number of a hash, which is 0 where it has none. Precondition: bits > 0.
  void set_bits(std::uint64_t hash, std::uint64_t bits);
  /// Takes bits of the number of a hash; without any, it is forgotten.
  void clear_bits(std::uint64_t hash, std::uint64_t bits);
  /// Forgets a hash, if it is known.
  void erase(std::uint64_t hash) { clear_bits(hash, ~std::uint64_t{0}); }
  void clear();
  /// Has the cell of a hash brought into the cache, to be looked at soon.
  void prefetch(std::uint64_t hash) const {
    if (!cells_.empty()) __builtin_prefetch(&cells_[home_of(hash)]);
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    std::uint64_t hash = 0;
    std::uint64_t number = 0;
  };

  /// Hashes may be small numbers in a row: multiplied by an odd number, their high bits differ.
  [[nodiscard]] std::size_t home_of(std::uint64_t hash) const {
    return static_cast<std::size_t>((hash * 0x9E37'79B9'7F4A'7C15U) >> shift_);
  }
  /// The cell of a hash, or the free one where it would stand. Precondition: there are cells.
  [[nodiscard]] std::size_t cell_of(std::uint64_t hash) const {
    const std::size_t mask = cells_.size() - 1;
    std::size_t at = home_of(hash);
    while (cells_[at].number != 0 && cells_[at].hash != hash) at = (at + 1) & mask;
    return at;
  }
  /// Makes room for one more entry.
  void reserve_one();
  void free_cell(std::size_t at);

  std::vector<Cell> cells_;  ///< a power of two of them, or none
  std::size_t size_ = 0;
  unsigned shift_ = 64;
};

}  // namespace orrery
