// twin/faults/failure_file.hpp - a user's file of kind Failures: a fault model of the catalog,
// changed.
//
//   apiVersion: orrery/v1
//   kind: Failures
//   name: our hall
//   like: infinitehbd          # llama3 when absent
//   failures_per_1000_node_days: 8
//   bursts: [{scope: rack, share: 0.2, size: 3, spread: 2 min}]
//
// Its keys are those of hardware/failure_spec.hpp; a list replaces the list, a mapping changes the
// keys it names. Pure. Cost: O(bytes).
#pragma once

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "hardware/catalog.hpp"
#include "hardware/failure_spec.hpp"

namespace orrery {

/// Errors: anything wrong in the file, with file:line:column; what check_failure_spec refuses.
[[nodiscard]] Result<FailureSpec> read_failure_spec(const Document& document,
                                                    const Catalog& catalog);

/// Refuses, at its position, what is impossible for any fleet: shares outside [0, 1], a mean repair
/// below its median, a kind that nodes do not have, a path of detection the catalog does not know.
[[nodiscard]] Status check_failure_spec(const FailureSpec& spec, const Catalog& catalog);

/// Whether faults of the kind strike a node or an accelerator, so that `mix` may name it.
[[nodiscard]] bool strikes_nodes(FaultKind kind);

}  // namespace orrery
