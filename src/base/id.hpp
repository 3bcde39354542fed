// base/id.hpp - strong identifiers: a NodeId is not a DeviceId.
//
// Ids are dense indexes from 0, so tables are vectors. Order by id breaks every tie.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace orrery {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t value) : value_(value) {}

  /// The id of position `index` of a table. Precondition: index < 2^32 - 1.
  static constexpr Id at(std::size_t index) { return Id(static_cast<std::uint32_t>(index)); }

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr bool valid() const { return value_ != kNone; }

  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t value_ = kNone;
};

}  // namespace orrery

template <class Tag>
struct std::hash<orrery::Id<Tag>> {
  std::size_t operator()(orrery::Id<Tag> id) const noexcept { return id.value(); }
};
