#include "executor/live/live_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace orrery {
namespace {

/// Names of texts that brought new work: "work.000001" and so on.
constexpr std::string_view kWorkText = "work.";
/// Names of texts with job numbers that a lost part of the log gave out: "lost_jobs.000001" with
/// "15 31" means 15 to 30.
constexpr std::string_view kLostText = "lost_jobs.";
/// The most fleets that are kept although the controller was never changed to them. While a log is
/// replayed, its state has one of them, the one that was asked for last.
constexpr std::ptrdiff_t kUnusedVersions = 4;

std::string numbered(std::string_view kind, std::size_t number) {
  return fmt::format("{}{:06}", kind, number);
}

}  // namespace

LiveSetup::LiveSetup(const Facts& base, StoredFacts stored, const SetupTexts& texts)
    : base_(base),
      texts_(texts),
      stored_(std::move(stored)),
      intake_(*stored_.facts),
      in_use_(stored_.facts.get()) {}

Result<std::unique_ptr<LiveSetup>> LiveSetup::make(const Facts& facts, const StoreTexts& texts,
                                                   const ControllerSettings& settings) {
  const Result<SetupTexts> setup = setup_texts(texts);
  if (!setup) return tl::unexpected(setup.error());
  Result<StoredFacts> stored = stored_facts(facts, *setup);
  if (!stored) return forward_error(stored);
  auto live = std::make_unique<LiveSetup>(facts, *std::move(stored), *setup);
  live->control_ = live->stored_.facts->setup(live->stored_.policy, setup->begin);
  live->control_.nodes_begin = NodeHealth::kJoining;
  live->control_.timing.grace = Duration::from_seconds(settings.grace.value());
  live->control_.timing.backoff = Duration::from_seconds(settings.backoff.value());
  live->control_.fleets.source = [made = live.get()](const std::string& fleet) {
    return made->version_of(fleet);
  };
  if (Status taken = live->take_up(texts); !taken) return forward_error(taken);
  return live;
}

LiveSetup::Version* LiveSetup::known(const std::string& fleet) {
  const auto found = std::ranges::find_if(
      versions_, [&](const auto& each) { return each->control.fleets.text == fleet; });
  if (found == versions_.end()) return nullptr;
  std::rotate(found, found + 1, versions_.end());
  return versions_.back().get();
}

Result<const ControlSetup*> LiveSetup::version_of(const std::string& fleet) {
  if (fleet.empty() || fleet == texts_.fleet) {
    stored_.facts->take_works(*in_use_);
    return &control_;
  }
  if (Version* version = known(fleet); version != nullptr) {
    version->stored.facts->take_works(*in_use_);
    return &version->control;
  }
  SetupTexts texts = texts_;
  texts.fleet = fleet;
  Result<StoredFacts> stored = stored_facts(base_, texts);
  std::optional<Error> tenants_refused;
  if (!stored && !texts.tenants.empty()) {
    tenants_refused = stored.error();
    texts.tenants.clear();
    stored = stored_facts(base_, texts);
  }
  if (!stored) return forward_error(stored);
  auto version = std::make_unique<Version>(Version{*std::move(stored), {}, {}});
  version->stored.facts->take_works(*in_use_);
  version->control = version->stored.facts->setup(control_.policy, control_.begin);
  version->control.nodes_begin = control_.nodes_begin;
  version->control.timing = control_.timing;
  version->control.lost_jobs = control_.lost_jobs;
  version->control.fleets = {control_.fleets.source, fleet, std::move(tenants_refused)};
  const auto unused = [](const auto& each) { return !each->used_by; };
  if (std::ranges::count_if(versions_, unused) >= kUnusedVersions) {
    versions_.erase(std::ranges::find_if(versions_, unused));
  }
  return &versions_.emplace_back(std::move(version))->control;
}

void LiveSetup::forget_left(std::uint32_t change) {
  std::erase_if(versions_, [&](const auto& each) {
    return each->used_by && *each->used_by < change && each->stored.facts.get() != in_use_;
  });
}

const ControlSetup& LiveSetup::in_use() const {
  const auto used = [this](const auto& each) { return each->stored.facts.get() == in_use_; };
  const auto found = std::ranges::find_if(versions_, used);
  return found == versions_.end() ? control_ : (*found)->control;
}

void LiveSetup::use(const State& state, std::uint32_t change) {
  const ControlFacts& before = *in_use_;
  in_use_ = stored_.facts.get();
  for (const std::unique_ptr<Version>& each : versions_) {
    if (&each->control != &state.setup()) continue;
    each->used_by = change;
    in_use_ = each->stored.facts.get();
  }
  in_use_->take_works(before);
  intake_.use(*in_use_);
  intake_.take_up_jobs(state);
}

Status LiveSetup::take_up(const StoreTexts& texts) {
  while (true) {
    const std::string name = numbered(kLostText, control_.lost_jobs.size() + 1);
    const auto found = texts.find(name);
    if (found == texts.end()) break;
    if (Status taken = take_up_lost(name, found->second); !taken) return taken;
  }
  while (true) {
    const auto found = texts.find(numbered(kWorkText, works_ + 1));
    if (found == texts.end()) return {};
    ++works_;
    if (Status taken = intake_.take_up_work(found->second); !taken) return taken;
  }
}

Status LiveSetup::take_up_lost(const std::string& name, const std::string& text) {
  JobNumbers lost;
  const char* const end = text.data() + text.size();
  const auto from = std::from_chars(text.data(), end, lost.from);
  const bool parted = from.ec == std::errc() && from.ptr != end && *from.ptr == ' ';
  const auto to = std::from_chars(parted ? from.ptr + 1 : end, end, lost.to);
  if (!parted || to.ec != std::errc() || to.ptr != end || lost.from >= lost.to) {
    return environment_error(
        fmt::format("the text \"{}\" of the store: \"{}\", expected two job numbers", name, text));
  }
  note_lost(lost);
  return {};
}

void LiveSetup::note_lost(const JobNumbers& lost) {
  control_.lost_jobs.push_back(lost);
  for (const std::unique_ptr<Version>& each : versions_) each->control.lost_jobs.push_back(lost);
}

StoreTexts LiveSetup::lose_jobs(const JobNumbers& lost) {
  note_lost(lost);
  return {
      {numbered(kLostText, control_.lost_jobs.size()), fmt::format("{} {}", lost.from, lost.to)}};
}

StoreTexts LiveSetup::work_text(const std::string& text) {
  return {{numbered(kWorkText, ++works_), text}};
}

}  // namespace orrery
