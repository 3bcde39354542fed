// store/etcd_size/log_survey.hpp - reads how large the values of a log in etcd are, on a thread of
// its own, so that a claim does not wait for it.
//
// Made by a store that has claimed the log; its end ends the thread, and waits for one call of etcd
// at most. Where etcd gives no answer it tries again. Cost: one reading of the batches and texts,
// at 8 MiB/s, so that the first seconds of a leader are not slowed down; parts of large values are
// not read.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "store/etcd_api/etcd_client.hpp"
#include "store/etcd_size/log_sizes.hpp"

namespace orrery {

class LogSurvey {
 public:
  /// `sizes` outlives it.
  LogSurvey(const EtcdLocation& location, LogSizes& sizes);
  LogSurvey(const LogSurvey&) = delete;
  LogSurvey& operator=(const LogSurvey&) = delete;
  ~LogSurvey();

 private:
  enum class Kind : std::uint8_t { kBatches, kSnapshots, kTexts };

  void run();
  /// Reads all values of a kind. Returns false where the survey ends.
  [[nodiscard]] bool read(EtcdClient& client, Kind kind);
  void note(const EtcdClient& client, Kind kind, const etcd::KeyValue& found);
  /// Returns false at the end.
  [[nodiscard]] bool wait(Duration time);

  EtcdLocation location_;
  LogSizes& sizes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  enum class Phase : std::uint8_t { kRuns, kEnding } phase_ = Phase::kRuns;  ///< guarded
  std::thread thread_;
};

}  // namespace orrery
