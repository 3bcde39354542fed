// node/steps/step_client.hpp - srun: starts the tasks of a step on nodes of the script's gang,
// passes their input and output on, and ends as they do.
//
// Built by main() of orrery-srun; lives for one step. Each node has a connection of its own (see
// node/steps/step_server.hpp); losing one ends the step, because its tasks are killed then. A node
// that is not up yet is waited for: if it never comes this is found out elsewhere, and ends the
// job. Precondition: the signals of kForwarded are blocked, SIGPIPE is ignored, one thread.
#pragma once

#include <csignal>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/descriptor_watch.hpp"
#include "base/system/real_env.hpp"
#include "node/steps/step_gang.hpp"
#include "node/steps/step_layout.hpp"
#include "node/steps/step_output.hpp"
#include "node/steps/step_wire.hpp"

namespace orrery {

/// Signals of srun that are passed on to the tasks.
inline constexpr std::array<int, 6> kForwarded = {SIGINT,  SIGTERM, SIGHUP,
                                                  SIGQUIT, SIGUSR1, SIGUSR2};

struct StepClientSettings {
  SrunOptions options;
  StepGang gang;
  StepLayout layout;
  Variables environment;  ///< of all tasks
  std::string directory;
  std::string step;                             ///< its number
  Duration patience = Duration::seconds(60);    ///< for nodes that are not up yet, before a message
                                                ///< says so
  Duration kill_after = Duration::seconds(30);  ///< after tasks were signalled to end
};

class StepClient final : public ConnectionEvents, public ReadyHandler {
 public:
  StepClient(RealEnv& real, StepClientSettings settings);
  StepClient(const StepClient&) = delete;
  StepClient& operator=(const StepClient&) = delete;
  ~StepClient() override;

  /// Runs until all tasks have ended. Returns the highest exit status of a task (128 + a signal),
  /// at least 1 where a node is lost. Errors go to standard error as "srun: error: ..".
  [[nodiscard]] int run();

  void on_frame(ConnectionId connection, std::string_view frame) override;
  void on_close(ConnectionId connection, const Closed& closed) override;
  /// Called when standard input is readable.
  void on_ready(std::uint32_t events) override;

 private:
  struct Node {
    StepPart part;
    std::uint32_t place = 0;  ///< in the step
    ConnectionId connection = ConnectionId::kNone;
    std::uint32_t running = 0;
    enum class Phase : std::uint8_t {
      kConnecting,
      kProving,  ///< the node has to prove itself
      kRuns,
      kOver
    } phase = Phase::kConnecting;
    std::string challenge;  ///< sent by this client to the node
    bool missed = false;    ///< whether its absence was reported
  };

  void connect(Node& node);
  void prove(Node& node, const StepChallenge& asked);
  void order(Node& node, const StepWelcome& welcome);
  void answer(Node& node, const StepOutput& output);
  void answer(Node& node, const StepTaskEnd& end);
  void answer_input_taken();
  /// The step ends with the first output that cannot be written.
  void note_written(const Status& written);
  void on_signals(std::string_view signals);
  void send_signal(int number);
  void end_all();
  void lose(Node& node, const std::string& why);
  void read_input();
  void stop_input();
  void say(Node& node, const StepRequest& request);
  void fail(const std::string& what);
  [[nodiscard]] Node* node_of(ConnectionId connection);
  [[nodiscard]] TaskPlace place_of(const Node& node, std::uint32_t task) const;

  RealEnv& real_;
  StepClientSettings settings_;
  Instant late_;
  StepOutputs outputs_;
  std::vector<Node> nodes_;
  std::unique_ptr<DescriptorWatch> signals_;
  enum class Input : std::uint8_t { kWaits, kWatched, kAtOnce, kOver } input_ = Input::kWaits;
  WatchId input_watch_ = WatchId::kNone;
  std::size_t reading_ = 0;  ///< nodes that have not taken the newest input
  std::uint32_t interrupts_ = 0;
  bool ending_ = false;
  int status_ = 0;
};

}  // namespace orrery
