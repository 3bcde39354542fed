// executor/log/live_log_test.hpp - a live host with a log in memory.
#pragma once

#include <memory>
#include <vector>

#include "base/system/real_env.hpp"
#include "executor/live/live_host_test.hpp"
#include "executor/log/live_log.hpp"
#include "store/memory/memory_store.hpp"

namespace orrery {

class LiveLogFixture : public LiveHostFixture {
 protected:
  void make_log() {
    LiveLog::Options options{.claim = {store_, store_.claim().value(), {}},
                             .state = host_->state(),
                             .settings = settings_,
                             .commit_times = times_,
                             .history = history_};
    options.writer = std::make_unique<HistoryWriter>(HistoryWriterOptions{});
    options.durable = [this](std::uint64_t input) { durable_.push_back(input); };
    options.failed = [](const Error& error) { FAIL() << error.text(); };
    options.archive_put = [this](const StorageStatus& put) { puts_.push_back(put); };
    log_ = std::make_unique<LiveLog>(real_->env(), Log(sink_), std::move(options));
  }

  CollectedLog sink_;
  ControllerSettings settings_;
  TimeHistogram times_{{1}};
  RecoveredHistory history_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  MemoryDisk disk_;
  MemoryStore store_{disk_};
  std::vector<std::uint64_t> durable_;  ///< inputs that were named durable
  std::vector<StorageStatus> puts_;     ///< results of put_archived()
  std::unique_ptr<LiveLog> log_;
};

}  // namespace orrery
