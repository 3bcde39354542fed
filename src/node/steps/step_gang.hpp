// node/steps/step_gang.hpp - the nodes of a script's gang as each of its processes finds them:
// their addresses and what they have in common.
//
// A value, read from the environment of the launch contract (LaunchStyle::kSlurm) and the file of
// the attempt's secret that it names.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace orrery {

struct StepGang {
  std::string job;                     ///< its number
  std::vector<std::string> addresses;  ///< of its nodes; the script runs on the first
  std::uint32_t here = 0;
  std::uint32_t port = 0;  ///< of the first; nodes of one address count on from it
  std::string secret;

  /// Errors: not a process of a script; the secret cannot be read.
  [[nodiscard]] static Result<StepGang> read(
      const std::vector<std::pair<std::string, std::string>>& environment);

  /// Returns the address where this node listens. It listens to other machines only where the gang
  /// has several. A single node takes any free port, and passes its number to the script.
  [[nodiscard]] std::string listening_address() const;
  /// Returns the address of `node`, for a Transport; a name is looked up. Error: it is not known.
  [[nodiscard]] Result<std::string> address_of(std::uint32_t node) const;

 private:
  [[nodiscard]] bool is_one_machine() const;
  [[nodiscard]] std::uint32_t port_of(std::uint32_t node) const;
};

}  // namespace orrery
