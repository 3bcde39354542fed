#include "control/hold_bills.hpp"

#include <algorithm>

namespace orrery {

std::string_view manager_of(std::string_view hold) { return hold.substr(0, hold.find('/')); }

void HoldBills::on(const HoldBilled& event) {
  const auto open = open_.find(event.hold);
  const LentTotal seen = open == open_.end() ? LentTotal() : open->second;
  if (open != open_.end()) open_.erase(open);
  LentTotal& total = totals_[std::string(manager_of(event.hold))];
  const DeviceTime recorded = DeviceTime{(event.to - event.from).count_ns()} * event.nodes;
  const DeviceTime held = event.nodes == 0 ? seen.held : recorded;
  ++total.holds;
  total.held += held;
  total.used += std::min(seen.used, held);
  billed_.insert(event.hold);
  newest_.emplace_back(event.to, event.hold);
  if (newest_.size() <= kRemembered) return;
  forgotten_ = std::max(forgotten_, newest_.front().first);
  billed_.erase(newest_.front().second);
  newest_.pop_front();
}

}  // namespace orrery
