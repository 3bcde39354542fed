// perf/runs/run_accelerator.hpp - which accelerator a published row means by its free text.
//
// A catalog id or alias, without regard to case and punctuation; else a family with any of memory
// size, form factor, memory kind and watt limit: "H100-96GB-SXM HBM2e 500W", "GB200 NVL72",
// "A100 80GB PCIe". Pure; the accelerator pointed to belongs to the catalog.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/catalog.hpp"

namespace orrery {

struct AcceleratorText {
  const Accelerator* accelerator = nullptr;
  std::optional<Watts> power_limit;              ///< "500W"
  std::optional<std::uint32_t> scale_up_domain;  ///< "NVL72"
  std::vector<std::string> warnings;             ///< what was not understood or does not exist
};

/// A bare family means the row its name is an alias of. A qualifier that no member of the family
/// has is a warning. Errors: no known family in the text, with the nearest names, at `where`.
/// Cost: O(log names), or O(names) when the text is no alias.
[[nodiscard]] Result<AcceleratorText> read_accelerator_text(std::string_view text,
                                                            const Catalog& catalog,
                                                            const SourcePosition& where);

}  // namespace orrery
