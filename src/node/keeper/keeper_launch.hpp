// node/keeper/keeper_launch.hpp - what a keeper is started with, and the file that holds it.
//
// The agent writes RUN/launch, then starts `orrery-keeper DIR RUN`; the file is not changed after
// that. DIR, the attempt's directory, has the files that are read later. RUN has the files that end
// with the boot (node/launch/run_directory.hpp) and is short enough for the path of a unix socket;
// it may be DIR.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "node/keeper/rank_log.hpp"
#include "node/keeper/rank_process.hpp"
#include "node/launch/launch_environment.hpp"
#include "node/machine/control_group.hpp"

namespace orrery {

/// Which device files belong to which device of a node.
struct NodeDeviceFiles {
  std::vector<std::vector<DeviceNumber>> own;  ///< by device; fewer than devices: unknown
  std::vector<DeviceNumber> others;            ///< of accelerators that the node does not offer
};

/// Returns the device files that an attempt with these shares is kept from, ascending: those of all
/// accelerators but its own. A file that two devices have in common is denied to neither.
[[nodiscard]] std::vector<DeviceNumber> denied_devices(const NodeDeviceFiles& files,
                                                       const std::vector<RankShare>& shares);

struct KeeperLaunch {
  OrderStamp stamp;
  LaunchRanks ranks;
  LaunchFacts facts;                ///< paths in it are filled in by the keeper
  std::vector<GangLayout> gangs;    ///< of every share
  std::string directory;            ///< working directory of processes; empty: DIR/work
  std::optional<ProcessUser> user;  ///< none: the keeper's own
  LogLimits logs;
  std::uint64_t work_steps = 0;  ///< of the whole job, to report which part is done; 0: unknown
  std::vector<RankNeeds> needs;  ///< of the gangs that need something
  /// Thousandths of a core that a device at full clock stands for, where devices are processors or
  /// only declared; 0: they have a driver, and their clock does not limit CPUs.
  std::uint32_t device_cpu = 0;
  NodeDeviceFiles devices;
  std::uint64_t processes_max =
      0;               ///< of the attempt on this node, threads included; 0: any number
  OutputNames copies;  ///< the keeper replaces %t, %N and %u
};

/// The files DIR/NAME and RUN/NAME of an attempt.
struct KeeperFiles {
  std::string directory;
  std::string run = directory;
  std::string logs = directory;  ///< keepers of before 2026-11-24 made DIR/NAME/logs

  [[nodiscard]] std::string launch() const { return run + "/launch"; }
  [[nodiscard]] std::string lock() const { return run + "/lock"; }
  [[nodiscard]] std::string socket() const { return "unix:" + run + "/socket"; }
  [[nodiscard]] std::string progress() const { return run + "/progress"; }
  /// The keeper's own messages, mostly why it does not start.
  [[nodiscard]] std::string errors() const { return run + "/errors"; }
  /// The members of the attempt: {"epoch": 2, "gangs": [{"gang": 0, "nodes": [{"address": ..,
  /// "ranks": ..}]}]}, replaced in one step with each epoch. A process that goes on in it reports
  /// so in `progress`.
  [[nodiscard]] std::string membership() const { return run + "/membership"; }
  [[nodiscard]] std::string hostfile(std::uint32_t gang) const;
  [[nodiscard]] std::string rankfile(std::uint32_t gang) const;
  /// The script of a job of kSlurm, in a directory that the job's user owns.
  [[nodiscard]] std::string script() const { return directory + "/slurm/script"; }
  /// The secret by which the job's steps know each other; readable by the user alone.
  [[nodiscard]] std::string step_secret() const { return directory + "/slurm/secret"; }
  [[nodiscard]] std::string work() const { return directory + "/work"; }
  /// A directory that the ranks here may fill; it is removed with the attempt's directory.
  [[nodiscard]] std::string scratch() const { return directory + "/scratch"; }
  [[nodiscard]] std::string log(const RankStart& start) const;
  /// Directory of the stacks of ranks that hung.
  [[nodiscard]] std::string stacks() const { return directory + "/stacks"; }
  [[nodiscard]] std::string stack(const RankStart& start) const;
};

/// Returns what is wrong with an order to launch: a share without a layout of its gang, or with
/// different numbers of devices and ranks; empty: nothing.
[[nodiscard]] std::string launch_complaint(const LaunchRanks& ranks,
                                           const std::vector<GangLayout>& gangs);
/// Returns the layout of a gang. Precondition: launch_complaint() was empty.
[[nodiscard]] const GangLayout& layout_of(std::uint32_t gang, const std::vector<GangLayout>& gangs);

/// Returns what the ranks of shares may use together: the sum of what each asked for. Where one
/// rank asked for nothing there is no limit, since it would limit that rank, too. Where device
/// clocks stand for CPUs and one is lowered, its rank gets that part of what it asked for or,
/// without a request, of what its devices stand for.
[[nodiscard]] GroupLimits limits_of(const std::vector<RankShare>& shares,
                                    const KeeperLaunch& launch);

/// Replaces the file in one step.
[[nodiscard]] Status write_keeper_launch(Storage& storage, const KeeperFiles& files,
                                         const KeeperLaunch& launch);
/// Errors name the file: absent, of another version, torn or changed, or with a share whose gang
/// has no layout or without a rank.
[[nodiscard]] Result<KeeperLaunch> read_keeper_launch(Storage& storage, const KeeperFiles& files);

}  // namespace orrery
