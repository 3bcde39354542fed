// node/attempts/node_attempt.hpp - one attempt on this node, from its order to its end: the
// prologue, the ranks with their keeper, the epilogue.
//
// Owned by NodeAttempts, used on the loop.
// Invariant: an attempt is reported gone only when none of its ranks and hooks runs any more: what
// is reported gone is free for others, so it is clean before. Its keeper may live on, until its
// release.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/agent.hpp"
#include "node/attempts/attempt_hooks.hpp"
#include "node/attempts/attempt_logs.hpp"
#include "node/exec/command_relay.hpp"

namespace orrery {

/// What an attempt reports to the node that it runs on.
class AttemptEvents {
 public:
  virtual ~AttemptEvents() = default;
  /// Makes the attempt's directories and its launch file.
  [[nodiscard]] virtual Status prepare(const AttemptId& id, const KeeperLaunch& launch) = 0;
  /// Puts the clocks that the devices run at into a report.
  virtual void add_clocks(AttemptReport& report) const = 0;
  /// The report has changed.
  virtual void on_report(const AttemptReport& report) = 0;
  virtual void on_prologue_passed() = 0;
  virtual void on_hook_failed(const std::string& evidence) = 0;
  /// Its ranks claim that the node is at fault; once.
  virtual void on_claim(const AttemptId& id, const std::string& evidence) = 0;
  /// Its keeper has ended, having lived.
  virtual void on_keeper_end(const AttemptId& id) = 0;
  /// Its keeper never came to life; on_over() follows.
  virtual void on_unstarted(const AttemptReport& report) = 0;
  /// Nothing of it is left; the last call, which may destroy the attempt. `unreported`: its last
  /// report, where on_report() has not had it.
  virtual void on_over(AttemptId id, const std::optional<AttemptReport>& unreported) = 0;
};

class NodeAttempt final : public KeeperEvents {
 public:
  using MakeKeeper =
      std::function<std::unique_ptr<KeeperHandle>(KeeperEvents&, const AttemptId&, KeeperFiles)>;
  /// What an attempt uses, all borrowed.
  struct Setup {
    RealEnv& real;
    ControllerSession& session;
    CommandRelay& commands;
    const AttemptHooks::Setup& hooks;
    const MakeKeeper& make_keeper;
  };

  NodeAttempt(const Setup& setup, AttemptEvents& events, const AttemptId& id,
              const KeeperFiles& files);
  NodeAttempt(const NodeAttempt&) = delete;
  NodeAttempt& operator=(const NodeAttempt&) = delete;

  // One of these three is called, once. start() and refuse() follow note_order(), and may call
  // on_over().
  /// Starts the keeper, after the prologue. Where it does not start, the epilogue runs all the
  /// same.
  void start(const KeeperLaunch& launch);
  /// Ends the attempt, which the node does not run.
  void refuse(AttemptEnd end) { end_unstarted(std::move(end), Epilogue::kNone); }
  /// Takes over a keeper that lives. `launch`: what it was started with; none: it is not known.
  void adopt(const std::optional<KeeperLaunch>& launch);

  /// Notes the order that starts it, for reports of before the keeper's first.
  void note_order(const FenceToken& token, const OrderStamp& stamp);
  /// Passes an order to the keeper; `gangs`: those of a launch with a newer epoch. An order to end
  /// ranks that have not begun ends in on_over().
  void carry_out(const KeeperOrder& order, const std::vector<GangLayout>& gangs);
  void ask(const AskedLog& asked) { logs_.ask(asked); }
  /// Corrects the report after clocks of devices have changed. Returns whether it changed.
  [[nodiscard]] bool correct_clocks();
  /// Sends the notes again, on a new stream.
  void send_notes();
  /// Kills what runs, whatever the controller has ordered.
  void kill();
  /// Lets the keeper end.
  void release();

  [[nodiscard]] const AttemptReport& report() const { return report_; }
  /// Returns the keeper, which may not have started yet; nullptr: it has ended, or did not start.
  [[nodiscard]] KeeperHandle* living_keeper() { return over_ ? nullptr : keeper_.get(); }

  void on_status(const AttemptId& id, const KeeperStatus& status) override;
  void on_paces(const AttemptId& id, const RankPaces& paces) override;
  void on_wrong(const AttemptId& id, const WrongResults& wrong) override;
  void on_tail(const AttemptId& id, const LogTail& tail) override;
  void on_command_output(const ExecOutput& output) override;
  void on_command_end(const ExecEnd& end) override;
  void on_break(const AttemptId& id) override;
  void on_over(const AttemptId& id, const std::string& failure) override;

 private:
  /// Whether an attempt without ranks has used the node, so that its epilogue runs.
  enum class Epilogue : std::uint8_t { kNone, kDue };

  void start_keeper(const KeeperLaunch& launch);
  void end_prologue(const std::string& failure);
  [[nodiscard]] bool begin_epilogue();
  void end_epilogue(const std::string& failure);
  void end_unstarted(AttemptEnd end, Epilogue epilogue);
  void finish(const std::optional<AttemptReport>& unreported);
  void note(AttemptNotes notes);

  AttemptEvents& events_;
  ControllerSession& session_;
  CommandRelay& commands_;
  AttemptId id_;
  std::unique_ptr<KeeperHandle> keeper_;
  AttemptLogs logs_;
  AttemptHooks hooks_;
  AttemptReport report_;                ///< the newest one
  AttemptNotes notes_;                  ///< as sent; of no attempt: there are none
  std::optional<KeeperLaunch> launch_;  ///< until its prologue is done
  bool over_ = false;                   ///< no process of its keeper or ranks is left, or will be
  bool claimed_ = false;                ///< whether its ranks have claimed a fault of the node
};

}  // namespace orrery
