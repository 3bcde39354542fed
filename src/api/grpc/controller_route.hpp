// api/grpc/controller_route.hpp - which of several controllers a caller tries next, after one has
// refused a call as a standby or could not be reached.
//
// A value, of one caller. A standby names the leader in the trailing metadata kLeaderKey, where it
// knows it; a leader that no address names is added to the known ones.
// Invariant: in one round no controller is tried twice, so that standbys that name each other cost
// no more than one call each before the caller pauses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Trailing metadata of a standby's refusal: HOST:PORT of the leader.
inline constexpr const char* kLeaderKey = "orrery-leader";
/// Details of the status of a call that the controller itself refused as UNAVAILABLE: the text says
/// why. A call that did not reach it has no details.
inline constexpr const char* kRefusedByController = "refused by the controller";
/// How the text of a standby's refusal begins. The call was not received.
inline constexpr std::string_view kStandbyText = "this controller is a standby";

class ControllerRoute {
 public:
  /// Precondition: there is an address; the first one is tried first.
  explicit ControllerRoute(std::vector<std::string> addresses);

  /// The controller to call now.
  [[nodiscard]] const std::string& address() const { return known_[at_].address; }
  /// Every controller that was named.
  [[nodiscard]] std::vector<std::string> addresses() const;

  /// Begins a round at address().
  void begin_round();
  /// Moves on from address(), which was tried: to `leader`, else to the next one in order that was
  /// not tried in this round. Returns false where the round is over; address() is then the one that
  /// the next round begins with. `leader`: HOST:PORT; empty: none is known.
  [[nodiscard]] bool move_on(const std::string& leader);

 private:
  struct Known {
    std::string address;
    bool tried = false;  ///< in this round
  };

  /// Returns the place of an address, which becomes known.
  [[nodiscard]] std::size_t place_of(const std::string& address);

  std::vector<Known> known_;
  std::size_t at_ = 0;
};

}  // namespace orrery
