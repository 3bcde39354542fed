#include "executor/live_setup.hpp"

#include <fmt/format.h>

#include <utility>

#include "store/stored_facts.hpp"

namespace orrery {
namespace {

/// Texts that brought new work: "work.000001" and so on.
constexpr std::string_view kWorkText = "work.";

}  // namespace

LiveSetup::LiveSetup(std::unique_ptr<ControlFacts> facts, const SetupTexts& texts)
    : texts_(texts), facts_(std::move(facts)), intake_(*facts_) {}

Result<std::unique_ptr<LiveSetup>> LiveSetup::make(const ControlFacts::Facts& facts,
                                                   const StoreTexts& texts,
                                                   const ControllerSettings& settings) {
  const Result<SetupTexts> setup = setup_texts(texts);
  if (!setup) return tl::unexpected(setup.error());
  Result<StoredFacts> stored = stored_facts(facts, *setup);
  if (!stored) return forward_error(stored);
  auto live = std::make_unique<LiveSetup>(std::move(stored->facts), *setup);
  live->control_ = live->facts_->setup(stored->policy, setup->begin);
  live->control_.nodes_begin = NodeHealth::kJoining;
  live->control_.timing.grace = Duration::from_seconds(settings.grace.value());
  live->control_.timing.backoff = Duration::from_seconds(settings.backoff.value());
  if (Status taken = live->take_up(texts); !taken) return forward_error(taken);
  return live;
}

Status LiveSetup::take_up(const StoreTexts& texts) {
  for (const auto& [name, text] : texts) {
    if (!name.starts_with(kWorkText)) continue;
    ++works_;
    if (Status taken = intake_.take_up_work(text); !taken) return taken;
  }
  return {};
}

StoreTexts LiveSetup::work_text(const std::string& text) {
  return {{fmt::format("{}{:06}", kWorkText, ++works_), text}};
}

}  // namespace orrery
