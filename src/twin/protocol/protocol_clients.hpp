// twin/protocol/protocol_clients.hpp - the clients of a protocol world: each repeats its request
// until it is answered.
//
// Owned by the ProtocolWorld. One thread. Cost: O(submissions) a durable submission and a check.
// It checks what clients were promised: a job that was acknowledged exists, once, and ends once; a
// job whose cancellation was acknowledged does not go on.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "executor/control_host.hpp"
#include "twin/nodes/protocol_processes.hpp"
#include "twin/protocol/protocol_context.hpp"
#include "twin/protocol/protocol_disk.hpp"

namespace orrery {

class ProtocolClients {
 public:
  struct Outside {
    std::function<const State*()> state;  ///< of the living controller; nullptr: there is none
    std::function<void(const Input&, ControlHost::Answered)> request;
    std::function<void(JobId, const ProtocolJob&)> made;  ///< a job is durable
  };

  /// The context and the disk must outlive it.
  ProtocolClients(ProtocolContext& context, const ProtocolDisk& disk, Outside outside)
      : context_(context), disk_(disk), outside_(std::move(outside)) {}
  ProtocolClients(const ProtocolClients&) = delete;
  ProtocolClients& operator=(const ProtocolClients&) = delete;

  void submit(const ProtocolJob& job);
  /// Cancels the n-th submission.
  void cancel(std::size_t n);
  [[nodiscard]] std::size_t submissions() const { return clients_.size(); }

  void note_durable(std::span<const Event> events);
  /// The promise that the state breaks; empty: none.
  [[nodiscard]] std::string broken_promise(const State& state) const;
  /// Whether every job has ended.
  [[nodiscard]] bool all_ended(const State& state) const;

 private:
  struct Client {
    ProtocolJob job;
    std::optional<JobId> made;  ///< job that control made of it, durable
    bool answered = false;
    bool cancels = false;
    bool cancelled = false;  ///< the client knows of the cancellation
  };

  void ask_submit(std::size_t n);
  void ask_cancel(std::size_t n);
  void refuse_or_submit(std::size_t n);
  /// Precondition: the state knows the job's tenant.
  [[nodiscard]] Submission submission_of(std::size_t n, const State& state) const;
  /// The durable end of a job; kHeld: it has not ended.
  [[nodiscard]] JobPhase end_of(JobId job) const;

  ProtocolContext& context_;
  const ProtocolDisk& disk_;
  Outside outside_;
  std::vector<Client> clients_;
  std::vector<JobPhase> ends_;  ///< by job
};

}  // namespace orrery
