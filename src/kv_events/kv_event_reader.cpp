#include "kv_events/kv_event_reader.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "kv_events/kv_event_wire.hpp"

namespace orrery {
namespace {

/// Messages that may wait on the loop.
constexpr int kPostedMax = 256;
/// How long what waits for the loop is left alone.
constexpr long kPauseMs = 2;

/// A frame of a message; owns what the library gave.
class ZmqFrame {
 public:
  ZmqFrame() { zmq_msg_init(&frame_); }
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;
  ~ZmqFrame() { zmq_msg_close(&frame_); }

  /// Takes the next frame; false: none is there.
  [[nodiscard]] bool receive(void* socket) {
    return zmq_msg_recv(&frame_, socket, ZMQ_DONTWAIT) >= 0;
  }
  [[nodiscard]] bool more() { return zmq_msg_more(&frame_) != 0; }
  [[nodiscard]] std::string_view bytes() {
    return {static_cast<const char*>(zmq_msg_data(&frame_)), zmq_msg_size(&frame_)};
  }

 private:
  zmq_msg_t frame_{};
};

/// Reads the number and the events of a message of `count` frames.
Result<KvEventMessage> message_of(std::array<ZmqFrame, 3>& frames, std::size_t count) {
  constexpr std::size_t kNumberBytes = 8;
  if (count != frames.size() || frames[1].bytes().size() != kNumberBytes) {
    return input_error({}, fmt::format("a message of {} frames, expected a topic, a number of 8 "
                                       "bytes and events",
                                       count));
  }
  KvEventMessage message;
  for (const char c : frames[1].bytes()) {
    message.number = message.number << 8U | static_cast<unsigned char>(c);
  }
  Result<KvEventBatch> batch = read_kv_events(frames[2].bytes());
  if (!batch) return forward_error(batch);
  message.batch = *std::move(batch);
  return message;
}

}  // namespace

/// What posted messages find on the loop, while the reader lives.
struct KvEventReader::Link {
  OnMessage on_message;
  Engines followed;  ///< as the loop knows them
  std::atomic<int> posted{0};
};

/// The connections; used by the thread alone.
struct KvEventReader::Sockets {
  struct Engine {
    std::string address;
    ZmqSocket socket;
  };

  ZmqContext context = make_zmq_context();
  std::map<std::uint64_t, Engine> engines;
};

KvEventReader::KvEventReader(Inbox& inbox, OnMessage on_message)
    : inbox_(inbox),
      link_(std::make_shared<Link>(std::move(on_message))),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {
  ORRERY_ASSERT(wakeup_.valid(), "the process has descriptors left");
}

KvEventReader::~KvEventReader() {
  {
    const std::scoped_lock lock(mutex_);
    phase_ = Phase::kEnding;
  }
  wake();
  thread_.join();
}

void KvEventReader::wake() {
  const std::uint64_t one = 1;
  // Full, it is awake already.
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof one);
}

void KvEventReader::follow(Engines engines) {
  link_->followed = engines;
  {
    const std::scoped_lock lock(mutex_);
    wanted_ = std::move(engines);
  }
  wake();
}

/// Connects to what is wanted and leaves the others; returns false at the end.
bool KvEventReader::take_changes(Sockets& sockets) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wakeup_.get(), &count, sizeof count);
  Engines wanted;
  {
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::kEnding) return false;
    wanted = wanted_;
  }
  std::erase_if(sockets.engines, [&](const auto& each) {
    const auto found = wanted.find(each.first);
    return found == wanted.end() || found->second != each.second.address;
  });
  for (const auto& [engine, address] : wanted) {
    if (sockets.engines.contains(engine)) continue;
    Result<ZmqSocket> socket = make_zmq_socket(sockets.context, ZMQ_SUB, kUnreadMax);
    if (!socket) {
      post(engine, forward_error(socket));
      continue;
    }
    zmq_setsockopt(socket->get(), ZMQ_SUBSCRIBE, "", 0);
    if (zmq_connect(socket->get(), ("tcp://" + address).c_str()) != 0) {
      post(engine, environment_error(
                       fmt::format("cannot connect to \"{}\": {}", address, last_zmq_error())));
    }
    sockets.engines.emplace(engine, Sockets::Engine{address, *std::move(socket)});
  }
  return true;
}

void KvEventReader::run() {
  Sockets sockets;
  while (take_changes(sockets)) {
    const bool behind = link_->posted >= kPostedMax;
    std::vector<zmq_pollitem_t> items{{nullptr, wakeup_.get(), ZMQ_POLLIN, 0}};
    for (const auto& [engine, each] : sockets.engines) {
      if (!behind) items.push_back({each.socket.get(), 0, ZMQ_POLLIN, 0});
    }
    zmq_poll(items.data(), static_cast<int>(items.size()), behind ? kPauseMs : -1);
    std::size_t at = 1;
    for (const auto& [engine, each] : sockets.engines) {
      if (behind) break;
      if (items[at++].revents != 0) read_all(engine, each.socket.get());
    }
  }
}

/// Reads what an engine has sent, as far as the loop takes it.
void KvEventReader::read_all(std::uint64_t engine, void* socket) {
  while (link_->posted < kPostedMax) {
    std::array<ZmqFrame, 3> frames;
    if (!frames[0].receive(socket)) return;
    std::size_t count = 1;
    bool more = frames[0].more();
    for (; more; ++count) {
      ZmqFrame surplus;
      ZmqFrame& next = count < frames.size() ? frames[count] : surplus;
      more = next.receive(socket) && next.more();
    }
    post(engine, message_of(frames, count));
  }
}

void KvEventReader::post(std::uint64_t engine, Result<KvEventMessage> message) {
  ++link_->posted;
  auto held = std::make_shared<const Result<KvEventMessage>>(std::move(message));
  inbox_.post([weak = std::weak_ptr(link_), engine, held = std::move(held)] {
    const auto link = weak.lock();
    if (!link) return;
    --link->posted;
    if (link->followed.contains(engine)) link->on_message(engine, *held);
  });
}

}  // namespace orrery
