#include "scheduler/power/planned_power.hpp"

namespace orrery {

PlannedPower::PlannedPower(const Situation& situation) : s_(situation) {
  if (s_.power != nullptr) budget_ = *s_.power;
}

bool PlannedPower::holds(std::span<const PlacedGang> gangs,
                         std::span<const GangTerms> terms) const {
  PowerBudget budget = *budget_;
  for (std::size_t i = 0; i < gangs.size(); ++i) {
    const auto draws = draws_of_gang(budget.tree(), gangs[i], terms[i].draw);
    if (budget.try_add(*s_.caps, draws)) return false;
  }
  return true;
}

bool PlannedPower::holds(const RunningJob& job) const {
  PowerBudget budget = *budget_;
  for (std::size_t i = 0; i < job.gangs.size(); ++i) {
    const auto draws = draws_of_gang(budget.tree(), job.gangs[i], terms_now(job, i).draw);
    if (budget.try_add(*s_.caps, draws)) return false;
  }
  return true;
}

void PlannedPower::enter(const PlacedGang& gang, const GangTerms& terms) {
  if (budget_) budget_->add(draws_of_gang(budget_->tree(), gang, terms.draw));
}

void PlannedPower::enter(std::span<const PlacedGang> gangs, std::span<const GangTerms> terms) {
  for (std::size_t i = 0; i < gangs.size(); ++i) enter(gangs[i], terms[i]);
}

void PlannedPower::enter(const RunningJob& job) {
  for (std::size_t i = 0; i < job.gangs.size(); ++i) enter(job.gangs[i], terms_now(job, i));
}

void PlannedPower::leave(const RunningJob& job) {
  for (std::size_t i = 0; budget_ && i < job.gangs.size(); ++i) {
    budget_->remove(draws_of_gang(budget_->tree(), job.gangs[i], terms_now(job, i).draw));
  }
}

void PlannedPower::change(std::span<const NodeShare> nodes, const ClockStep& from,
                          const ClockStep& to) {
  const PowerTree& tree = budget_->tree();
  budget_->remove(draws_of(tree, nodes, from.each));
  budget_->add(draws_of(tree, nodes, to.each));
}

void PlannedPower::set_clock(std::uint32_t running, std::uint32_t gang, const ClockStep& step) {
  GangTerms& terms =
      clocked_.try_emplace({running, gang}, s_.running[running].terms[gang]).first->second;
  terms.clock = step.clock;
  terms.draw = step.each;
}

const GangTerms& PlannedPower::terms_now(const RunningJob& job, std::size_t gang) const {
  const auto at = static_cast<std::uint32_t>(&job - s_.running.data());
  const auto found = clocked_.find({at, static_cast<std::uint32_t>(gang)});
  return found == clocked_.end() ? job.terms[gang] : found->second;
}

}  // namespace orrery
