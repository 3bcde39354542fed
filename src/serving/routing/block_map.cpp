#include "serving/routing/block_map.hpp"

#include <bit>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kCellsMin = 16;

}  // namespace

void BlockMap::set(std::uint64_t hash, std::uint64_t number) {
  reserve_one();
  Cell& cell = cells_[cell_of(hash)];
  if (cell.number == 0) ++size_;
  cell = {hash, number};
}

void BlockMap::set_bits(std::uint64_t hash, std::uint64_t bits) {
  reserve_one();
  Cell& cell = cells_[cell_of(hash)];
  if (cell.number == 0) ++size_;
  cell = {hash, cell.number | bits};
}

void BlockMap::clear_bits(std::uint64_t hash, std::uint64_t bits) {
  if (cells_.empty()) return;
  const std::size_t at = cell_of(hash);
  if (cells_[at].number == 0) return;
  cells_[at].number &= ~bits;
  if (cells_[at].number == 0) free_cell(at);
}

void BlockMap::reserve_one() {
  if ((size_ + 1) * 4 <= cells_.size() * 3) return;
  const std::size_t count = cells_.empty() ? kCellsMin : cells_.size() * 2;
  const std::vector<Cell> old = std::exchange(cells_, std::vector<Cell>(count));
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(count));
  for (const Cell& each : old) {
    if (each.number != 0) cells_[cell_of(each.hash)] = each;
  }
}

/// Lets the entries behind a cell, whose own has gone, move up.
void BlockMap::free_cell(std::size_t at) {
  const std::size_t mask = cells_.size() - 1;
  std::size_t hole = at;
  --size_;
  for (at = (hole + 1) & mask; cells_[at].number != 0; at = (at + 1) & mask) {
    // An entry moves up unless the hole lies before its home.
    const std::size_t distance = (at - home_of(cells_[at].hash)) & mask;
    if (distance < ((at - hole) & mask)) continue;
    cells_[hole] = cells_[at];
    hole = at;
  }
  cells_[hole] = {};
}

void BlockMap::clear() {
  cells_ = {};
  size_ = 0;
  shift_ = 64;
}

}  // namespace orrery
