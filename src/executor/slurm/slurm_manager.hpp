// executor/slurm/slurm_manager.hpp - a Slurm that lends nodes, over its programs sbatch, squeue,
// scontrol and scancel.
//
// Built by the daemon, on its loop; `real` outlives it. Programs run beside the loop, one at a
// time, for at most SlurmSetup::timeout; they get neither the daemon's SLURM_ variables nor others
// than those that find and name the user's things.
// A hold is a job without end of one agent a node (pilot_script.hpp); it is known by its name and
// comment (slurm_names.hpp). It waits while another of its name runs (-d singleton), loses a node
// that fails and keeps the others (--no-kill), and is not started again (--no-requeue).
// Only jobs of the daemon's own user can be holds: another user may give a job any name. Jobs of
// others are asked for, in the same run of squeue, only where a list is to have their work.
// What Slurm gives a job of whole nodes is all of their processors. GPUs (--gres) and all of the
// memory (--mem=0) are asked for in SlurmSetup::sbatch_options, where a site limits jobs to what
// they ask for.
// Cost: a process of about 5 ms for each order, two for a list; one list reads all nodes and the
// jobs of one user, or of all users where it is to have the work of others.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/managers/resource_manager.hpp"
#include "executor/slurm/pilot_script.hpp"
#include "executor/slurm/slurm_command.hpp"
#include "executor/slurm/squeue_list.hpp"

namespace orrery {

struct SlurmSetup {
  std::uint64_t cluster = 0;  ///< number of this cluster, in the names of its holds
  std::string slurm_conf;     ///< path of slurm.conf; empty: Slurm finds its own
  std::string partition;      ///< empty: Slurm's default, as for the next three
  std::string account;
  std::string qos;
  std::string reservation;
  std::vector<std::string> sbatch_options;  ///< further ones; those of a hold take precedence
  PilotAgent agent;
  std::string log_file = "/dev/null";  ///< of a hold's agents, a pattern of sbatch, on the nodes
  std::string programs;                ///< directory of Slurm's programs; empty: PATH
  Duration timeout = Duration::seconds(20);
};

class SlurmManager final : public ResourceManager {
 public:
  SlurmManager(RealEnv& real, SlurmSetup setup, Reported reported);
  SlurmManager(const SlurmManager&) = delete;
  SlurmManager& operator=(const SlurmManager&) = delete;
  ~SlurmManager() override;

  /// An order that waits behind others is merged with a newer one that asks for the same: both have
  /// one answer. Of the orders for lists the first one waits where it is, and a newer one joins
  /// the last one, if there are two; the work of others is listed if either asked for it.
  void carry_out(const ManagerOrder& order) override;

 private:
  /// A list in progress.
  struct List {
    std::string separator;
    Instant now_wall;
    SqueueList jobs;
  };

  [[nodiscard]] bool join_list(ManagerOrder order);
  void next();
  void start(const EnsureHold& ensure);
  void start(const ReleaseHold& release);
  void start(const ListHolds& list);
  void judge_ends(ManagerListing listing);
  void list_nodes();
  void run(std::vector<std::string> words, std::string input, SlurmCommand::Ended ended);
  /// The order in progress is done.
  void done(std::optional<ManagerReport> report);
  void answer(HoldAnswer answer);
  void answer(ManagerListing listing);

  RealEnv& real_;
  SlurmSetup setup_;
  Reported reported_;
  std::deque<ManagerOrder> waiting_;
  std::optional<ManagerOrder> order_;  ///< in progress
  List list_;
  /// Whether Slurm ends all processes of a job, also those that left its session; none: not known
  /// yet.
  std::optional<bool> tracks_all_;
  std::unique_ptr<SlurmCommand> command_;
  std::optional<TimerId> later_;  ///< of an answer that needs no program
};

}  // namespace orrery
