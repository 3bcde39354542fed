// node/health/hook_process.hpp - a program of the operator's that runs beside the agent: a
// prologue, an epilogue, a check of the node's health.
//
// Owned by the object that started it, on the loop. It runs in a session of its own, which is
// killed as a whole when the program ends, when its time is over, and with this object. Cost: a
// process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/real_env.hpp"

namespace orrery {

struct HookStart {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> variables;  ///< beside the agent's own
  Duration timeout;
};

class HookProcess final : public ReadyHandler {
 public:
  /// Receives how the program ended: empty for exit status 0; else what happened, and the end of
  /// its output.
  using Ended = std::function<void(const std::string& failure)>;

  /// `ended` is called once, later, on the loop, as the last use of this object; a program that
  /// cannot be started counts as ended, too.
  HookProcess(RealEnv& real, const HookStart& start, Ended ended);
  HookProcess(const HookProcess&) = delete;
  HookProcess& operator=(const HookProcess&) = delete;
  ~HookProcess() override;

  void on_ready(std::uint32_t events) override;

 private:
  [[nodiscard]] std::string start(const HookStart& start);
  void unwatch(WatchId& watch);
  void end_later(Duration delay, std::string failure);
  void kill_late(const Duration& timeout);
  void end(const std::string& failure);
  void read_output();
  void kill_group();

  RealEnv& real_;
  Ended ended_;
  pid_t child_ = 0;  ///< not yet reaped; 0: none
  FileDescriptor output_;
  FileDescriptor process_;
  WatchId output_watch_ = WatchId::kNone;
  WatchId process_watch_ = WatchId::kNone;
  std::optional<TimerId> timer_;
  std::string late_;  ///< message once its time is over and it was killed
  std::string tail_;  ///< end of its output
};

}  // namespace orrery
