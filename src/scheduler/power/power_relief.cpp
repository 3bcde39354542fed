#include "scheduler/power/power_relief.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <queue>
#include <tuple>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// One way in which a gang may continue.
struct Option {
  std::optional<std::size_t> step;  ///< none: stopped
  double loss = 0;                  ///< relative to how it runs now
  std::vector<Milliwatts> draw;     ///< in each of the domains of its candidate
};

/// A gang under a domain that is above its cap.
struct Candidate {
  std::size_t gang = 0;
  std::vector<std::size_t> domains;  ///< positions among those above
  std::vector<Option> options;       ///< as it runs now, then slower, then stopped
  std::size_t at = 0;
};

struct Move {
  double price = 0;  ///< loss for each milliwatt saved
  std::size_t candidate = 0;
  std::size_t option = 0;

  friend bool operator>(const Move& a, const Move& b) {
    return std::tie(a.price, a.candidate, a.option) > std::tie(b.price, b.candidate, b.option);
  }
  friend bool operator==(const Move&, const Move&) = default;
};

class Relief {
 public:
  Relief(const PowerBudget& budget, const PowerCaps& caps, std::span<const RunningGang> gangs);

  PowerRelief solve();

 private:
  /// Nodes of a gang that draw the same at each step.
  struct Kind {
    NodeShare example;
    Watts idle;                       ///< of a device
    std::vector<std::int64_t> nodes;  ///< by domain of the gang
  };
  [[nodiscard]] std::vector<Kind> kinds_of(const RunningGang& gang,
                                           std::span<const std::size_t> domains) const;
  [[nodiscard]] std::vector<std::size_t> domains_of(const RunningGang& gang) const;
  void add_candidate(std::size_t index, const RunningGang& gang);
  void forbid_needless_stops();
  void settle_for_the_lowest();
  void lower();
  void give_back();
  [[nodiscard]] std::optional<Move> best_move(std::size_t candidate) const;
  void apply(Candidate& candidate, std::size_t option);
  [[nodiscard]] bool fits(const Candidate& candidate, std::size_t option) const;
  [[nodiscard]] std::vector<Milliwatts> reach(std::size_t (*last)(const Candidate&)) const;

  const PowerTree& tree_;
  std::vector<PowerDomainId> over_;
  std::vector<std::size_t> position_;  ///< among those above, by domain
  std::vector<Milliwatts> excess_;     ///< still to be saved; not positive: done
  std::vector<Candidate> candidates_;
  PowerRelief result_;
};

constexpr std::size_t kWithin = ~std::size_t{0};

Relief::Relief(const PowerBudget& budget, const PowerCaps& caps, std::span<const RunningGang> gangs)
    : tree_(budget.tree()), position_(tree_.topology().power_domains().size(), kWithin) {
  for (std::size_t i = 0; i < position_.size(); ++i) {
    const Milliwatts excess = budget.excess(caps, PowerDomainId::at(i));
    if (excess <= 0) continue;
    position_[i] = over_.size();
    over_.push_back(PowerDomainId::at(i));
    excess_.push_back(excess);
  }
  if (over_.empty()) return;
  for (std::size_t i = 0; i < gangs.size(); ++i) add_candidate(i, gangs[i]);
}

// Most nodes of a gang are alike, so that each kind is priced once and counted by domain.
std::vector<Relief::Kind> Relief::kinds_of(const RunningGang& gang,
                                           std::span<const std::size_t> domains) const {
  std::vector<Kind> kinds;
  for (const NodeShare& share : gang.power.nodes) {
    const double devices = tree_.topology().group(share.node).devices;
    const Watts idle = watts_of(tree_.idle(share.node)) / devices;
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& other) {
      return other.idle == idle && other.example.accelerators == share.accelerators;
    });
    if (kind == kinds.end()) {
      kinds.push_back({share, idle, std::vector<std::int64_t>(domains.size())});
      kind = std::prev(kinds.end());
    }
    for (const PowerDomainId id : tree_.path(tree_.topology().place(share.node).rack)) {
      const std::size_t position = position_[id.value()];
      if (position == kWithin) continue;
      ++kind->nodes[static_cast<std::size_t>(
          std::lower_bound(domains.begin(), domains.end(), position) - domains.begin())];
    }
  }
  return kinds;
}

// Ascending.
std::vector<std::size_t> Relief::domains_of(const RunningGang& gang) const {
  std::vector<std::size_t> domains;
  for (const NodeShare& share : gang.power.nodes) {
    for (const PowerDomainId id : tree_.path(tree_.topology().place(share.node).rack)) {
      if (position_[id.value()] != kWithin) domains.push_back(position_[id.value()]);
    }
  }
  std::sort(domains.begin(), domains.end());
  domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
  return domains;
}

void Relief::add_candidate(std::size_t index, const RunningGang& gang) {
  const auto& ladder = gang.power.ladder;
  ORRERY_ASSERT(gang.step < ladder.size(), "a gang runs at a step of its ladder");
  Candidate candidate{.gang = index, .domains = domains_of(gang)};
  if (candidate.domains.empty()) return;
  const std::vector<Kind> kinds = kinds_of(gang, candidate.domains);
  const double value_now = gang.value * ladder[gang.step].throughput;
  for (std::size_t step = gang.step; step < ladder.size(); ++step) {
    Option option{.step = step,
                  .loss = value_now - gang.value * ladder[step].throughput,
                  .draw = std::vector<Milliwatts>(candidate.domains.size())};
    for (const Kind& kind : kinds) {
      const Milliwatts each = draws_of(tree_, {&kind.example, 1}, ladder[step].each).front().added;
      for (std::size_t d = 0; d < option.draw.size(); ++d) option.draw[d] += each * kind.nodes[d];
    }
    candidate.options.push_back(std::move(option));
  }
  if (gang.preemptible) {
    candidate.options.push_back({.loss = value_now + gang.stop_loss,
                                 .draw = std::vector<Milliwatts>(candidate.domains.size())});
  }
  candidates_.push_back(std::move(candidate));
}

std::size_t last_option(const Candidate& candidate) { return candidate.options.size() - 1; }

std::size_t lowest_clock(const Candidate& candidate) {
  const std::size_t last = last_option(candidate);
  return candidate.options[last].step ? last : last - 1;
}

/// Milliwatts saved in each domain if every candidate goes to its `last` option.
std::vector<Milliwatts> Relief::reach(std::size_t (*last)(const Candidate&)) const {
  std::vector<Milliwatts> won(over_.size());
  for (const Candidate& candidate : candidates_) {
    const Option& lowest = candidate.options[last(candidate)];
    for (std::size_t i = 0; i < candidate.domains.size(); ++i) {
      won[candidate.domains[i]] += candidate.options[0].draw[i] - lowest.draw[i];
    }
  }
  return won;
}

void Relief::forbid_needless_stops() {
  const std::vector<Milliwatts> by_clocks = reach(lowest_clock);
  for (Candidate& candidate : candidates_) {
    const bool needed = std::any_of(candidate.domains.begin(), candidate.domains.end(),
                                    [&](std::size_t d) { return by_clocks[d] < excess_[d]; });
    if (!needed) candidate.options.resize(lowest_clock(candidate) + 1);
  }
}

void Relief::settle_for_the_lowest() {
  const std::vector<Milliwatts> most = reach(last_option);
  for (std::size_t d = 0; d < over_.size(); ++d) {
    if (most[d] >= excess_[d]) continue;
    result_.above.push_back(over_[d]);
    excess_[d] = most[d];
  }
}

std::optional<Move> Relief::best_move(std::size_t index) const {
  const Candidate& candidate = candidates_[index];
  const Option& now = candidate.options[candidate.at];
  std::optional<Move> best;
  for (std::size_t o = candidate.at + 1; o < candidate.options.size(); ++o) {
    const Option& option = candidate.options[o];
    Milliwatts won = 0;
    for (std::size_t i = 0; i < candidate.domains.size(); ++i) {
      const Milliwatts wanted = std::max<Milliwatts>(excess_[candidate.domains[i]], 0);
      won += std::min(now.draw[i] - option.draw[i], wanted);
    }
    if (won <= 0) continue;
    const double price = (option.loss - now.loss) / static_cast<double>(won);
    if (!best || price < best->price) best = Move{price, index, o};
  }
  return best;
}

void Relief::apply(Candidate& candidate, std::size_t option) {
  for (std::size_t i = 0; i < candidate.domains.size(); ++i) {
    excess_[candidate.domains[i]] +=
        candidate.options[option].draw[i] - candidate.options[candidate.at].draw[i];
  }
  candidate.at = option;
}

// A price only rises while others save watts, so a move that is still valid when its turn comes is
// the cheapest of all.
void Relief::lower() {
  std::priority_queue<Move, std::vector<Move>, std::greater<>> queue;
  const auto offer = [&](std::size_t candidate) {
    if (const std::optional<Move> move = best_move(candidate)) queue.push(*move);
  };
  for (std::size_t c = 0; c < candidates_.size(); ++c) offer(c);
  while (!queue.empty()) {
    const Move move = queue.top();
    queue.pop();
    if (best_move(move.candidate) == move) apply(candidates_[move.candidate], move.option);
    offer(move.candidate);
  }
}

bool Relief::fits(const Candidate& candidate, std::size_t option) const {
  for (std::size_t i = 0; i < candidate.domains.size(); ++i) {
    const Milliwatts more =
        candidate.options[option].draw[i] - candidate.options[candidate.at].draw[i];
    if (more > 0 && excess_[candidate.domains[i]] + more > 0) return false;
  }
  return true;
}

// The last changes saved more than was needed, and others saved the same watts again: the most
// expensive are undone first.
void Relief::give_back() {
  std::vector<std::size_t> order(candidates_.size());
  for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
  const auto loss = [&](std::size_t c) { return candidates_[c].options[candidates_[c].at].loss; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loss(a) > loss(b); });
  for (const std::size_t c : order) {
    Candidate& candidate = candidates_[c];
    for (std::size_t option = 0; option < candidate.at; ++option) {
      if (fits(candidate, option)) apply(candidate, option);
    }
  }
}

PowerRelief Relief::solve() {
  forbid_needless_stops();
  settle_for_the_lowest();
  lower();
  give_back();
  for (const Candidate& candidate : candidates_) {
    if (candidate.at == 0) continue;
    const Option& option = candidate.options[candidate.at];
    result_.changes.push_back({candidate.gang, option.step});
    result_.loss += option.loss;
  }
  return std::move(result_);
}

}  // namespace

PowerRelief relieve(const PowerBudget& budget, const PowerCaps& caps,
                    std::span<const RunningGang> gangs) {
  return Relief(budget, caps, gangs).solve();
}

std::optional<PowerRelief> make_room(const PowerBudget& budget, const PowerCaps& caps,
                                     std::span<const RunningGang> gangs, GangsStarting starting) {
  double work = 0;
  for (const RunningGang& gang : gangs.last(starting.count)) {
    work += gang.value * gang.power.ladder[gang.step].throughput;
  }
  PowerRelief relief = relieve(budget, caps, gangs);
  if (work - relief.loss <= starting.alone) return std::nullopt;
  const PowerTree& tree = budget.tree();
  for (const RunningGang& gang : gangs.last(starting.count)) {
    for (const NodeShare& share : gang.power.nodes) {
      for (const PowerDomainId id : tree.path(tree.topology().place(share.node).rack)) {
        if (std::ranges::find(relief.above, id) != relief.above.end()) return std::nullopt;
      }
    }
  }
  return relief;
}

}  // namespace orrery
