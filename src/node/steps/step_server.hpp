// node/steps/step_server.hpp - the process that holds a node for a script made for Slurm: it runs
// the script on the first node of the gang, and on every node starts what srun asks for.
//
// Built by main() of orrery-srun, which the keeper starts as the one process of the job on the
// node; lives until the script has ended. So processes of a step are the keeper's like any rank:
// their end, limits and logs are those of the job, and agent and controller know nothing of steps.
// A connection whose ends have proved to each other that they know the attempt's secret
// (step_secret.hpp) brings one step's part for this node: when it closes, its remaining tasks are
// killed. Nothing is encrypted; a reader of the network between the nodes sees the tasks' input and
// output, but can start nothing. Precondition of run(): SIGCHLD, SIGTERM and SIGINT are blocked,
// SIGPIPE is ignored, one thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/descriptor_watch.hpp"
#include "base/system/real_env.hpp"
#include "node/launch/process_environment.hpp"
#include "node/steps/step_gang.hpp"
#include "node/steps/step_task.hpp"
#include "node/steps/step_wire.hpp"

namespace orrery {

struct StepServerSettings {
  StepGang gang;
  Variables environment;                      ///< of this process
  std::string tools;                          ///< directory of srun and scontrol for the job
  std::vector<std::string> script;            ///< its path and arguments
  std::string directory;                      ///< where it begins
  Duration patience = Duration::seconds(60);  ///< for other nodes, before a message says that it
                                              ///< waits
};

class StepServer final : public ListenerEvents {
 public:
  /// Errors: it cannot listen at the node's port, no descriptors.
  [[nodiscard]] static Result<std::unique_ptr<StepServer>> open(RealEnv& real,
                                                                StepServerSettings settings);
  StepServer(RealEnv& real, StepServerSettings settings);
  StepServer(const StepServer&) = delete;
  StepServer& operator=(const StepServer&) = delete;
  ~StepServer() override;

  /// Runs until the script has ended, here or on the first node, and all nodes know; or, after
  /// SIGTERM, which is passed on to the script's process group and the tasks here, until none of
  /// these is left and their sruns know. Returns the exit status of the script (128 + a signal),
  /// elsewhere 0, or 128 + the signal that came before the script's end was reported.
  [[nodiscard]] int run();

  /// Returns the port where it listens, which its tasks are given.
  [[nodiscard]] std::string port() const {
    return variable_of(settings_.environment, "ORRERY_STEP_PORT");
  }

  void on_accept(const Accepted& accepted) override;
  void on_frame(ConnectionId connection, std::string_view frame) override;
  void on_close(ConnectionId connection, const Closed& closed) override;

 private:
  struct Session;
  class Attendance;

  void on_signals(std::string_view signals);
  void end_all(int number);
  void reap();
  void script_ended(int status);
  void task_ended(Session& session, pid_t process, int status);
  void finish_if_over();
  [[nodiscard]] bool all_attend() const;

  void answer(Session& session, const StepProof& proof);
  void answer(Session& session, StepOrder order);
  void answer(Session& session, const StepInput& input);
  void answer(Session& session, const StepSignal& signal);
  void answer(Session& session, const StepTaken& taken);
  void answer(Session& session, const StepAttend& attend);
  void start_task(Session& session, std::uint32_t local);
  [[nodiscard]] std::vector<std::string> take_devices(std::size_t count);
  void give_back(const std::vector<std::string>& devices);
  void wrote(Session& session, StepOutput output);
  void say(Session& session, const StepReply& reply);
  void drop(ConnectionId connection);

  RealEnv& real_;
  StepServerSettings settings_;
  std::unique_ptr<DescriptorWatch> signals_;
  std::map<ConnectionId, std::unique_ptr<Session>> sessions_;
  std::vector<std::unique_ptr<Session>> leaving_;    ///< closed, with tasks that are not reaped
  std::unique_ptr<Attendance> attendance_;           ///< none on the first node
  std::map<std::string, std::uint32_t> device_use_;  ///< tasks on each
  std::optional<int> told_to_end_;                   ///< the signal, once one has come
  pid_t script_group_ = -1;                          ///< -1: no process is left in it
  std::optional<int> script_status_;
  std::optional<int> done_;  ///< exit status, once it is done
};

}  // namespace orrery
