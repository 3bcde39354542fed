// node/control_group.hpp - the kernel's group of all processes of an attempt: nobody leaves it, so
// everything in it can be found and killed at once.
//
// Made by the keeper below its own group, where it may write there; without one the keeper still
// finds its descendants (adopt_orphans). Two drivers with one contract: cgroup v2 (cgroup.kill) and
// the freezer of v1, which holds all still while each is killed, so that none forks away. The
// group is removed with the object, when it is empty.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"

namespace orrery {

/// Where a new group goes.
struct ControlGroupPlace {
  enum class Version : std::uint8_t { kV1Freezer, kV2 } version = Version::kV2;
  std::string directory;  ///< of the group above it
};

/// What a process finds out about its own groups.
struct ControlGroupTexts {
  std::string_view groups;  ///< /proc/self/cgroup
  std::string_view mounts;  ///< /proc/self/mounts
};

/// The group of this process: of v2 where a pure v2 tree is mounted, else of v1's freezer. Error:
/// neither is there.
[[nodiscard]] Result<ControlGroupPlace> own_control_group(const ControlGroupTexts& texts);

class ControlGroup {
 public:
  /// Makes `name` in `place`. Error: it may not be made there, or is there already and not empty.
  [[nodiscard]] static Result<std::unique_ptr<ControlGroup>> make(const ControlGroupPlace& place,
                                                                  const std::string& name);
  ControlGroup(ControlGroupPlace::Version version, std::string path, FileDescriptor members);
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ~ControlGroup();

  /// A process that writes "0" here is in the group.
  [[nodiscard]] int members() const { return members_.get(); }
  /// Sends SIGKILL to all that are in it; returns at once.
  void kill();
  /// Whether no process is in it; one that ended and was not yet waited for does not count.
  [[nodiscard]] bool empty() const;

 private:
  ControlGroupPlace::Version version_;
  std::string path_;
  FileDescriptor members_;
};

}  // namespace orrery
