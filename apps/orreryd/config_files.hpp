// apps/orreryd/config_files.hpp - the files that an operator edits in a controller's directory, and
// what of them is in effect.
//
//   DIR/fleet.yaml   what a log is begun with; written anew when the fleet is changed by a call
//   DIR/tenants.yaml, DIR/policy.yaml   where they are there: what holds since the newest start or
//                    SIGHUP; the log keeps it
//   DIR/controller.yaml   how long it waits for what and how much it takes on, where it is there
//   DIR/managers.yaml     resource managers that lend nodes, where it is there
//                    (executor/managers/manager_spec.hpp)
//                    Both are read at the start, at SIGHUP, and when a standby takes the lead.
//   DIR/catalog      facts laid over those compiled in, where it is there
// Owned by the daemon, on its loop; the controller outlives every call that is given it.
// Controllers that share a log have a directory each, so a start applies none of the files that the
// log keeps: what differs from it is reported, and SIGHUP applies it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "base/text/line_changes.hpp"
#include "executor/controller.hpp"
#include "executor/managers/manager_spec.hpp"
#include "perf/facts.hpp"

namespace orrery {

enum class LogOwner : std::uint8_t { kThisController, kShared };

class ConfigFiles {
 public:
  ConfigFiles(const Env& env, const Log& log, std::string directory)
      : env_(env), log_(log), directory_(std::move(directory)) {}

  /// Returns the facts: those compiled in, under those of DIR/catalog.
  [[nodiscard]] Result<Facts> load_facts();
  /// Returns DIR/catalog; empty: there is none.
  [[nodiscard]] const std::string& overlay() const { return overlay_; }
  [[nodiscard]] Result<SetupTexts> setup_texts();
  [[nodiscard]] Result<ControllerSettings> settings();
  /// Returns the settings of the file as it is now; none: it is wrong, which is in the log.
  [[nodiscard]] std::optional<ControllerSettings> settings_now();
  /// Returns the resource managers; without a file there are none.
  [[nodiscard]] Result<ManagersSpec> managers();
  /// Returns them if their file has changed since it was last read; a file that is wrong is named
  /// in the log.
  [[nodiscard]] std::optional<ManagersSpec> changed_managers();
  /// The file was not applied: it counts as changed when it is next read.
  void forget_managers() { managers_.reset(); }

  /// The controller leads: applies the files, or reports what differs. `facts` outlives this
  /// object.
  void begin(Controller& controller, const Facts& facts, LogOwner owner);
  /// Reads the files again and applies them; one that is wrong is named in the log and changes
  /// nothing.
  void reload(Controller& controller);
  /// Writes the fleet that holds from now on. A process that ends before the file is written
  /// completes this at its next start.
  void keep_fleet(Controller& controller, const std::string& fleet);

  /// Returns an empty text where there is no such file.
  [[nodiscard]] Result<std::string> text(const std::string& name);
  /// Writes a file unless it has that content already: a controller thus starts on a full disk,
  /// too.
  [[nodiscard]] Status keep(const std::string& name, const std::string& bytes);
  /// Writes a file unless there is one: of several controllers with one directory, one writes it.
  [[nodiscard]] Status keep_first(const std::string& name, const std::string& bytes);

 private:
  /// Applies one of the files that the log keeps: `now` is its applied text, `command` changes it.
  template <class Command>
  void take_over(Controller& controller, const std::string& file, const std::string& now);
  void take_over_files(Controller& controller);
  void report_files(Controller& controller);
  void complete_fleet(Controller& controller);
  void compare_fleet(Controller& controller);
  void note_missing(Controller& controller, const std::string& file, const std::string& applied);
  /// Reports the lines of a file that differ from its last applied text.
  void report_changes(Controller& controller, const std::string& file,
                      const std::vector<LineChange>& changes);
  void report_settings(Controller& controller);
  /// Tells the operator that fleet.yaml may be older than the fleet in the log.
  void report_shared_fleet(Controller& controller);
  [[nodiscard]] bool is_there(const std::string& name) const;

  Env env_;
  Log log_;
  std::string directory_;
  std::string overlay_;
  std::optional<std::string> managers_;  ///< managers.yaml as applied; none: read anew
  const Facts* facts_ = nullptr;         ///< once begun
  LogOwner owner_ = LogOwner::kThisController;
};

}  // namespace orrery
