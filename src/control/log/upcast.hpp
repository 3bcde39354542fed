// control/log/upcast.hpp - raises records of older programs to the versions that this one reads.
//
// Fields of a record are only ever added, at its end. A change that adds one also adds an Upcaster
// for each type of record that holds the struct; the present version of a type is one more than the
// number of its upcasters, so the two cannot disagree. Constant tables, sorted for each type by
// version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "control/log/journal_frame.hpp"

namespace orrery {

/// Raises records of a type from one version to the next.
struct Upcaster {
  JournalContent content = JournalContent::kEvents;
  FrameType from;
  /// Returns the fields in the form of the next version. The input may be any bytes: errors in them
  /// are found when the result is decoded.
  std::string (*raise)(std::string_view fields) = nullptr;
};

/// The upcasters of this program.
[[nodiscard]] std::span<const Upcaster> builtin_upcasters();

/// The version in which records of a type are written. O(upcasters).
[[nodiscard]] std::uint8_t present_version(JournalContent content, std::uint32_t type,
                                           std::span<const Upcaster> upcasters);

}  // namespace orrery
