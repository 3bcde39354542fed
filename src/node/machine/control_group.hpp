// node/machine/control_group.hpp - the kernel's control group of all processes of an attempt. An
// unprivileged process cannot leave it, so all of them can be found and killed at once; together
// they are limited in CPU, memory and number of processes, and kept from device files that are not
// theirs.
//
// Made by the keeper below its own group, where it may write there; without one the keeper still
// finds its descendants (adopt_orphans). Two drivers with one contract:
//   - cgroup v2: cgroup.kill, cpu.max, memory.max, pids.max, and a BPF program for devices;
//   - cgroup v1: the freezer, which holds all still while each is killed, so that none forks away,
//     and the trees of cpu, memory, pids and devices, where a group of the same name is made once
//     it is needed. Where v1's tree of devices is not mounted and v2's tree is (a hybrid host), a
//     group in v2's tree holds the BPF program.
// The groups are removed with the object, when they are empty.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/system/file_descriptor.hpp"
#include "node/devices/device_filter.hpp"

namespace orrery {

/// Prefix of the names of keepers' groups.
inline constexpr std::string_view kGroupPrefix = "orrery-";

/// The place where a new group is made.
struct ControlGroupPlace {
  enum class Version : std::uint8_t { kV1Freezer, kV2 } version = Version::kV2;
  std::string directory;  ///< of the parent group
  std::string cpu;        ///< directory in v1's tree of this controller; empty: there is none
  std::string memory;     ///< as `cpu`
  std::string pids;       ///< as `cpu`
  std::string devices;    ///< as `cpu`
  std::string unified;    ///< v2's tree beside those of v1; empty: it is not mounted
};

/// The texts from which a process finds its own groups.
struct ControlGroupTexts {
  std::string_view groups;  ///< /proc/self/cgroup
  std::string_view mounts;  ///< /proc/self/mounts
};

/// Returns the group of this process: in v2 where a pure v2 tree is mounted, else in v1's freezer.
/// Error: neither is there.
[[nodiscard]] Result<ControlGroupPlace> own_control_group(const ControlGroupTexts& texts);

/// What all processes of a group may use together. Zero: no limit.
struct GroupLimits {
  std::uint64_t cpu = 0;     ///< thousandths of a core, over 100 ms
  std::uint64_t memory = 0;  ///< bytes, swap included; one more and the kernel kills a process

  friend auto operator<=>(const GroupLimits&, const GroupLimits&) = default;
};

class ControlGroup {
 public:
  /// Makes `name` in `place`. Error: it may not be made there, or it already exists and is not
  /// empty.
  [[nodiscard]] static Result<std::unique_ptr<ControlGroup>> make(const ControlGroupPlace& place,
                                                                  const std::string& name);
  ControlGroup(ControlGroupPlace place, std::string name, FileDescriptor members);
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup();

  /// Sets all limits, for the processes that are in the group and those that will be; may be called
  /// again. With v1, memory that a process has before there is a first limit is not counted.
  /// Error: the first that the system refused; the other limits are set nonetheless.
  [[nodiscard]] Status limit(const GroupLimits& limits);
  /// Sets how many processes, threads included, it may have; at the limit fork fails with EAGAIN.
  /// Zero: any number. Error: what the system refused.
  [[nodiscard]] Status limit_processes(std::uint64_t count);
  /// From now on its processes can neither open nor make exactly these device files; what they have
  /// open stays open. May be called again with others. Error: what the system refused.
  [[nodiscard]] Status deny_devices(std::vector<DeviceNumber> denied);
  /// Returns files; a process that writes "0" into each of these joins the group, under its limits.
  [[nodiscard]] std::vector<int> members() const;
  /// Sends SIGKILL to all processes in it; returns within some milliseconds.
  void kill();
  /// Whether no process is in it; one that ended and was not yet waited for does not count.
  [[nodiscard]] bool empty() const;
  /// Returns how many of its processes the kernel has killed because the memory limit was reached.
  [[nodiscard]] std::uint64_t memory_kills() const;

 private:
  struct Controller {
    std::string_view name;                ///< as cgroup v2 calls it
    std::string_view what;                ///< as a message calls it
    std::string ControlGroupPlace::* v1;  ///< parent directory, in v1's tree of it
  };
  static const Controller kCpu, kMemory, kPids, kDevices;
  [[nodiscard]] Result<std::string> directory_for(const Controller& controller);
  [[nodiscard]] Result<std::string> join_group_in(const std::string& above);
  [[nodiscard]] Status deny_in_v1(const std::vector<DeviceNumber>& denied);
  [[nodiscard]] Status deny_by_program(const std::vector<DeviceNumber>& denied);
  [[nodiscard]] Status limit_cpu(std::uint64_t thousandths);
  [[nodiscard]] Status limit_memory(std::uint64_t bytes);
  void kill_members() const;

  ControlGroupPlace place_;
  std::string name_;
  std::string path_;  ///< of the group that kills
  std::string cpu_;   ///< where its limit is set; empty: not yet
  std::string memory_;
  std::string pids_;
  std::string devices_;  ///< where device files are denied; empty: not yet
  std::vector<DeviceNumber> denied_;
  FileDescriptor device_program_;  ///< attached to devices_; none with v1's tree of devices
  std::vector<FileDescriptor> members_;
};

/// Thaws a process that a keeper's group holds in v1's freezer: the process that froze it, to kill
/// it, may have been killed before it thawed it, and a frozen process does not end by a signal.
void let_go_on(pid_t process);

}  // namespace orrery
