// node/keeper_launch.hpp - what a keeper is started with, and the file that holds it.
//
// The agent writes RUN/launch, then starts `orrery-keeper DIR RUN`; nobody changes the file after
// that. DIR, the attempt's directory, has what is looked at later. RUN has what ends with the boot
// (node/run_directory.hpp) and is short enough for the path of a unix socket; it may be DIR.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "node/control_group.hpp"
#include "node/launch_environment.hpp"
#include "node/rank_log.hpp"
#include "node/rank_process.hpp"

namespace orrery {

/// Which device files belong to which device of a node.
struct NodeDeviceFiles {
  std::vector<std::vector<DeviceNumber>> own;  ///< by device; fewer than devices: unknown
  std::vector<DeviceNumber> others;            ///< of accelerators that the node does not offer
};

/// The device files that an attempt with these shares is kept from, ascending: those of all
/// accelerators but its own. A file that two devices have in common is denied to neither.
[[nodiscard]] std::vector<DeviceNumber> denied_devices(const NodeDeviceFiles& files,
                                                       const std::vector<RankShare>& shares);

struct KeeperLaunch {
  OrderStamp stamp;
  LaunchRanks ranks;
  LaunchFacts facts;                ///< paths in it are filled in by the keeper
  std::vector<GangLayout> gangs;    ///< of every share
  std::string directory;            ///< where processes begin; empty: DIR/work
  std::optional<ProcessUser> user;  ///< none: whoever the keeper is
  LogLimits logs;
  std::uint64_t work_steps = 0;  ///< of the whole job, to say what part is done; 0: nobody knows
  std::vector<RankNeeds> needs;  ///< of the gangs that need something
  /// Thousandths of a core that a device at full clock stands for, where devices are processors or
  /// only declared; 0: they have a driver, and their clock is no matter of CPUs.
  std::uint32_t device_cpu = 0;
  NodeDeviceFiles devices;
  std::uint64_t processes_max =
      0;               ///< of the attempt on this node, threads included; 0: any number
  OutputNames copies;  ///< the keeper replaces %t, %N and %u
};

/// DIR/NAME and RUN/NAME.
struct KeeperFiles {
  std::string directory;
  std::string run = directory;
  std::string logs = directory;  ///< keepers of before 2026-11-24 made DIR/NAME/logs

  [[nodiscard]] std::string launch() const { return run + "/launch"; }
  [[nodiscard]] std::string lock() const { return run + "/lock"; }
  [[nodiscard]] std::string socket() const { return "unix:" + run + "/socket"; }
  [[nodiscard]] std::string progress() const { return run + "/progress"; }
  /// What the keeper itself has to say, mostly why it does not start.
  [[nodiscard]] std::string errors() const { return run + "/errors"; }
  /// Who takes part: {"epoch": 2, "gangs": [{"gang": 0, "nodes": [{"address": .., "ranks": ..}]}]},
  /// replaced in one step with each epoch. A process that goes on in it says so in `progress`.
  [[nodiscard]] std::string membership() const { return run + "/membership"; }
  [[nodiscard]] std::string hostfile(std::uint32_t gang) const;
  [[nodiscard]] std::string rankfile(std::uint32_t gang) const;
  /// The script of a job of kSlurm, in a directory that is the user's.
  [[nodiscard]] std::string script() const { return directory + "/slurm/script"; }
  /// By which its steps know each other; for the user alone.
  [[nodiscard]] std::string step_secret() const { return directory + "/slurm/secret"; }
  [[nodiscard]] std::string work() const { return directory + "/work"; }
  /// What the ranks here may fill; it goes with the attempt's directory.
  [[nodiscard]] std::string scratch() const { return directory + "/scratch"; }
  [[nodiscard]] std::string log(const RankStart& start) const;
  /// Where the threads of ranks that hung were.
  [[nodiscard]] std::string stacks() const { return directory + "/stacks"; }
  [[nodiscard]] std::string stack(const RankStart& start) const;
};

/// What is wrong with an order to launch: a share without a layout of its gang, or whose devices
/// and ranks are not as many; empty: nothing.
[[nodiscard]] std::string launch_complaint(const LaunchRanks& ranks,
                                           const std::vector<GangLayout>& gangs);
/// The layout of a gang. Precondition: launch_complaint() had none.
[[nodiscard]] const GangLayout& layout_of(std::uint32_t gang, const std::vector<GangLayout>& gangs);

/// What the ranks of shares may use together: the sum of what each asked for. Where one said
/// nothing there is no limit, for it would be one for that rank, too. Where the clock of a device
/// is that of CPUs and one is lowered, it is that part of what was asked for or, of who said
/// nothing, of what the devices stand for.
[[nodiscard]] GroupLimits limits_of(const std::vector<RankShare>& shares,
                                    const KeeperLaunch& launch);

/// Replaces the file in one step.
[[nodiscard]] Status write_keeper_launch(Storage& storage, const KeeperFiles& files,
                                         const KeeperLaunch& launch);
/// Errors name the file: absent, of another version, torn or changed, or with a share whose gang
/// has no layout or without a rank.
[[nodiscard]] Result<KeeperLaunch> read_keeper_launch(Storage& storage, const KeeperFiles& files);

}  // namespace orrery
