// scheduler/place/place_try.hpp - whether and where a job fits, a question put to many views of a
// fleet.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "fleet/view.hpp"
#include "scheduler/request/placed_gang.hpp"

namespace orrery {

/// Places a whole job in a view, or nothing where it does not fit. It must be pure and monotone:
/// what fits still fits when more is free. A search calls may_fit() for many situations that it
/// need not even have a view of, fits() for the few where may_fit() is true, and place() for the
/// one it settles on.
class PlaceTry {
 public:
  using Place = std::function<std::optional<std::vector<PlacedGang>>(const FleetView&)>;
  using Fits = std::function<bool(const FleetView&)>;
  /// The total free devices of a type.
  using Free = std::function<FreeCount(FleetTypeId)>;
  using MayFit = std::function<bool(const Free&)>;

  PlaceTry() = default;
  /// `fits` returns whether `place` would find room; `may_fit` returns false only where it would
  /// not.
  PlaceTry(Place place, Fits fits, MayFit may_fit)
      : place_(std::move(place)), fits_(std::move(fits)), may_fit_(std::move(may_fit)) {}
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
  /// Whether may_fit() ever returns false.
  [[nodiscard]] bool counts() const { return static_cast<bool>(may_fit_); }
  /// Whether the job might fit where no more than `free` is free.
  [[nodiscard]] bool may_fit(const Free& free) const { return !may_fit_ || may_fit_(free); }

 private:
  Place place_;
  Fits fits_;
  MayFit may_fit_;
};

}  // namespace orrery
