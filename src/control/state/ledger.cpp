#include "control/state/ledger.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

std::size_t index_of(DeviceUse use) { return static_cast<std::size_t>(use); }

DeviceTime held(std::uint32_t count, Duration time) {
  return static_cast<DeviceTime>(count) * time.count_ns();
}

}  // namespace

Ledger::Ledger(std::span<const std::uint32_t> devices, Instant from)
    : begin_(from), cells_(devices.size()) {
  for (std::size_t t = 0; t < devices.size(); ++t) {
    for (Cell& cell : cells_[t]) cell.since = from;
    cells_[t][index_of(DeviceUse::kNoDemand)].count = devices[t];
  }
}

void Ledger::close(Cell& cell, Instant now) {
  ORRERY_ASSERT(now >= cell.since, "time does not run backwards");
  cell.sum += held(cell.count, now - cell.since);
  cell.since = now;
}

void Ledger::move(const Move& move, Instant now) {
  if (move.devices == 0 || move.from == move.to) return;
  Cell& from = cells_[move.type.value()][index_of(move.from)];
  Cell& to = cells_[move.type.value()][index_of(move.to)];
  ORRERY_ASSERT(from.count >= move.devices, "a device has one use at a time");
  close(from, now);
  close(to, now);
  from.count -= move.devices;
  to.count += move.devices;
}

DeviceTime Ledger::recount(const Recount& recount, Instant now) {
  Cell& from = cells_[recount.type.value()][index_of(recount.from)];
  close(from, now);
  const DeviceTime moved = std::clamp<DeviceTime>(recount.time, 0, from.sum);
  from.sum -= moved;
  cells_[recount.type.value()][index_of(recount.to)].sum += moved;
  return recount.time - moved;
}

void Ledger::change_fleet(FleetTypeId type, DeviceUse use, std::int64_t devices, Instant now) {
  Cell& cell = cells_[type.value()][index_of(use)];
  ORRERY_ASSERT(static_cast<std::int64_t>(cell.count) + devices >= 0, "a device has one use");
  close(cell, now);
  cell.count = static_cast<std::uint32_t>(static_cast<std::int64_t>(cell.count) + devices);
  changed_.resize(cells_.size());
  changed_[type.value()] -= static_cast<DeviceTime>(devices) * (now - begin_).count_ns();
}

void Ledger::set_types(std::size_t types) {
  std::array<Cell, kDeviceUses> none;
  for (Cell& cell : none) cell.since = begin_;
  cells_.resize(types, none);
}

DeviceTime Ledger::time_of(FleetTypeId type, std::uint32_t devices, Instant now) const {
  const DeviceTime all = held(devices, now - begin_);
  return changed_.empty() ? all : all + changed_[type.value()];
}

std::uint32_t Ledger::count(FleetTypeId type, DeviceUse use) const {
  return cells_[type.value()][index_of(use)].count;
}

DeviceTime Ledger::sum(FleetTypeId type, DeviceUse use, Instant now) const {
  const Cell& cell = cells_[type.value()][index_of(use)];
  return cell.sum + held(cell.count, now - cell.since);
}

}  // namespace orrery
