// scheduler/place/trial.hpp - a fleet in which the gangs of a job are placed one after the other.
//
// Keeps one overlay for all trials; a job of one gang never touches it.
#pragma once

#include <optional>

#include "scheduler/request/placed_gang.hpp"

namespace orrery {

class Trial {
 public:
  /// `view` must stay unchanged and valid until the next begin().
  void begin(const FleetView& view, std::uint32_t gangs) {
    left_ = gangs;
    base_ = view;
    touched_ = false;
  }

  /// The fleet with everything added since begin().
  [[nodiscard]] FleetView view() const { return touched_ ? overlay_->view() : *base_; }

  /// The last gang need not be entered, since nothing is placed after it.
  void add(const PlacedGang& gang) {
    if (--left_ == 0) return;
    if (!touched_) {
      if (overlay_) {
        overlay_->reset(*base_);
      } else {
        overlay_.emplace(*base_);
      }
      touched_ = true;
    }
    take(*overlay_, gang.allocation, gang.host);
  }

 private:
  std::optional<FleetView> base_;
  std::optional<FleetOverlay> overlay_;
  std::uint32_t left_ = 0;
  bool touched_ = false;
};

}  // namespace orrery
