// node/device_clocks.hpp - at which clock each accelerator of the node shall run, by what the
// attempts on it were ordered, and at which it does.
//
// Owned by the agent's process, which asks the drivers and writes down what it asks for: a clock
// outlives whoever set it. An agent that starts knows of the attempts it finds that they are there,
// not what they were last ordered; the controller says it again where it is other than the full
// clock. Until then the devices that nobody is known to be on stay as they are.
// Invariant: a device is asked for one clock at a time, the lowest of those on it.
// Cost: O(attempts x devices) a call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/message.hpp"

namespace orrery {

class DeviceClocks {
 public:
  struct Change {
    std::uint32_t device = 0;
    double clock = 1;
  };

  /// `devices` of the node have a driver, 0: nobody sets clocks here. `noted` is what text() of an
  /// earlier one was; of anything else what can be read counts.
  DeviceClocks(std::uint32_t devices, std::string_view noted);

  /// It is there, and what it was ordered is not known.
  void adopt(const AttemptId& id);
  /// Its newest order. What was refused is asked for again.
  void want(const AttemptId& id, const std::vector<RankShare>& shares);
  void forget(const AttemptId& id);

  /// What is to be asked of drivers, each once.
  [[nodiscard]] std::vector<Change> take_changes();
  /// The answer; `refusal` empty: done.
  void note(const Change& change, const std::string& refusal);

  /// Of each share of the newest order. What lies below it, for another's sake, is as ordered.
  /// Empty: not known.
  [[nodiscard]] std::vector<double> held(const AttemptId& id) const;
  [[nodiscard]] double clock(std::uint32_t device) const;
  /// Why a clock that is wanted is not held; empty: all are.
  [[nodiscard]] std::string refusal() const;
  /// Devices that may run at another than the full clock: "3 0.7", a device a line.
  [[nodiscard]] std::string text() const;

 private:
  struct Device {
    double held = 1;
    std::optional<double> asked = 1;  ///< none: whatever is wanted is asked for anew
    std::string refusal;
  };
  [[nodiscard]] double wanted(std::uint32_t device) const;

  std::vector<Device> devices_;
  std::map<AttemptId, std::optional<std::vector<RankShare>>> attempts_;
};

}  // namespace orrery
