// twin/protocol/protocol_context.hpp - what all parts of a protocol world share: its time, its
// random numbers, the network between them, its trace, and the first promise that was broken.
//
// Owned by the ProtocolWorld. All random draws of the world come from one stream, so that a seed
// and the calls of its user decide everything. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/numbers/rng.hpp"
#include "twin/holds/manager_rules.hpp"
#include "twin/world/virtual_time.hpp"

namespace orrery {

/// How unreliable messages between the controller and agents or clients are.
struct NetworkRules {
  double loss = 0;      ///< of a message
  double doubling = 0;  ///< share of messages that arrive twice
  Duration delay_max = Duration::milliseconds(2);
  double stray = 0;  ///< share of messages that take up to 30 s
};

/// How slow the disk of the log is.
struct DiskRules {
  double slow_write = 0;  ///< share of writes that take up to `write_max`
  Duration write_max = Duration::seconds(20);
};

/// How unreliable the world is, the periods of its agents, and its policy.
struct ProtocolRules {
  NetworkRules network;
  DiskRules disk;
  double crash = 0;         ///< of the controller, at each point that an input passes
  double ignores_term = 0;  ///< share of processes that only SIGKILL ends
  std::int32_t drift = 0;   ///< of clocks, at most, in 1/10000 in both directions
  Duration beat = Duration::seconds(5);
  Duration lease = Duration::minutes(1);  ///< of jobs that restart after its end
  std::string policy = "fifo";
  bool power_limited = false;
  std::optional<ManagerRules>
      manager;  ///< lends some of the nodes; none: all are the cluster's own
};

class ProtocolContext {
 public:
  using Trace = std::function<void(Instant, const std::string&)>;

  ProtocolContext(ProtocolRules rules, std::uint64_t seed, Trace trace);
  ProtocolContext(const ProtocolContext&) = delete;
  ProtocolContext& operator=(const ProtocolContext&) = delete;

  [[nodiscard]] VirtualTime& time() { return time_; }
  [[nodiscard]] Instant now() const { return time_.now(); }
  [[nodiscard]] Rng& rng() { return rng_; }
  [[nodiscard]] const ProtocolRules& rules() const { return rules_; }
  /// Makes the network, the disk and the controller reliable from now on.
  void make_reliable();
  /// Draws whether something of this probability happens.
  [[nodiscard]] bool chance(double share) { return rng_.uniform() < share; }
  /// Delivers a message after a random delay, not at all, or twice, as NetworkRules says.
  void transmit(const VirtualTime::Event& deliver);

  [[nodiscard]] bool traces() const { return trace_ != nullptr; }
  /// Adds a line to the trace, if there is one.
  void note(const std::string& what);
  /// Records that a promise is broken; only the first one is kept.
  void wrong(const std::string& what);
  /// The first promise that was broken; empty: none.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  [[nodiscard]] Duration delay();

  ProtocolRules rules_;
  Rng rng_;
  Trace trace_;
  VirtualTime time_;
  std::string failure_;
};

}  // namespace orrery
