#include "serving/peers/peer_loads.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

std::vector<ReplicaCharges> summed(std::vector<ReplicaCharges> charges) {
  std::ranges::sort(charges, {}, &ReplicaCharges::replica);
  std::size_t sums = 0;
  for (const ReplicaCharges& each : charges) {
    if (sums > 0 && charges[sums - 1].replica == each.replica) {
      charges[sums - 1].work = charges[sums - 1].work + each.work;
    } else {
      charges[sums++] = each;
    }
  }
  charges.resize(sums);
  return charges;
}

PeerVerdict PeerLoads::take(GatewayCharges message, Instant now) {
  Heard& heard = heard_[message.gateway];
  const bool speaks = heard.state == Heard::State::kHeard && now < heard.at + kPeerSilent;
  if (speaks && message.process != heard.newest.process) return PeerVerdict::kSecond;
  if (message.sent_us <= heard.newest.sent_us) return PeerVerdict::kOld;
  heard = {.newest = std::move(message), .at = now, .state = Heard::State::kHeard};
  return PeerVerdict::kTaken;
}

bool PeerLoads::forget_silent(Instant now) {
  bool forgot = false;
  for (auto& [name, heard] : heard_) {
    if (heard.state == Heard::State::kSilent || now < heard.at + kPeerSilent) continue;
    heard.state = Heard::State::kSilent;
    heard.newest.charges.clear();
    forgot = true;
  }
  return forgot;
}

std::uint32_t PeerLoads::gateways() const {
  return static_cast<std::uint32_t>(std::ranges::count_if(
      heard_, [](const auto& each) { return each.second.state == Heard::State::kHeard; }));
}

std::vector<ReplicaCharges> PeerLoads::sums() const {
  std::vector<ReplicaCharges> all;
  for (const auto& [name, heard] : heard_) {
    all.insert(all.end(), heard.newest.charges.begin(), heard.newest.charges.end());
  }
  return summed(std::move(all));
}

}  // namespace orrery
