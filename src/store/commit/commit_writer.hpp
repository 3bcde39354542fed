// store/commit/commit_writer.hpp - writes what was submitted to the store, decides whether the
// store is asked again, and reports the results to the loop.
//
// Owned by an implementation of LogCommits, which calls it where it commits: one work at a time. A
// store that gives no answer is asked again until it does. Any other failure is final: nothing
// after it is written, and the loop, which has sent nothing that depends on what was not durable,
// ends. Cost: that of the store.
#pragma once

#include "store/commit/commit_queue.hpp"

namespace orrery {

class CommitWriter {
 public:
  explicit CommitWriter(CommitOptions options)
      : options_(std::move(options)), traits_(options_.store.traits()) {}

  [[nodiscard]] const CommitOptions& options() const { return options_; }
  [[nodiscard]] const StoreTraits& traits() const { return traits_; }

  /// Asks the store once.
  [[nodiscard]] StorageStatus write(CommitWork& work);
  /// Reports what the store answered to a write whose first try began then: a later try succeeds
  /// although it writes nothing, where an earlier one was done and its answer was lost. Returns
  /// whether that was its answer: otherwise it is asked again.
  [[nodiscard]] bool note(const CommitWork& work, Instant began, const StorageStatus& status);
  /// Reports the result of the work. Returns whether nothing may be written after it.
  [[nodiscard]] bool finish(const CommitWork& work, const StorageStatus& status) const;

 private:
  [[nodiscard]] bool waits_for(const CommitWork& work, const StorageError& error) const;
  [[nodiscard]] StorageStatus commit(const CommitWork& work);
  [[nodiscard]] StorageStatus write_snapshot(CommitWork& work);
  [[nodiscard]] static bool is_final(const CommitWork& work, const StorageStatus& status);

  CommitOptions options_;
  StoreTraits traits_;
  bool silent_ = false;  ///< the store gives no answer, or has no space
};

}  // namespace orrery
