#include "executor/holds/hold.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace orrery {
namespace {

constexpr std::string_view kPilot = "pilot-";
constexpr std::string_view kJob = "job-";

/// Reads a decimal number without leading zeros at the front of `text`, and removes it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  if (text.empty() || (text.front() == '0' && text.size() > 1 && text[1] != '-')) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string text_of(const HoldKey& key) {
  if (key.job) return fmt::format("{}{}-{}-{}", kJob, *key.job, key.epoch, key.id);
  return fmt::format("{}{}-{}", kPilot, key.epoch, key.id);
}

std::optional<HoldKey> hold_key_of(std::string_view text) {
  const bool of_job = text.starts_with(kJob);
  if (!of_job && !text.starts_with(kPilot)) return std::nullopt;
  text.remove_prefix(of_job ? kJob.size() : kPilot.size());
  HoldKey key;
  if (of_job) {
    const std::optional<std::uint64_t> job = take_number(text);
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (!job || *job >= kMost || !text.starts_with('-')) return std::nullopt;
    key.job = static_cast<std::uint32_t>(*job);
    text.remove_prefix(1);
  }
  const std::optional<std::uint64_t> epoch = take_number(text);
  if (!epoch || !text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  const std::optional<std::uint64_t> id = take_number(text);
  if (!id || !text.empty()) return std::nullopt;
  key.epoch = *epoch;
  key.id = *id;
  return key;
}

}  // namespace orrery
