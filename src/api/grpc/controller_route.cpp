#include "api/grpc/controller_route.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Limit of known controllers: addresses that standbys name come from the network.
constexpr std::size_t kKnownMax = 32;

}  // namespace

ControllerRoute::ControllerRoute(std::vector<std::string> addresses) {
  ORRERY_ASSERT(!addresses.empty(), "a caller knows a controller");
  known_.reserve(addresses.size());
  for (std::string& address : addresses) {
    if (std::ranges::find(known_, address, &Known::address) != known_.end()) continue;
    known_.push_back({std::move(address)});
  }
}

std::vector<std::string> ControllerRoute::addresses() const {
  std::vector<std::string> all;
  all.reserve(known_.size());
  for (const Known& each : known_) all.push_back(each.address);
  return all;
}

void ControllerRoute::begin_round() {
  for (Known& each : known_) each.tried = false;
}

bool ControllerRoute::move_on(const std::string& leader) {
  known_[at_].tried = true;
  const std::size_t next = (at_ + 1) % known_.size();
  const std::size_t named = leader.empty() ? next : place_of(leader);
  for (std::size_t i = 0; i < known_.size(); ++i) {
    at_ = (named + i) % known_.size();
    if (!known_[at_].tried) return true;
  }
  at_ = named;
  return false;
}

std::size_t ControllerRoute::place_of(const std::string& address) {
  const auto found = std::ranges::find(known_, address, &Known::address);
  const auto place = static_cast<std::size_t>(found - known_.begin());
  if (found != known_.end()) return place;
  if (known_.size() == kKnownMax) return (at_ + 1) % known_.size();
  known_.push_back({address});
  return place;
}

}  // namespace orrery
