// control/upcast.hpp - raises records that older programs wrote to what this one reads.
//
// Fields of a record are only ever added, at its end. Whoever adds one adds an Upcaster for each
// type of record that holds the struct; the present version of a type is one more than the number
// of its upcasters, so the two cannot disagree. Constant tables, the upcasters of a type ascending
// by version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "control/journal_frame.hpp"

namespace orrery {

/// From one version of a type to the next.
struct Upcaster {
  JournalContent content = JournalContent::kEvents;
  FrameType from;
  /// The fields as the next version has them. Any bytes may come: what it makes of wrong ones is
  /// found out when they are decoded.
  std::string (*raise)(std::string_view fields) = nullptr;
};

/// Those of this program.
[[nodiscard]] std::span<const Upcaster> builtin_upcasters();

/// The version in which records of a type are written. O(upcasters).
[[nodiscard]] std::uint8_t present_version(JournalContent content, std::uint32_t type,
                                           std::span<const Upcaster> upcasters);

}  // namespace orrery
