#include "scheduler/rounds/deadline_shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace orrery {
namespace {

/// Fraction of a quantity below which a difference counts as a rounding error.
constexpr double kTiny = 1e-9;
constexpr std::uint32_t kForever = std::numeric_limits<std::uint32_t>::max();

/// The number of slots up to a time, rounded up.
std::uint32_t slots_until(double seconds, double slot) {
  const double slots = std::ceil(seconds / slot - kTiny);
  return static_cast<std::uint32_t>(std::clamp(slots, 0.0, double{kForever}));
}

/// Free devices of one type, by slot.
class FreeBySlot {
 public:
  /// The number of free devices from `from` until the next step.
  struct Step {
    std::uint32_t from = 0;
    std::int64_t free = 0;
  };

  explicit FreeBySlot(std::uint32_t free) : steps_{{0, free}} {}

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  [[nodiscard]] std::int64_t now() const { return steps_.front().free; }

  /// Adds `devices`, which may be negative, in slots from `from` to before `to`. Equal neighbouring
  /// steps are joined.
  void add(std::uint32_t from, std::uint32_t to, std::int64_t devices) {
    if (from >= to) return;
    const std::size_t first = cut(from);
    const std::size_t last = to == kForever ? steps_.size() : cut(to);
    for (std::size_t i = first; i < last; ++i) steps_[i].free += devices;
    if (last < steps_.size()) join(last);
    join(first);
  }

 private:
  /// Returns the index of the step that begins at a slot, which is made if needed.
  std::size_t cut(std::uint32_t at) {
    const auto after = std::ranges::upper_bound(steps_, at, {}, &Step::from);
    const auto index = static_cast<std::size_t>(after - steps_.begin());
    if (steps_[index - 1].from == at) return index - 1;
    steps_.insert(after, {at, steps_[index - 1].free});
    return index;
  }
  /// Joins a step with the one before if they are equal.
  void join(std::size_t index) {
    if (index == 0 || steps_[index].free != steps_[index - 1].free) return;
    steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  std::vector<Step> steps_;
};

/// Free devices by slot, for each type.
using FreeByType = std::vector<FreeBySlot>;

FreeByType free_of(const DeadlineInputs& in) {
  FreeByType free;
  free.reserve(in.devices.size());
  for (const std::uint32_t devices : in.devices) free.emplace_back(devices);
  for (const DeviceRelease& release : in.releases) {
    const std::uint32_t from = std::max(1U, slots_until(release.after, in.slot));
    free[release.type].add(from, kForever, release.devices);
  }
  return free;
}

/// Devices of a job in slots from `from` to before `to`. In a plan neighbours differ in size.
struct PlannedSlots {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  const SizeRate* size = nullptr;  ///< none: it has no devices
};

/// The devices of a job until its deadline.
struct DevicePlan {
  std::size_t ladder = 0;
  std::vector<PlannedSlots> slots;
  double work = 0;            ///< work done in the slots
  double device_seconds = 0;  ///< device time until the work is done
  bool kept = false;          ///< whether it is done by the deadline

  [[nodiscard]] const SizeRate* now() const {
    return slots.empty() || slots.front().from > 0 ? nullptr : slots.front().size;
  }
};

void give_back(FreeBySlot& of_type, const DevicePlan& plan) {
  for (const PlannedSlots& part : plan.slots) {
    if (part.size != nullptr) of_type.add(part.from, part.to, part.size->devices);
  }
}

void take(FreeBySlot& of_type, const DevicePlan& plan) {
  for (const PlannedSlots& part : plan.slots) {
    if (part.size != nullptr) of_type.add(part.from, part.to, -std::int64_t{part.size->devices});
  }
}

/// The free devices of the type of a plan.
FreeBySlot& of_plan(FreeByType& free, const DeadlineJob& job, const DevicePlan& plan) {
  return free[job.ladders[plan.ladder].type];
}

/// The inputs of a plan.
struct PlanAsk {
  const DeadlineJob& job;
  std::size_t ladder = 0;
  double left = 0;
  double slot = 1;
  std::uint32_t from = 0;  ///< first slot that may be used
};

/// Progressive filling of one job on one type. A level is a number of sizes, from the smallest on.
class ProgressiveFilling {
 public:
  ProgressiveFilling(const PlanAsk& ask, const FreeBySlot& free)
      : ask_(ask),
        sizes_(ask.job.ladders[ask.ladder].sizes),
        end_(slots_until(ask.job.due.value_or(0), ask.slot)) {
    const std::vector<FreeBySlot::Step>& steps = free.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::uint32_t to = i + 1 < steps.size() ? steps[i + 1].from : kForever;
      const std::uint32_t begin = std::max(steps[i].from, ask.from);
      const std::uint32_t end = std::min(to, end_);
      if (begin < end) windows_.push_back({begin, end, steps[i].free});
    }
  }

  /// The plan with the least level that does the work, from the latest slot that suffices; else
  /// with the highest level.
  [[nodiscard]] DevicePlan plan() const {
    for (std::size_t level = 1; level <= sizes_.size(); ++level) {
      double work = 0;
      for (const Window& w : windows_) work += work_of({w.from, w.to, size_at(level, w)});
      if (is_enough(work)) return split(level);
    }
    return filled(sizes_.size(), 0);
  }

 private:
  struct Window {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::int64_t free = 0;
  };

  [[nodiscard]] bool is_enough(double work) const { return work >= ask_.left * (1 - kTiny); }

  [[nodiscard]] const SizeRate* size_at(std::size_t level, const Window& window) const {
    while (level > 0 && sizes_[level - 1].devices > window.free) --level;
    return level > 0 ? &sizes_[level - 1] : nullptr;
  }

  /// Seconds of work with a size; the deadline ends the last slot.
  [[nodiscard]] double time_of(const PlannedSlots& part) const {
    const double end = part.to == end_ ? *ask_.job.due : part.to * ask_.slot;
    const bool starts = part.from == 0 && part.size->option != ask_.job.has;
    return std::max(0.0, end - part.from * ask_.slot - (starts ? ask_.job.restart : 0));
  }

  [[nodiscard]] double work_of(const PlannedSlots& part) const {
    return part.size == nullptr || part.from >= part.to ? 0 : part.size->rate * time_of(part);
  }

  // Work falls as the point moves back in time, so the last window is looked at first.
  [[nodiscard]] DevicePlan split(std::size_t high) const {
    std::vector<double> before(windows_.size());
    for (std::size_t i = 1; i < windows_.size(); ++i) {
      const Window& w = windows_[i - 1];
      before[i] = before[i - 1] + work_of({w.from, w.to, size_at(high - 1, w)});
    }
    double after = 0;
    for (std::size_t i = windows_.size(); i-- > 0;) {
      const Window& w = windows_[i];
      const SizeRate* size = size_at(high, w);
      after += work_of({w.from, w.to, size});
      if (!is_enough(before[i] + after)) continue;
      const SizeRate* less = size_at(high - 1, w);
      const double slower = less == nullptr ? 0 : less->rate;
      const double a_slot = ((size == nullptr ? 0 : size->rate) - slower) * ask_.slot;
      if (a_slot <= 0) return filled(high, w.from);
      const double spare = std::floor((before[i] + after - ask_.left) / a_slot + kTiny);
      const double most = w.to - w.from - 1;
      const auto later = static_cast<std::uint32_t>(std::clamp(spare, 0.0, most));
      DevicePlan plan = filled(high, w.from + later);
      return plan.kept ? plan : filled(high, w.from);  // a restart may cost less at one size
    }
    return filled(high, 0);
  }

  /// The plan with level `high` from slot `point` on and one level less before.
  [[nodiscard]] DevicePlan filled(std::size_t high, std::uint32_t point) const {
    DevicePlan plan;
    plan.ladder = ask_.ladder;
    for (const Window& w : windows_) {
      const std::uint32_t at = std::clamp(point, w.from, w.to);
      if (w.from < at) append(plan, {w.from, at, size_at(high - 1, w)});
      if (at < w.to) append(plan, {at, w.to, size_at(high, w)});
    }
    const SizeRate* last = nullptr;
    for (const PlannedSlots& part : plan.slots) {
      if (part.size != nullptr) last = part.size;
    }
    plan.kept = is_enough(plan.work);
    const double over = plan.work - ask_.left;
    if (last != nullptr && over > 0) plan.device_seconds -= last->devices * over / last->rate;
    return plan;
  }

  void append(DevicePlan& plan, const PlannedSlots& part) const {
    if (part.size != nullptr) {
      plan.work += work_of(part);
      plan.device_seconds += part.size->devices * time_of(part);
    }
    if (!plan.slots.empty() && plan.slots.back().size == part.size) {
      plan.slots.back().to = part.to;
    } else {
      plan.slots.push_back(part);
    }
  }

  PlanAsk ask_;
  const std::vector<SizeRate>& sizes_;
  std::uint32_t end_;  ///< the slot after the deadline
  std::vector<Window> windows_;
};

bool has_size_of(const DeadlineJob& job, const SizeLadder& ladder) {
  return std::ranges::any_of(ladder.sizes,
                             [&](const SizeRate& size) { return size.option == job.has; });
}

/// The size that a job keeps for now, with its type.
struct StayingSize {
  std::uint32_t type = 0;
  SizeRate size;
};
std::optional<StayingSize> staying_size(const DeadlineJob& job) {
  if (job.stays <= 0) return std::nullopt;
  for (const SizeLadder& ladder : job.ladders) {
    for (const SizeRate& size : ladder.sizes) {
      if (size.option == job.has) return StayingSize{ladder.type, size};
    }
  }
  return std::nullopt;
}

/// The plan on the type that the job has, if that keeps its deadline; else the best one.
DevicePlan plan_of(const DeadlineJob& job, const FreeByType& free, double slot) {
  const auto cost = [](const DevicePlan& plan) {
    return std::tuple(!plan.kept, plan.kept ? plan.device_seconds : -plan.work);
  };
  double left = job.left;
  std::uint32_t from = 0;
  if (const std::optional<StayingSize> stays = staying_size(job)) {
    from = slots_until(job.stays, slot);
    left -= stays->size.rate * std::min(from * slot, job.due.value_or(0));
  }
  std::optional<DevicePlan> best;
  for (std::size_t l = 0; l < job.ladders.size(); ++l) {
    const FreeBySlot& of_type = free[job.ladders[l].type];
    DevicePlan plan = ProgressiveFilling({job, l, left, slot, from}, of_type).plan();
    if (plan.kept && has_size_of(job, job.ladders[l])) return plan;
    if (!best || cost(plan) < cost(*best)) best = std::move(plan);
  }
  return best.value_or(DevicePlan{});
}

/// The admitted jobs in the order of their deadlines.
std::vector<std::uint32_t> by_deadline(const DeadlineInputs& in, std::span<const char> admitted) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
    if (admitted[i] != 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::pair(*in.jobs[i].due, i); });
  return order;
}

/// The plans of all jobs that are admitted so far.
class AdmittedPlans {
 public:
  AdmittedPlans(const DeadlineInputs& in, std::span<const char> admitted)
      : in_(in), free_(free_of(in)) {
    for (const DeadlineJob& job : in.jobs) {
      const std::optional<StayingSize> stays = staying_size(job);
      if (!stays) continue;
      free_[stays->type].add(0, slots_until(job.stays, in.slot),
                             -std::int64_t{stays->size.devices});
    }
    const std::vector<std::uint32_t> order = by_deadline(in, admitted);
    plans_.reserve(order.size());
    for (const std::uint32_t job : order) plans_.push_back({job, planned(job, free_)});
    made_ = 0;
  }

  /// Plans that were made or taken back since construction.
  [[nodiscard]] std::uint64_t made() const { return made_; }

  /// Admits a job if it and all others keep their deadlines; else changes nothing.
  bool admit(std::uint32_t job) {
    const auto place = [&](std::uint32_t i) { return std::pair(*in_.jobs[i].due, i); };
    const auto at = std::ranges::upper_bound(plans_, place(job), {},
                                             [&](const Entry& entry) { return place(entry.job); });
    const auto before = static_cast<std::size_t>(at - plans_.begin());
    if (was_refused(job, before)) return false;
    if (!insert(job, before)) {
      if (refused_.size() == kRemembered) refused_.erase(refused_.begin());
      refused_.push_back({job, before});
      return false;
    }
    refused_.clear();
    opened_.clear();
    return true;
  }

 private:
  struct Entry {
    std::uint32_t job = 0;
    DevicePlan plan;
  };
  struct Refused {
    std::uint32_t job = 0;
    std::size_t before = 0;  ///< number of plans before it
  };
  static constexpr std::size_t kRemembered = 16;

  /// Whether an equal job was refused since the last admission.
  [[nodiscard]] bool was_refused(std::uint32_t job, std::size_t before) const {
    const DeadlineJob& asks = in_.jobs[job];
    return std::ranges::any_of(refused_, [&](const Refused& other) {
      const DeadlineJob& it = in_.jobs[other.job];
      return other.before == before && it.due == asks.due && it.left == asks.left &&
             it.has == asks.has && it.restart == asks.restart && it.stays == asks.stays &&
             it.ladders == asks.ladders;
    });
  }

  /// Inserts the job after the first `before` plans; returns false and keeps the plans if a
  /// deadline would be missed.
  bool insert(std::uint32_t job, std::size_t before) {
    open(before);
    DevicePlan own = plan_of(in_.jobs[job], opened_, in_.slot);
    made_ += in_.jobs[job].ladders.size();
    if (!own.kept) return false;
    FreeByType free = opened_;
    take(of_plan(free, in_.jobs[job], own), own);
    std::vector<Entry> tail;
    tail.reserve(1 + plans_.size() - before);
    tail.push_back({job, std::move(own)});
    const auto at = plans_.begin() + static_cast<std::ptrdiff_t>(before);
    for (auto it = at; it != plans_.end(); ++it) {
      tail.push_back({it->job, planned(it->job, free)});
      if (it->plan.kept && !tail.back().plan.kept) return false;
    }
    plans_.erase(at, plans_.end());
    std::ranges::move(tail, std::back_inserter(plans_));
    free_ = std::move(free);
    return true;
  }

  /// Updates opened_ to what the first `before` plans leave, by taking plans back or taking their
  /// devices again.
  void open(std::size_t before) {
    if (opened_.empty()) {
      opened_ = free_;
      opened_before_ = plans_.size();
    }
    while (opened_before_ != before) {
      const bool back = opened_before_ > before;
      const Entry& entry = plans_[back ? --opened_before_ : opened_before_++];
      FreeBySlot& of_type = of_plan(opened_, in_.jobs[entry.job], entry.plan);
      back ? give_back(of_type, entry.plan) : take(of_type, entry.plan);
      ++made_;
    }
  }

  /// Plans a job and takes its devices.
  [[nodiscard]] DevicePlan planned(std::uint32_t job, FreeByType& free) {
    DevicePlan plan = plan_of(in_.jobs[job], free, in_.slot);
    take(of_plan(free, in_.jobs[job], plan), plan);
    made_ += in_.jobs[job].ladders.size();
    return plan;
  }

  const DeadlineInputs& in_;
  FreeByType free_;           ///< what the plans leave
  std::vector<Entry> plans_;  ///< by deadline
  std::uint64_t made_ = 0;
  std::vector<Refused> refused_;  ///< the latest, since the last admission
  FreeByType opened_;             ///< what the first opened_before_ plans leave; empty: not known
  std::size_t opened_before_ = 0;
};

/// The index of the job that asks again first: 0, unless a round may end before all have asked.
std::size_t first_to_ask(const DeadlineInputs& in, std::size_t asking) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;  // of 2^64
  const std::size_t each = in.jobs.size() * (1 + in.devices.size());
  if (asking * each <= kAskAgainPlans) return 0;
  return static_cast<std::size_t>(((in.round * kGolden) >> 32) * asking >> 32);
}

/// The first slot: minimum shares, then what is left.
class FirstSlot {
 public:
  FirstSlot(const DeadlineInputs& in, std::span<const char> admitted)
      : in_(in), free_(free_of(in)), plans_(in.jobs.size()), given_(in.jobs.size()) {
    for (const std::uint32_t job : by_deadline(in, admitted)) {
      order_.push_back(job);
      DevicePlan plan = plan_of(in.jobs[job], free_, in.slot);
      take(of_plan(free_, in.jobs[job], plan), plan);
      if (const SizeRate* size = plan.now()) {
        const std::vector<SizeRate>& sizes = in.jobs[job].ladders[plan.ladder].sizes;
        given_[job] = Given{plan.ladder, static_cast<std::size_t>(size - sizes.data())};
      }
      plans_[job] = std::move(plan);
    }
    for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
      if (admitted[i] == 0) order_.push_back(i);
    }
    left_.reserve(free_.size());
    for (const FreeBySlot& of_type : free_) left_.push_back(of_type.now());
  }

  [[nodiscard]] DeadlineShares shares() {
    for (const std::uint32_t job : order_) {
      if (!given_[job]) begin(job);
    }
    grow();
    DeadlineShares shares(in_.jobs.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i]) shares[i] = size_of(i, *given_[i]).option;
    }
    return shares;
  }

 private:
  /// A size on a type.
  struct Given {
    std::size_t ladder = 0;
    std::size_t size = 0;
  };
  /// A larger size of a job.
  struct Offer {
    std::int64_t saved = 0;   ///< device-milliseconds saved for each device added
    bool has = false;         ///< the job has this size or a larger one now
    std::uint32_t place = 0;  ///< position in order_
    std::uint32_t job = 0;
    Given to;

    friend bool operator<(const Offer& a, const Offer& b) {
      return std::tuple(a.saved, a.has, b.place) < std::tuple(b.saved, b.has, a.place);
    }
  };

  [[nodiscard]] const SizeRate& size_of(std::size_t job, const Given& given) const {
    return in_.jobs[job].ladders[given.ladder].sizes[given.size];
  }

  /// Gives a job without devices its smallest size: on the type that it has, else on the first with
  /// room.
  void begin(std::uint32_t job) {
    const std::vector<SizeLadder>& ladders = in_.jobs[job].ladders;
    for (std::size_t l = 0; l < ladders.size(); ++l) {
      if (left_[ladders[l].type] < ladders[l].sizes.front().devices) continue;
      const bool stays = has_size_of(in_.jobs[job], ladders[l]);
      if (!given_[job] || stays) given_[job] = Given{l, 0};
    }
    if (given_[job]) {
      left_[ladders[given_[job]->ladder].type] -= size_of(job, *given_[job]).devices;
    }
  }

  void grow() {
    std::priority_queue<Offer> offers;
    const auto offer = [&](std::uint32_t place) {
      if (const std::optional<Offer> next = next_of(place)) offers.push(*next);
    };
    for (std::uint32_t place = 0; place < order_.size(); ++place) offer(place);
    while (!offers.empty()) {
      const Offer best = offers.top();
      offers.pop();
      const std::uint32_t more = added(best.job, best.to);
      std::int64_t& left = left_[in_.jobs[best.job].ladders[best.to.ladder].type];
      if (left < more) continue;
      left -= more;
      given_[best.job] = best.to;
      offer(best.place);
    }
  }

  /// The devices that a larger size adds to the size that a job is given.
  [[nodiscard]] std::uint32_t added(std::uint32_t job, const Given& to) const {
    return size_of(job, to).devices - size_of(job, *given_[job]).devices;
  }

  /// The smallest size that does more work in the slot than the one that the job is given; none:
  /// there is no such size, or no room for it.
  [[nodiscard]] std::optional<Offer> next_of(std::uint32_t place) const {
    const std::uint32_t job = order_[place];
    if (!given_[job]) return std::nullopt;
    const Given given = *given_[job];
    const SizeLadder& ladder = in_.jobs[job].ladders[given.ladder];
    const double work = work_in_slot(job, given);
    Given next{given.ladder, given.size + 1};
    while (next.size < ladder.sizes.size() && work_in_slot(job, next) <= work) ++next.size;
    if (next.size == ladder.sizes.size()) return std::nullopt;
    const std::uint32_t more = added(job, next);
    if (left_[ladder.type] < more) return std::nullopt;
    const double saved = (device_seconds(job, given) - device_seconds(job, next)) / more;
    const std::optional<std::uint32_t>& has = in_.jobs[job].has;
    const bool had =
        std::any_of(ladder.sizes.begin() + static_cast<std::ptrdiff_t>(next.size),
                    ladder.sizes.end(), [&](const SizeRate& size) { return size.option == has; });
    return Offer{std::llround(saved * 1000), had, place, job, next};
  }

  [[nodiscard]] double pause_of(std::uint32_t job, const SizeRate& size) const {
    return size.option == in_.jobs[job].has ? 0 : in_.jobs[job].restart;
  }
  [[nodiscard]] double work_in_slot(std::uint32_t job, const Given& given) const {
    const SizeRate& size = size_of(job, given);
    return size.rate * std::max(0.0, in_.slot - pause_of(job, size));
  }

  /// Device-time of a job that has a size in the first slot.
  [[nodiscard]] double device_seconds(std::uint32_t job, const Given& given) const {
    const SizeRate& size = size_of(job, given);
    const double left = in_.jobs[job].left - work_in_slot(job, given);
    if (left > 0) return size.devices * in_.slot + rest_of(job, given, left);
    return size.devices * (pause_of(job, size) + in_.jobs[job].left / size.rate);
  }

  /// Device-time from the second slot on: that of its plan if it is admitted, else that of its
  /// smallest size.
  [[nodiscard]] double rest_of(std::uint32_t job, const Given& given, double left) const {
    const DeadlineJob& asks = in_.jobs[job];
    const std::optional<DevicePlan>& plan = plans_[job];
    if (plan && plan->kept) {
      FreeBySlot free = free_[asks.ladders[plan->ladder].type];
      give_back(free, *plan);
      const PlanAsk ask{asks, plan->ladder, left, in_.slot, 1};
      const DevicePlan rest = ProgressiveFilling(ask, free).plan();
      if (rest.kept) return rest.device_seconds;
    }
    const SizeRate& least = asks.ladders[given.ladder].sizes.front();
    return least.devices * left / least.rate;
  }

  const DeadlineInputs& in_;
  FreeByType free_;                   ///< what the plans of admitted jobs leave
  std::vector<std::int64_t> left_;    ///< by type, in the first slot
  std::vector<std::uint32_t> order_;  ///< admitted jobs by deadline, then the others
  std::vector<std::optional<DevicePlan>> plans_;
  std::vector<std::optional<Given>> given_;
};

}  // namespace

DeadlineAdmission admit_by_deadline(const DeadlineInputs& in, std::span<const char> admitted) {
  DeadlineAdmission found{{admitted.begin(), admitted.end()}, 0};
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> again;
  for (std::uint32_t i = 0; i < in.jobs.size(); ++i) {
    if (admitted[i] == 0 && in.jobs[i].due) (in.jobs[i].asked ? again : first).push_back(i);
  }
  const std::size_t begin = first_to_ask(in, again.size());
  std::ranges::rotate(again, again.begin() + static_cast<std::ptrdiff_t>(begin));
  AdmittedPlans plans(in, admitted);
  const auto ask = [&](std::span<const std::uint32_t> asking, std::uint64_t most) {
    const std::uint64_t end = plans.made() + most;
    for (const std::uint32_t job : asking) {
      if (plans.made() >= end) break;
      if (plans.admit(job)) found.promised[job] = 1;
    }
  };
  ask(first, kAdmissionPlans);
  ask(again, kAskAgainPlans);
  found.plans = plans.made();
  return found;
}

DeadlineShares share_by_deadline(const DeadlineInputs& in, std::span<const char> admitted) {
  return FirstSlot(in, admitted).shares();
}

}  // namespace orrery
