#include "twin/protocol/protocol_context.hpp"

#include <utility>

namespace orrery {

ProtocolContext::ProtocolContext(ProtocolRules rules, std::uint64_t seed, Trace trace)
    : rules_(std::move(rules)), rng_(Rng::stream(seed, "world")), trace_(std::move(trace)) {}

void ProtocolContext::make_reliable() {
  rules_ = {.beat = rules_.beat, .lease = rules_.lease, .policy = rules_.policy};
}

Duration ProtocolContext::delay() {
  const NetworkRules& network = rules_.network;
  const Duration most = chance(network.stray) ? Duration::seconds(30) : network.delay_max;
  return Duration::nanoseconds(
      1000 + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most.count_ns()))));
}

void ProtocolContext::transmit(const VirtualTime::Event& deliver) {
  if (chance(rules_.network.doubling)) time_.after(delay(), deliver);
  if (!chance(rules_.network.loss)) time_.after(delay(), deliver);
}

void ProtocolContext::note(const std::string& what) {
  if (trace_) trace_(time_.now(), what);
}

void ProtocolContext::wrong(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = time_.now().text() + ": " + what;
  note("BROKEN: " + what);
}

}  // namespace orrery
