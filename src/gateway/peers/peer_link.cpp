#include "gateway/peers/peer_link.hpp"

#include <algorithm>
#include <utility>

#include "gateway/peers/peer_seal.hpp"
#include "serving/peers/peer_message.hpp"

namespace orrery {
namespace {

std::uint64_t microseconds_of(Instant time) {
  return static_cast<std::uint64_t>((time - Instant()).count_ns() / 1000);
}

bool is_far(std::uint64_t a_us, std::uint64_t b_us) {
  return std::max(a_us, b_us) - std::min(a_us, b_us) >
         static_cast<std::uint64_t>(kPeerClocks.count_ns() / 1000);
}

}  // namespace

std::string_view name_of(PeerRefusal refusal) {
  switch (refusal) {
    case PeerRefusal::kSeal:
      return "seal";
    case PeerRefusal::kUnknown:
      return "unknown";
    case PeerRefusal::kOld:
      return "old";
    case PeerRefusal::kClock:
      return "clock";
    case PeerRefusal::kSecond:
      break;
  }
  return "second";
}

Result<std::unique_ptr<PeerLink>> PeerLink::open(GatewayCore& core, const std::string& address) {
  const std::size_t name = core.options().name.size();
  if (name == 0 || name > kPeerNameMax) {
    return input_error(
        {}, fmt::format("the gateway's name has {} bytes, expected 1 to {}", name, kPeerNameMax));
  }
  auto link = std::make_unique<PeerLink>(core);
  Result<std::unique_ptr<DatagramSocket>> socket = DatagramSocket::bind(
      core.loop(), address, [link = link.get()](std::string_view bytes) { link->take(bytes); });
  if (!socket) return forward_error(socket);
  link->socket_ = *std::move(socket);
  return link;
}

PeerLink::PeerLink(GatewayCore& core) : core_(core), process_(core.draws().next_u64()) {}

PeerLink::~PeerLink() { core_.loop().cancel(timer_); }

void PeerLink::set_table(const RouteTable& table) {
  key_.clear();
  peers_.clear();
  if (table.peers) {
    key_ = table.peers->key;
    for (const RoutedGateway& each : table.peers->gateways) {
      if (each.name == core_.options().name) continue;
      const Result<SocketAddress> address = SocketAddress::parse("tcp:" + each.address);
      if (address) peers_.emplace(each.name, *address);
    }
  }
  loads_.keep([this](const std::string& name) { return peers_.contains(name); });
  show_router();
  core_.loop().cancel(timer_);
  if (!peers_.empty()) look();
}

void PeerLink::look() {
  timer_ = core_.loop().call_after(kPeerTell, [this] { look(); });
  if (loads_.forget_silent(core_.now())) show_router();
  if (told_.changes != core_.router().changes() || core_.now() >= told_.at + kPeerRepeat) tell();
}

void PeerLink::tell() {
  const Instant now = core_.now();
  told_ = {.at = now,
           .changes = core_.router().changes(),
           .sent_us = std::max(told_.sent_us + 1, microseconds_of(core_.now_wall()))};
  const std::string message = write_peer_message({.gateway = core_.options().name,
                                                  .process = process_,
                                                  .sent_us = told_.sent_us,
                                                  .charges = core_.router().own_charges()},
                                                 now);
  const std::string datagram = sealed(message, key_);
  for (const auto& [name, address] : peers_) socket_->send(address, datagram);
  figures_.sent += peers_.size();
}

void PeerLink::take(std::string_view datagram) {
  if (key_.empty()) return;
  const std::string_view bytes = opened(datagram, key_);
  if (bytes.empty()) return refuse(PeerRefusal::kSeal, "");
  std::optional<GatewayCharges> message = read_peer_message(bytes, core_.now());
  if (!message) return refuse(PeerRefusal::kUnknown, "");
  const std::string gateway = message->gateway;
  if (gateway == core_.options().name) return refuse(PeerRefusal::kSecond, gateway);
  if (!peers_.contains(gateway)) return refuse(PeerRefusal::kUnknown, gateway);
  if (is_far(message->sent_us, microseconds_of(core_.now_wall()))) {
    return refuse(PeerRefusal::kClock, gateway);
  }
  switch (loads_.take(*std::move(message), core_.now())) {
    case PeerVerdict::kOld:
      return refuse(PeerRefusal::kOld, gateway);
    case PeerVerdict::kSecond:
      return refuse(PeerRefusal::kSecond, gateway);
    case PeerVerdict::kTaken:
      break;
  }
  ++figures_.taken;
  show_router();
}

void PeerLink::refuse(PeerRefusal refusal, const std::string& gateway) {
  const bool first = figures_.refused[static_cast<std::size_t>(refusal)]++ == 0;
  if (!first || refusal == PeerRefusal::kOld) return;
  core_.log().warning(core_.now_wall(), "a message of another gateway is refused",
                      {{"why", name_of(refusal)}, {"gateway", gateway}});
}

void PeerLink::show_router() { core_.router().set_others(loads_.sums(), loads_.gateways()); }

PeerFigures PeerLink::figures() const {
  PeerFigures figures = figures_;
  figures.gateways = loads_.gateways();
  return figures;
}

}  // namespace orrery
