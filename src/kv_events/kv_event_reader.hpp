// kv_events/kv_event_reader.hpp - reads the KV events of many engines and hands them to a loop.
//
// Made on the loop, which outlives it; used there. Connections, and messages as they come, are
// dealt with on a thread of its own, which posts what it read to the loop. An engine that cannot be
// reached is tried again for ever. Where the loop is behind, messages stay in the library, at most
// kUnreadMax of an engine; further ones are lost, which their numbers show.
// Invariant: on_message is called on the loop alone, in the order of an engine's messages, for
// engines that are followed, and never after the reader's end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"
#include "kv_events/kv_event.hpp"
#include "kv_events/zmq_socket.hpp"

namespace orrery {

struct KvEventMessage {
  std::uint64_t number = 0;  ///< one more than that of the engine's message before
  KvEventBatch batch;
};

class KvEventReader {
 public:
  static constexpr int kUnreadMax = 10'000;
  /// Addresses, "HOST:PORT", by the number by which on_message names an engine.
  using Engines = std::map<std::uint64_t, std::string>;
  /// An error: a message that cannot be read, or an address that cannot be connected to.
  using OnMessage = std::function<void(std::uint64_t engine, const Result<KvEventMessage>&)>;

  KvEventReader(Inbox& inbox, OnMessage on_message);
  KvEventReader(const KvEventReader&) = delete;
  KvEventReader& operator=(const KvEventReader&) = delete;
  ~KvEventReader();

  /// Follows these engines from now on, and no others. One with another address is another engine.
  void follow(Engines engines);

 private:
  struct Link;
  struct Sockets;

  void run();
  [[nodiscard]] bool take_changes(Sockets& sockets);
  void read_all(std::uint64_t engine, void* socket);
  void post(std::uint64_t engine, Result<KvEventMessage> message);
  void wake();

  Inbox& inbox_;
  std::shared_ptr<Link> link_;
  FileDescriptor wakeup_;  ///< an eventfd
  std::mutex mutex_;
  Engines wanted_;  ///< guarded by mutex_, as ending_ is
  enum class Phase : std::uint8_t { kRuns, kEnding } phase_ = Phase::kRuns;
  std::thread thread_;
};

}  // namespace orrery
