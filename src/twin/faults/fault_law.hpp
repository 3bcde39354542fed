// twin/faults/fault_law.hpp - the properties of a fault: its kind, how it is noticed, how long it
// lasts.
//
// Built once from the catalog's tables and a FailureSpec by FaultLaw::make; immutable, holds views
// into the catalog. Draws come from the caller's Rng. Cost: O(kinds) a fault.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/numbers/rng.hpp"
#include "hardware/catalog.hpp"
#include "twin/faults/fault.hpp"

namespace orrery {

class FaultLaw {
 public:
  /// Precondition: check_failure_spec accepts the spec. Errors: a kind without a path of detection
  /// or a repair time in the catalog.
  [[nodiscard]] static Result<FaultLaw> make(const FailureSpec& spec, const Catalog& catalog);

  /// Faults a second of a node with this many accelerators: the rates of kinds that strike an
  /// accelerator grow with their number; the stated rate is that of 8.
  [[nodiscard]] double node_rate(std::uint32_t devices) const;

  /// Draws one of a node's kinds. Precondition: node_rate(devices) > 0.
  [[nodiscard]] FaultKind draw_kind(std::uint32_t devices, Rng& rng) const;

  /// Which times apply: those of a node's faults may be given for all kinds together.
  enum class Where { kNode, kElsewhere };
  /// Sets detection, evidence, remedy and repair by the fault's kind. About 4 draws.
  void draw_times(Where where, Fault& fault, Rng& rng) const;

 private:
  struct Times {
    Duration detection;
    std::string_view evidence;
    RepairModel node;
    RepairModel elsewhere;
  };

  void set_rates(const FailureSpec& spec, const Catalog& catalog);
  [[nodiscard]] Status set_times(FaultKind kind, const FailureSpec& spec, const Catalog& catalog);

  std::array<double, kFaultKinds> rates_{};  ///< a second, of a node of 8 accelerators
  std::array<Times, kFaultKinds> times_;
};

/// The kinds that strike one accelerator of a node, not the node.
[[nodiscard]] bool strikes_accelerator(FaultKind kind);

}  // namespace orrery
