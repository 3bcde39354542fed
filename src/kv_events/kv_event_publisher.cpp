#include "kv_events/kv_event_publisher.hpp"

#include <fmt/format.h>
#include <zmq.h>

#include <array>
#include <string_view>
#include <utility>

#include "kv_events/kv_event_wire.hpp"

namespace orrery {
namespace {

constexpr int kMessagesMax = 100'000;  // kept for a reader, as vLLM does
constexpr std::string_view kTopic = "kv-events";
constexpr std::string_view kTcp = "tcp://";

std::array<unsigned char, 8> big_endian(std::uint64_t number) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = bytes.size(); i-- > 0; number >>= 8U) {
    bytes[i] = static_cast<unsigned char>(number & 0xFFU);
  }
  return bytes;
}

}  // namespace

KvEventPublisher::KvEventPublisher(ZmqContext context, ZmqSocket socket, std::string address)
    : context_(std::move(context)), socket_(std::move(socket)), address_(std::move(address)) {}

Result<std::unique_ptr<KvEventPublisher>> KvEventPublisher::open(const std::string& address) {
  ZmqContext context = make_zmq_context();
  Result<ZmqSocket> socket = make_zmq_socket(context, ZMQ_PUB, kMessagesMax);
  if (!socket) return forward_error(socket);
  // A socket of IPv6 would have another name for an address of IPv4.
  const int v6 = address.starts_with('[') ? 1 : 0;
  zmq_setsockopt(socket->get(), ZMQ_IPV6, &v6, sizeof v6);
  if (zmq_bind(socket->get(), (std::string(kTcp) + address).c_str()) != 0) {
    const std::string why = last_zmq_error();
    return input_error({}, fmt::format("KV events: cannot listen at \"{}\", expected HOST:PORT: {}",
                                       address, why));
  }
  std::array<char, 256> chosen{};
  std::size_t size = chosen.size();
  zmq_getsockopt(socket->get(), ZMQ_LAST_ENDPOINT, chosen.data(), &size);
  return std::make_unique<KvEventPublisher>(std::move(context), *std::move(socket),
                                            std::string(chosen.data()).substr(kTcp.size()));
}

void KvEventPublisher::publish(const KvEventBatch& batch) {
  const auto number = big_endian(next_++);
  const std::string message = write_kv_events(batch);
  zmq_send(socket_.get(), kTopic.data(), kTopic.size(), ZMQ_SNDMORE);
  zmq_send(socket_.get(), number.data(), number.size(), ZMQ_SNDMORE);
  zmq_send(socket_.get(), message.data(), message.size(), 0);
}

}  // namespace orrery
