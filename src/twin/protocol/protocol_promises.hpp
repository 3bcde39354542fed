// twin/protocol/protocol_promises.hpp - the promises that control must keep after every input and
// every restart.
//
// Owned by the ProtocolWorld. One thread. Cost: O(jobs + nodes) an input.
// It checks that the invariants of the state hold, that clients get what was acknowledged, that a
// restart finds the state that was durable, and, where the policy holds quotas, that tenants have
// what they were promised.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/state/state.hpp"
#include "twin/protocol/protocol_clients.hpp"
#include "twin/protocol/protocol_context.hpp"
#include "twin/protocol/protocol_tenants.hpp"

namespace orrery {

/// The deciding part of the state: a line for each job and each node, and one for ghosts.
[[nodiscard]] std::vector<std::string> picture_of(const State& state);

class ProtocolPromises {
 public:
  /// Both must outlive it.
  ProtocolPromises(ProtocolContext& context, const ProtocolClients& clients)
      : context_(context), clients_(clients) {}

  /// The controller dies. `durable`: its state, if all of it is; nullptr: some of it is lost.
  void crash(const State* durable);
  /// Another controller begins with the state.
  void begin(const State& state);
  /// Events were applied.
  void note(std::span<const Event> events);
  /// An input was handled.
  void check(const State& state);

 private:
  /// Traces the lines of the picture that have changed.
  void show_changes(const State& state);

  ProtocolContext& context_;
  const ProtocolClients& clients_;
  std::optional<TenantAccounts> accounts_;            ///< set if the policy holds quotas
  std::optional<std::vector<std::string>> expected_;  ///< picture that a restart must find
  std::vector<std::string> shown_;
};

}  // namespace orrery
