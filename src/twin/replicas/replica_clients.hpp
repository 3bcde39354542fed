// twin/replicas/replica_clients.hpp - the clients of several controllers: each repeats its request
// until some controller answers; a reader asks every controller that says it leads.
//
// Owned by the ReplicaWorld. Requests and answers may be lost or come twice. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "twin/replicas/replica.hpp"

namespace orrery {

class ReplicaClients {
 public:
  /// All three outlive it.
  ReplicaClients(ProtocolContext& context, ReplicaPromises& promises,
                 const std::vector<std::unique_ptr<Replica>>& replicas)
      : context_(context), promises_(promises), replicas_(replicas) {}
  ReplicaClients(const ReplicaClients&) = delete;
  ReplicaClients& operator=(const ReplicaClients&) = delete;

  /// Submits a job of so many accelerators.
  void submit(std::uint32_t accelerators);
  /// Cancels a random job that was acknowledged.
  void cancel();
  /// Asks every controller for the number of jobs.
  void read();

  [[nodiscard]] bool all_answered() const { return answered_ == requests_.size(); }
  [[nodiscard]] std::size_t submissions() const { return requests_.size(); }
  [[nodiscard]] std::uint64_t reads() const { return reads_; }

 private:
  struct Request {
    std::string name;
    std::string text;
    std::optional<JobId> job;  ///< answered
  };

  void ask(std::size_t n);
  void answer(std::size_t n, Replica& from, const Result<std::vector<JobId>>& jobs);
  [[nodiscard]] Replica& draw_replica();

  ProtocolContext& context_;
  ReplicaPromises& promises_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  std::vector<Request> requests_;
  std::size_t answered_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace orrery
