// scheduler/place_try.hpp - "is there room for it, and where?", asked of many views of a fleet.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "fleet/view.hpp"
#include "scheduler/placed_gang.hpp"

namespace orrery {

/// Places a whole job on what a view shows, or nothing where it does not fit. It must be pure and
/// monotone: what fits still fits when more is free. A search asks fits() of many views, which is
/// often told by free counts alone, and place() of the one it settles on.
class PlaceTry {
 public:
  using Place = std::function<std::optional<std::vector<PlacedGang>>(const FleetView&)>;
  using Fits = std::function<bool(const FleetView&)>;

  PlaceTry() = default;
  /// `fits` says whether `place` would find room.
  PlaceTry(Place place, Fits fits) : place_(std::move(place)), fits_(std::move(fits)) {}
  template <class F>
    requires std::convertible_to<F, Place>
  PlaceTry(F place)  // NOLINT(google-explicit-constructor): a place is all a try needs
      : place_(std::move(place)) {}

  [[nodiscard]] std::optional<std::vector<PlacedGang>> place(const FleetView& view) const {
    return place_(view);
  }
  [[nodiscard]] bool fits(const FleetView& view) const {
    return fits_ ? fits_(view) : place_(view).has_value();
  }

 private:
  Place place_;
  Fits fits_;
};

}  // namespace orrery
