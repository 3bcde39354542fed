#include "tests/scenarios/scenario_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/format/field_writer.hpp"
#include "tests/scenarios/scenario_text.hpp"

namespace orrery {
namespace {

std::uint32_t devices_of(std::span<const PlacedGang> gangs) {
  std::uint32_t devices = 0;
  for (const PlacedGang& gang : gangs) devices += gang.allocation.devices();
  return devices;
}

/// The end of the latest part.
std::optional<Instant> end_of(Instant begin, std::span<const GangTerms> terms) {
  std::optional<Instant> end;
  for (const GangTerms& one : terms) {
    if (one.length) end = std::max(end.value_or(begin), begin + *one.length);
  }
  return end;
}

}  // namespace

void ScenarioLog::tell(Instant at, const Event& event, std::span<const Decision> decided) {
  now_ = at;
  decided_ = decided;
  std::visit([this](const auto& each) { on(each); }, event);
}

template <class Decided>
const Decided* ScenarioLog::decided_for(JobId job) const {
  for (const Decision& decision : decided_) {
    const auto* one = std::get_if<Decided>(&decision);
    if (one != nullptr && one->job == job) return one;
  }
  return nullptr;
}

void ScenarioLog::on(const JobStarted& event) {
  const Job& job = state_.job(event.job);
  const JobRequest& request = job.submission->request;
  std::string text = where_text(state_, request, event.gangs) +
                     terms_text(state_, request, event.gangs, event.terms);
  if (event.delay > Duration()) text += ", begins after " + event.delay.text();
  const auto* start = decided_for<StartJob>(event.job);
  if (event.microdollars != 0 && start != nullptr && start->price) {
    text += ", " + price_text(*start->price, parts_.spec().show);
  }
  if (job.done > 0) text += fmt::format(", {:.0f} % done", job.done * 100);
  const std::optional<Instant> end =
      event.expected ? std::optional(now_ + event.delay + *event.expected) : std::nullopt;
  shown_.erase(event.job);
  slots_.erase(event.job);
  write("start", job.name, text + done_text(end));
}

void ScenarioLog::on(const JobResized& event) {
  const JobRequest& request = state_.job(event.job).submission->request;
  const std::uint32_t before = state_.running(event.job).devices();
  const bool moves = devices_of(event.gangs) == before;
  std::string text = moves ? "to " : fmt::format("from {} to ", before);
  text += where_text(state_, request, event.gangs) +
          terms_text(state_, request, event.gangs, event.terms);
  if (event.in_favour_of.valid()) text += ", for " + state_.job(event.in_favour_of).name;
  const auto* resize = decided_for<ResizeJob>(event.job);
  if (resize != nullptr && resize->gained_device_seconds > 0) {
    text += fmt::format(", gains {:.0f} device-hours for {:.0f}",
                        resize->gained_device_seconds / 3600, resize->cost_device_seconds / 3600);
  }
  write(moves ? "move" : "resize", request.name, text + done_text(end_of(now_, event.terms)));
}

void ScenarioLog::on(const ClockSet& event) {
  const RunningJob& run = state_.running(event.job);
  const std::optional<Instant> end =
      event.terms.length ? std::optional(now_ + *event.terms.length) : std::nullopt;
  write("clock", run.request->name,
        fmt::format("{:.2f} to {:.2f}, {} a device{}", run.terms[event.gang].clock,
                    event.terms.clock, print(event.terms.draw), done_text(end)));
}

void ScenarioLog::on(const JobStopping& event) {
  if (event.reason == StopReason::kFinished) return;
  const RunningJob& run = state_.running(event.job);
  const std::string at_risk =
      fmt::format(", {} x {} since its last checkpoint", run.at_risk(now_).text(), run.devices());
  const bool for_power = event.reason == StopReason::kPower;
  if (for_power || event.reason == StopReason::kPreempted) ++preempted_;
  if (event.reason == StopReason::kPreempted) {
    return write("preempt", run.request->name,
                 "for " + state_.job(event.in_favour_of).name + at_risk);
  }
  if (for_power) {
    return write("preempt", run.request->name, "for want of power" + at_risk);
  }
  std::string text(word_of(event.reason));
  if (event.blame.node.valid()) text += " at " + parts_.topology().node_name(event.blame.node);
  write("stop", run.request->name, text);
}

void ScenarioLog::on(const JobRequeued& event) {
  const Progress& progress = event.progress;
  std::string text = fmt::format("{:.0f} % done", progress.done * 100);
  if (progress.lost > Duration()) text += ", lost " + progress.lost.text();
  if (progress.undetected > Duration()) {
    text += ", stood unseen for " + progress.undetected.text();
  }
  write("again", state_.job(event.job).name, text);
}

void ScenarioLog::on(const JobEnded& event) {
  const Job& job = state_.job(event.job);
  const std::string_view what = event.phase == JobPhase::kFinished ? "done" : word_of(event.phase);
  write(what, job.name, "after " + (now_ - job.submitted).text());
}

// Intermediate states of a node on the way to another state are not logged.
void ScenarioLog::on(const NodeChanged& event) {
  const std::string name = parts_.topology().node_name(event.node);
  if (event.blame.layer != FaultLayer::kNone)
    return write("fault", "", name + ": " + event.blame.evidence);
  if (event.health == NodeHealth::kRepairing || event.health == NodeHealth::kJoining) return;
  write("node", "", fmt::format("{}: {}", name, word_of(event.health)));
}

void ScenarioLog::on(const SpareSet& event) {
  if (event.spare) return;
  write("spare", "", parts_.topology().node_name(event.node) + ": steps in");
}

// A switch has many links, and all change at once.
void ScenarioLog::on(const LinkChanged& event) {
  const bool told = links_ && links_->first == now_ &&
                    links_->second.health == event.state.health &&
                    links_->second.load == event.state.load;
  if (told) return;
  links_ = {now_, event.state};
  write("links", "",
        fmt::format("some with {:.0f} % of their bandwidth, {:.0f} % loaded",
                    event.state.health * 100, event.state.load * 100));
}

void ScenarioLog::on(const PowerLimitSet& event) {
  const bool cap = event.what == PowerLimitSet::What::kCap;
  const std::string text = !event.limit
                               ? "as built again"
                               : print(*event.limit) + (cap ? " at most" : " left of its supply");
  write("power", "", parts_.topology().power_name(event.domain) + ": " + text);
}

void ScenarioLog::on(const FleetSet&) { write("fleet", "", "has other nodes"); }

void ScenarioLog::on(const TenantsSet&) {
  write("tenants", "", "have other guarantees and limits");
}

void ScenarioLog::on(const SlotsReserved& event) {
  for (const Reservation& slot : event.slots) {
    const auto known = slots_.find(slot.job);
    if (slot.start <= now_ || (known != slots_.end() && known->second == slot.start)) continue;
    slots_[slot.job] = slot.start;
    const JobRequest& request = state_.job(slot.job).submission->request;
    write("reserve", request.name,
          fmt::format("{} from {}", where_text(state_, request, slot.gangs),
                      clock_text(parts_.spec(), slot.start)));
  }
}

void ScenarioLog::on(const PlanFound& event) {
  const Work& work = parts_.cluster().resolve_context(now_).works[event.key.work];
  write("plan", "",
        plan_text(parts_.topology(), work, event.key, *parts_.cluster().plan(event.key)));
}

void ScenarioLog::on(const DecisionDropped& event) {
  write("dropped", state_.job(event.job).name, event.why);
}

void ScenarioLog::on(const LemonFound& event) {
  write("lemon", "",
        fmt::format("{}: {} faults", parts_.topology().node_name(event.node), event.faults));
}

// Writes nothing while a job still lacks its plan; skips jobs whose victims are about to leave.
void ScenarioLog::tell_waiting(Instant at, const Core& core) {
  now_ = at;
  for (const Decision& decision : core.decisions()) {
    if (std::holds_alternative<WantPlan>(decision)) return;
  }
  for (const StillWaits& one : core.still_waiting()) {
    if (state_.job(one.job).phase != JobPhase::kQueued) continue;
    const auto known = shown_.find(one.job);
    if (known != shown_.end() && known->second.kind == one.refusal.kind &&
        known->second.level == one.refusal.level) {
      continue;
    }
    const std::span<const Reservation> slots = state_.slots();
    const bool has_room = std::any_of(slots.begin(), slots.end(), [&](const Reservation& slot) {
      return slot.job == one.job && slot.start <= at;
    });
    if (has_room) continue;
    shown_.insert_or_assign(one.job, one.refusal);
    write("waits", state_.job(one.job).name, shown_refusal(one.refusal));
  }
}

void ScenarioLog::tell_refused(Instant until) {
  const std::span<const RefusedJob> refused = parts_.refused();
  for (; refused_ < refused.size() && refused[refused_].at <= until; ++refused_) {
    now_ = refused[refused_].at;
    write("refused", refused[refused_].name, refused[refused_].why);
  }
}

std::string ScenarioLog::done_text(std::optional<Instant> end) const {
  if (!end) return ", runs until it is stopped";
  return ", done " + clock_text(parts_.spec(), *end);
}

void ScenarioLog::write(std::string_view what, std::string_view who, std::string_view text) {
  const std::string clock = clock_text(parts_.spec(), now_);
  if (clock.find("d ") != std::string::npos && std::stoi(clock) != day_) {
    day_ = std::stoi(clock);
    text_ += fmt::format("-- day {}\n", day_);
  }
  std::string line = fmt::format("{}  {:<8}{:<15}", clock.substr(clock.size() - 8), what, who);
  if (!who.empty() && who.size() >= 15) line += ' ';
  text_ += line + std::string(text) + "\n";
}

void ScenarioLog::tell_end(Instant at) {
  int over = 0;
  int waits = 0;
  int started = 0;
  std::uint32_t resized = 0;
  double waited = 0;
  for (std::size_t i = 0; i < state_.jobs(); ++i) {
    const Job& job = state_.job(JobId::at(i));
    over += ended(job.phase) ? 1 : 0;
    waits += !ended(job.phase) && !holds_devices(job.phase) ? 1 : 0;
    resized += job.usage.resizes;
    if (job.first_start == Instant::max()) continue;
    ++started;
    waited += (job.first_start - job.submitted).count_seconds();
  }
  const Duration wait = Duration::seconds(started > 0 ? std::lround(waited / started) : 0);
  text_ += fmt::format(
      "{} done, {} running, {} waiting; {} preempted, {} resized or moved; mean wait {}\n", over,
      state_.running().size(), waits, preempted_, resized, wait.text());
  if (parts_.spec().show == Shown::kLedger) tell_ledger(at);
}

// Counts whole device-nanoseconds, so that the lines add up to devices x time exactly.
void ScenarioLog::tell_ledger(Instant at) {
  const Ledger& ledger = state_.ledger();
  std::array<DeviceTime, kDeviceUses> sums{};
  DeviceTime all = 0;
  for (std::uint32_t t = 0; t < ledger.types(); ++t) {
    for (std::size_t u = 0; u < kDeviceUses; ++u) {
      const DeviceTime time = ledger.sum(FleetTypeId(t), static_cast<DeviceUse>(u), at);
      sums[u] += time;
      all += time;
    }
  }
  for (std::size_t u = 0; u < kDeviceUses; ++u) {
    if (sums[u] == 0) continue;
    text_ += fmt::format("{:<12}{:>14.2f} device-hours  {:6.2f} %\n",
                         word_of(static_cast<DeviceUse>(u)), device_hours(sums[u]),
                         100 * static_cast<double>(sums[u]) / static_cast<double>(all));
  }
  text_ += fmt::format("{:<12}{:>14.2f} device-hours\n", "all", device_hours(all));
}

}  // namespace orrery
