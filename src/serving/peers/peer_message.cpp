#include "serving/peers/peer_message.hpp"

#include <algorithm>
#include <concepts>
#include <set>

#include "base/format/little_endian.hpp"

namespace orrery {
namespace {

constexpr std::string_view kMagic = "orl1";
constexpr std::size_t kReplicaBytes = 4 * sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);
// No replica has more, and the sums over all gateways stay far from the ends of their types.
constexpr std::uint32_t kRequestsMax = 1'000'000;
constexpr std::uint64_t kTokensMax = 1'000'000'000'000;
constexpr std::uint64_t kMicrosecondsMax = 3'600'000'000;

template <std::unsigned_integral Word>
void add(std::string& bytes, Word value) {
  bytes.resize(bytes.size() + sizeof value);
  store_little_endian(value, bytes.data() + bytes.size() - sizeof value);
}

/// Takes the first bytes away. Precondition: there are as many.
template <std::unsigned_integral Word>
Word take(std::string_view& bytes) {
  const Word value = load_little_endian<Word>(bytes.data());
  bytes.remove_prefix(sizeof value);
  return value;
}

void add(std::string& bytes, const ReplicaCharges& charges, Instant now) {
  const ReplicaWork& work = charges.work;
  const std::int64_t left_us =
      work.prompts_until > now ? (work.prompts_until - now).count_ns() / 1000 : 0;
  add(bytes, charges.replica.job);
  add(bytes, charges.replica.attempt);
  add(bytes, std::min(work.in_flight, kRequestsMax));
  add(bytes, std::min(work.tokens, kTokensMax));
  add(bytes, std::min({work.prompt_tokens, work.tokens, kTokensMax}));
  add(bytes, std::min(static_cast<std::uint64_t>(left_us), kMicrosecondsMax));
}

/// None: it is more than a replica can have. Precondition: there are kReplicaBytes.
std::optional<ReplicaCharges> take_charges(std::string_view& bytes, Instant now) {
  ReplicaCharges charges;
  charges.replica.job = take<std::uint64_t>(bytes);
  charges.replica.attempt = take<std::uint32_t>(bytes);
  ReplicaWork& work = charges.work;
  work.in_flight = take<std::uint32_t>(bytes);
  work.tokens = take<std::uint64_t>(bytes);
  work.prompt_tokens = take<std::uint64_t>(bytes);
  const auto left_us = take<std::uint64_t>(bytes);
  if (work.in_flight > kRequestsMax || work.tokens > kTokensMax ||
      work.prompt_tokens > work.tokens || left_us > kMicrosecondsMax) {
    return std::nullopt;
  }
  if (left_us > 0) {
    work.prompts_until = now + Duration::nanoseconds(static_cast<std::int64_t>(left_us) * 1000);
  }
  return charges;
}

}  // namespace

std::string write_peer_message(const GatewayCharges& message, Instant now) {
  std::vector<ReplicaCharges> charges = message.charges;
  if (charges.size() > kPeerReplicasMax) {
    std::ranges::nth_element(charges, charges.begin() + kPeerReplicasMax, std::ranges::greater(),
                             [](const ReplicaCharges& each) { return each.work.in_flight; });
    charges.resize(kPeerReplicasMax);
  }
  std::string bytes(kMagic);
  bytes.push_back(static_cast<char>(message.gateway.size()));
  bytes += message.gateway;
  add(bytes, message.process);
  add(bytes, message.sent_us);
  add(bytes, static_cast<std::uint16_t>(charges.size()));
  for (const ReplicaCharges& each : charges) add(bytes, each, now);
  return bytes;
}

std::optional<GatewayCharges> read_peer_message(std::string_view bytes, Instant now) {
  constexpr std::size_t kFixed = 2 * sizeof(std::uint64_t) + sizeof(std::uint16_t);
  if (bytes.size() <= kMagic.size() || !bytes.starts_with(kMagic)) return std::nullopt;
  bytes.remove_prefix(kMagic.size());
  const std::size_t name = take<std::uint8_t>(bytes);
  if (name == 0 || bytes.size() < name + kFixed) return std::nullopt;
  GatewayCharges message{.gateway = std::string(bytes.substr(0, name)), .charges = {}};
  bytes.remove_prefix(name);
  message.process = take<std::uint64_t>(bytes);
  message.sent_us = take<std::uint64_t>(bytes);
  const std::size_t count = take<std::uint16_t>(bytes);
  if (count > kPeerReplicasMax || bytes.size() != count * kReplicaBytes) return std::nullopt;
  std::set<ReplicaKey> seen;
  message.charges.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<ReplicaCharges> charges = take_charges(bytes, now);
    if (!charges || !seen.insert(charges->replica).second) return std::nullopt;
    message.charges.push_back(*charges);
  }
  return message;
}

}  // namespace orrery
