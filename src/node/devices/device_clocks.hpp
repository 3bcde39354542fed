// node/devices/device_clocks.hpp - the clock that each accelerator of the node should run at, by
// the orders of the attempts on it, and the clock that it runs at.
//
// Owned by NodeClocks (node/agent/node_clocks.hpp), which requests the changes from the drivers and
// writes them down: a clock outlives the agent that set it. An agent that starts knows which
// attempts it finds, not their last orders; the controller resends an order where its clock is
// other than the full one. Until then devices without a known attempt stay as they are.
// Invariant: each device is asked for one clock at a time, the lowest of the attempts on it.
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

  /// `devices`: how many of the node's devices have a driver; 0: no clocks are set here. `noted` is
  /// text() of an earlier object; of any other text the lines that can be read count.
  DeviceClocks(std::uint32_t devices, std::string_view noted);

  /// Adds an attempt that was found and whose order is not known.
  void adopt(const AttemptId& id);
  /// Sets the attempt's newest order. Clocks that were refused are asked for again.
  void want(const AttemptId& id, const std::vector<RankShare>& shares);
  void forget(const AttemptId& id);

  /// Returns what is to be asked of drivers, each change once.
  [[nodiscard]] std::vector<Change> take_changes();
  /// Notes the answer to a change; `refusal` is empty where it was done.
  void note(const Change& change, const std::string& refusal);

  /// Returns the clock of each share of the newest order. A lower clock that another attempt needs
  /// counts as the ordered one. Empty: not known.
  [[nodiscard]] std::vector<double> held(const AttemptId& id) const;
  [[nodiscard]] double clock(std::uint32_t device) const;
  /// Returns why a wanted clock is not held; empty: all are.
  [[nodiscard]] std::string refusal() const;
  /// Lists devices that may run at another than the full clock: "3 0.7", one device per line.
  [[nodiscard]] std::string text() const;

 private:
  struct Device {
    double held = 1;
    std::optional<double> asked = 1;  ///< none: the wanted clock is asked for anew
    std::string refusal;
  };
  [[nodiscard]] double wanted(std::uint32_t device) const;

  std::vector<Device> devices_;
  std::map<AttemptId, std::optional<std::vector<RankShare>>> attempts_;
};

}  // namespace orrery
