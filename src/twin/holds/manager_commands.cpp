#include "twin/holds/manager_commands.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery {

void ManagerCommands::carry_out(const ManagerOrder& order) {
  waiting_.push_back({outside_.term(), order});
  if (!busy_) begin_next();
}

/// A command has its effect at its beginning or at its end; what it reports is of that time.
void ManagerCommands::begin_next() {
  busy_ = false;
  std::erase_if(waiting_,
                [term = outside_.term()](const Command& each) { return each.term != term; });
  if (waiting_.empty()) return;
  busy_ = true;
  const Command command = std::move(waiting_.front());
  waiting_.pop_front();
  const Duration most = chance(faults_.slow) ? faults_.slow_max : Duration::milliseconds(500);
  const Duration takes = Duration::nanoseconds(
      static_cast<std::int64_t>(context_.rng().below(static_cast<std::uint64_t>(most.count_ns()))));
  std::optional<ManagerReport> early;
  const bool at_once = context_.rng().below(2) == 0;
  if (at_once) early = run(command);
  context_.time().after(takes, [this, command, at_once, early] {
    const bool lives = command.term == outside_.term();
    std::optional<ManagerReport> report = early;
    // A command may outlive its controller.
    if (!at_once && (lives || context_.rng().below(2) == 0)) report = run(command);
    if (report && lives) outside_.report(*report);
    begin_next();
  });
}

std::optional<ManagerReport> ManagerCommands::run(const Command& command) {
  const std::uint32_t manager = command.order.manager;
  if (const auto* hold = std::get_if<EnsureHold>(&command.order.what)) {
    const std::optional<HoldAnswer> answer = ensure(*hold);
    if (!answer) return std::nullopt;
    return ManagerReport{manager, *answer};
  }
  if (const auto* question = std::get_if<ListHolds>(&command.order.what)) {
    return ManagerReport{manager, list(*question)};
  }
  if (manager_.answers()) manager_.cancel(std::get<ReleaseHold>(command.order.what));
  return std::nullopt;
}

std::optional<HoldAnswer> ManagerCommands::ensure(const EnsureHold& hold) {
  HoldAnswer answer{.key = hold.key, .id = {}, .refused = {}, .text = {}};
  if (!manager_.answers()) {
    answer.text = "Unable to contact the resource manager";
    return answer;
  }
  const auto made = manager_.submit(hold);
  if (const auto* id = std::get_if<std::uint64_t>(&made)) {
    answer.id = std::to_string(*id);
    if (chance(faults_.doubled)) (void)manager_.submit(hold);
  } else {
    answer.refused = std::get<HoldRefusal>(made);
    answer.text = "refused";
  }
  if (!chance(faults_.lost)) return answer;
  if (context_.rng().below(2) == 0) return std::nullopt;
  return HoldAnswer{.key = hold.key, .id = {}, .refused = {}, .text = "Timed out"};
}

ManagerListing ManagerCommands::list(const ListHolds& question) {
  ManagerListing list = manager_.list();
  list.asked = question.asked;
  if (!manager_.answers() || chance(faults_.half)) {
    list.complete = false;
    list.trouble = "Unable to contact the resource manager";
    const std::size_t some = manager_.answers() ? context_.rng().below(list.holds.size() + 1) : 0;
    list.holds.resize(some);
    return list;
  }
  lied_ = !lied_ && chance(faults_.empty);
  if (lied_) list.holds.clear();
  return list;
}

}  // namespace orrery
