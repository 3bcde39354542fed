// node/step_server.hpp - what holds a node for a script made for Slurm: runs the script where it is
// the first of the gang, and everywhere starts what srun asks for.
//
// Built by main() of orrery-srun, which the keeper starts as the one process of the job on the
// node; lives until the script has ended. So what a step starts is the keeper's as any rank is: its
// end, limits and logs are those of the job, and agent and controller know nothing of steps. A
// connection whose ends have shown each other the attempt's secret (step_secret.hpp) brings one
// step's part for this node: when it closes, what is left of its tasks is killed. Nothing is
// encrypted; who reads the network between the nodes reads what tasks read and write, but can start
// nothing. Precondition of run(): SIGCHLD, SIGTERM and SIGINT are blocked, SIGPIPE is ignored, one
// thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/real_env.hpp"
#include "node/descriptor_watch.hpp"
#include "node/process_environment.hpp"
#include "node/step_gang.hpp"
#include "node/step_task.hpp"
#include "node/step_wire.hpp"

namespace orrery {

struct StepServerSettings {
  StepGang gang;
  Variables environment;                      ///< of this process
  std::string tools;                          ///< directory of srun and scontrol for the job
  std::vector<std::string> script;            ///< its path and arguments
  std::string directory;                      ///< where it begins
  Duration patience = Duration::seconds(60);  ///< for other nodes, before it says that it waits
};

class StepServer final : public ListenerEvents {
 public:
  /// Errors: nobody can be listened to at the node's port, no descriptors.
  [[nodiscard]] static Result<std::unique_ptr<StepServer>> open(RealEnv& real,
                                                                StepServerSettings settings);
  StepServer(RealEnv& real, StepServerSettings settings);
  StepServer(const StepServer&) = delete;
  StepServer& operator=(const StepServer&) = delete;
  ~StepServer() override;

  /// Until the script has ended, here or on the first node, and all nodes know; or, after SIGTERM,
  /// until nobody is left of the script's process group and of the tasks here, who were passed it,
  /// and their sruns know.
  /// Returns the exit status of the script (128 + a signal), elsewhere 0, or 128 + the signal that
  /// came before the script's end was heard of.
  [[nodiscard]] int run();

  /// Where it is listening: what its tasks are told.
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
  std::optional<int> told_to_end_;                   ///< by this signal
  pid_t script_group_ = -1;                          ///< none: nobody is left in it
  std::optional<int> script_status_;
  std::optional<int> done_;  ///< with this status
};

}  // namespace orrery
