#include "gateway/tiers/tier_desk.hpp"

#include <algorithm>
#include <utility>

#include "gateway/gateway_core.hpp"

namespace orrery {
namespace {

/// Comparisons of a service at a time. Beyond it the large model answers, so that a comparison
/// never waits so long that its model has changed.
constexpr std::size_t kRunningMax = 64;

}  // namespace

TierDesk::TierDesk(GatewayCore& core, std::uint64_t seed) : core_(core), draws_(seed) {}

TierDesk::~TierDesk() = default;

void TierDesk::set_table(const RouteTable& table) {
  std::map<std::uint64_t, Tiers> before = std::exchange(tiers_, {});
  for (const RoutedService& service : table.services) {
    if (!service.tiers) continue;
    if (auto kept = before.extract(service.id); kept && kept.mapped().terms == *service.tiers) {
      tiers_.insert(std::move(kept));
      continue;
    }
    const QualityTerms quality{.loss_max = service.tiers->loss_max,
                               .delta = 1 - service.tiers->confidence,
                               .audit = service.tiers->audit_rate};
    tiers_.try_emplace(service.id, ++gates_, *service.tiers, TierGate({.quality = quality}));
  }
}

bool TierDesk::is_able(std::uint64_t service) const {
  const auto found = core_.services().find(service);
  if (found == core_.services().end() || !found->second.index) return false;
  const RouterState& router = core_.router();
  return std::ranges::any_of(router.slots_of(*found->second.index), [&](std::uint32_t slot) {
    const RouterReplica& replica = router.replica(slot);
    return replica.part.duty != ReplicaDuty::kPrefill && !router.is_full(replica) &&
           replica.failing.out_until <= core_.now();
  });
}

ChosenTier TierDesk::choose(const GatewayService& asked, const WebRequest& request) {
  const auto found = tiers_.find(asked.id);
  if (found == tiers_.end()) return {};
  Tiers& tiers = found->second;
  auto body = TieredBody::read(request);
  TierChoice choice;
  if (body && is_able(tiers.terms.small) && tiers.running.size() < kRunningMax) {
    choice = tiers.gate.choose(body->features(), draws_.uniform());
  }
  ++tiers.counts.by_reason[static_cast<std::size_t>(choice.reason)];
  ChosenTier chosen{choice.reason, asked.id, nullptr};
  if (choice.is_small() || choice.compares) {
    chosen.ticket = std::make_unique<TierTicket>(choice, asked.id, tiers.terms.small, tiers.number,
                                                 *std::move(body));
  }
  return chosen;
}

void TierDesk::finish(const ChosenTier& chosen, Ending ending, const std::string& answer) {
  const auto found = tiers_.find(chosen.asked);
  if (found == tiers_.end()) return;
  Tiers& tiers = found->second;
  if (ending == Ending::kAnswered) tiers.gate.add_answer();
  // A gate that was made since, for other terms, knows nothing of the choice.
  if (!chosen.is_compared() || chosen.ticket->gate != tiers.number) return;
  const TierTicket& ticket = *chosen.ticket;
  if (ending == Ending::kLeft) return tiers.gate.drop(ticket.choice);
  auto text = ending == Ending::kAnswered ? answer_text(answer) : std::nullopt;
  if (text) {
    compare(tiers, ticket, *std::move(text));
  } else if (ticket.choice.is_small()) {
    tiers.gate.settle(ticket.choice, ticket.body.features(), AnswerQuality::kWorse);
  }
}

void TierDesk::compare(Tiers& tiers, const TierTicket& ticket, std::string text) {
  ComparedAnswers answers{
      .body = ticket.body,
      .answer = std::move(text),
      .by = ticket.choice.is_small() ? ComparedAnswers::By::kSmall : ComparedAnswers::By::kLarge,
      .small = ticket.small,
      .large = ticket.large,
      .measure = tiers.terms.measure};
  const auto at = tiers.running.emplace(tiers.running.end(), core_, std::move(answers));
  at->on_done([&tiers, at, choice = ticket.choice,
               features = ticket.body.features()](std::optional<AnswerQuality> found) {
    if (found) tiers.gate.settle(choice, features, *found);
    tiers.running.erase(at);
  });
}

std::optional<QualityReport> TierDesk::report(std::uint64_t service) const {
  const auto found = tiers_.find(service);
  if (found == tiers_.end()) return std::nullopt;
  const TierGate& gate = found->second.gate;
  return QualityReport{.requests = gate.ledger().answers(),
                       .small = gate.ledger().small(),
                       .compared = gate.ledger().audited(),
                       .worse = gate.ledger().lost(),
                       .bound = gate.ledger().bound(),
                       .learning = gate.learning() ? 1U : 0U,
                       .retreats = gate.retreats()};
}

}  // namespace orrery
