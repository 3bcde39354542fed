// twin/replicas/virtual_commits.hpp - commits the log of a leader in virtual time, with the queue
// and the writer of store/group_commit.hpp.
//
// Made by the leader's LiveLog through LiveLog::Options::make_commits. A write has its effect in
// the midst of the time that it takes, whatever becomes of the process meanwhile; the answer waits
// while the process is paused. One thread. Cost: that of the store.
#pragma once

#include <memory>
#include <optional>

#include "store/commit/commit_writer.hpp"
#include "twin/replicas/virtual_store.hpp"

namespace orrery {

class VirtualCommits final : public LogCommits {
 public:
  VirtualCommits(ReplicaProcess& process, CommitOptions options);
  /// A write that is under way may still have its effect.
  ~VirtualCommits() override;
  VirtualCommits(const VirtualCommits&) = delete;
  VirtualCommits& operator=(const VirtualCommits&) = delete;

  std::uint64_t submit(std::string_view bytes, std::uint64_t next_job) override;
  void put_texts(StoreTexts texts) override;
  /// Not for this world: no call of it waits.
  [[nodiscard]] StorageStatus put_texts_now(StoreTexts texts) override;
  void put_archived(std::vector<ArchivedJob> jobs) override;
  void put_snapshot(std::string bytes) override;
  void compact(std::string bytes, Compacted done) override;
  [[nodiscard]] std::size_t waiting_bytes() const override { return queue_.waiting_bytes(); }

 private:
  /// Begins the next write, or waits until a beat is due.
  void go_on();
  void begin_write();
  void answer(const StorageStatus& status);
  [[nodiscard]] Duration draw_time();
  void after(Duration delay, void (VirtualCommits::*then)());

  ReplicaProcess& process_;
  Env env_;
  CommitWriter writer_;
  CommitQueue queue_;
  std::optional<CommitWork> work_;  ///< being written, or about to be again
  Instant began_;                   ///< its first try
  bool again_ = false;              ///< it is not the first try
  bool under_way_ = false;          ///< a request has not had its effect yet
  bool failed_ = false;
  std::optional<TimerId> timer_;  ///< of the next beat, or try
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
};

}  // namespace orrery
