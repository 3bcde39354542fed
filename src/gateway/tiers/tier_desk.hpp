// gateway/tiers/tier_desk.hpp - the services of a gateway that have a small and a large model:
// which one answers a request, and the comparisons that run.
//
// A core owns one (gateway/gateway_core.hpp). On the loop's thread. A gate stays while its service
// has the same tiers, whatever else changes in the table. Cost of a request to a service without
// tiers: one search by number.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/numbers/rng.hpp"
#include "gateway/tiers/tier_comparison.hpp"
#include "gateway/tiers/tiered_body.hpp"
#include "serving/gateway_report.hpp"
#include "serving/routing/route_table.hpp"
#include "serving/tiers/tier_gate.hpp"

namespace orrery {

class GatewayCore;
struct GatewayService;

/// A request of a service with tiers.
struct TierTicket {
  TierChoice choice;
  std::uint64_t large = 0;  ///< RoutedService::id of the service that was asked
  std::uint64_t small = 0;
  std::uint64_t gate = 0;  ///< Tiers::number
  TieredBody body;
};

/// What was chosen for a request.
struct ChosenTier {
  std::optional<TierReason> reason;  ///< none: the service has no smaller model
  std::uint64_t asked = 0;           ///< RoutedService::id
  /// Where the small model answers, or both are compared; null: the service itself answers.
  std::unique_ptr<TierTicket> ticket;

  [[nodiscard]] bool is_small() const { return ticket != nullptr && ticket->choice.is_small(); }
  [[nodiscard]] bool is_compared() const { return ticket != nullptr && ticket->choice.compares; }
};

/// What a gate has done so far, by reason, in the order of TierReason.
struct TierCounts {
  std::array<std::uint64_t, 5> by_reason{};
};

class TierDesk {
 public:
  TierDesk(GatewayCore& core, std::uint64_t seed);
  TierDesk(const TierDesk&) = delete;
  TierDesk& operator=(const TierDesk&) = delete;
  ~TierDesk();

  void set_table(const RouteTable& table);
  /// Chooses the model for a request to a service.
  [[nodiscard]] ChosenTier choose(const GatewayService& asked, const WebRequest& request);
  enum class Ending : std::uint8_t {
    kAnswered,  ///< whole, and no error
    kFailed,    ///< the client got an error of the model, or a part of an answer
    kLeft,      ///< the client left, or was refused before a model was asked
  };
  /// A request that was chosen for has ended. `answer`: what the client got.
  void finish(const ChosenTier& chosen, Ending ending, const std::string& answer);

  /// What the small model of a service has answered; none: it has no tiers.
  [[nodiscard]] std::optional<QualityReport> report(std::uint64_t service) const;

  struct Tiers {
    std::uint64_t number = 0;  ///< no other gate has it
    RoutedTiers terms;
    TierGate gate;
    TierCounts counts;
    std::list<TierComparison> running;
  };
  /// By RoutedService::id of the large model's service.
  [[nodiscard]] const std::map<std::uint64_t, Tiers>& all() const { return tiers_; }

 private:
  [[nodiscard]] bool is_able(std::uint64_t service) const;
  void compare(Tiers& tiers, const TierTicket& ticket, std::string text);

  GatewayCore& core_;
  Rng draws_;
  std::uint64_t gates_ = 0;  ///< made so far
  std::map<std::uint64_t, Tiers> tiers_;
};

}  // namespace orrery
