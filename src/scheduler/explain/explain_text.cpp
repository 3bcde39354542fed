#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/format/field_writer.hpp"
#include "scheduler/explain/explain.hpp"

namespace orrery {
namespace {

constexpr std::size_t kNamesMost = 8;

std::string cost_text(const Change& change) {
  std::string text;
  const double percent = change.longer ? std::round(*change.longer * 100) : 0;
  if (percent != 0) text = fmt::format("{:+.0f} % run time", percent);
  const double dollars = change.dearer ? std::round(*change.dearer) : 0;
  if (dollars != 0) {
    text += fmt::format("{}{}${:.0f}", text.empty() ? "" : ", ", dollars < 0 ? "-" : "+",
                        std::abs(dollars));
  }
  if (change.hungrier) {
    text += fmt::format("{}{:+.1f} kWh", text.empty() ? "" : ", ", *change.hungrier / 3.6e6);
  }
  return text.empty() ? "" : ": " + text;
}

std::string likely_text(const Explanation& job) {
  const std::optional<LikelyStart>& when = job.when;
  if (job.refusal && job.refusal->kind == RejectionKind::kNever) {
    return "  likely      never on this fleet\n";
  }
  if (!when) return "  likely      not known: no expected end makes room\n";
  if (when->median == Duration()) return "  likely      at the next decision\n";
  const std::string median =
      fmt::format("  likely      in {} (half of the cases)", when->median.text());
  if (when->late == Duration::max()) return median + "; nine of ten are not foreseen\n";
  return fmt::format("{}, in {} (nine of ten)\n", median, when->late.text());
}

}  // namespace

void Explanation::set_never(std::string text) {
  refusal = Refusal{.kind = RejectionKind::kNever};
  constexpr std::string_view kNever = "never: ";
  why = text.starts_with(kNever) ? text.substr(kNever.size()) : std::move(text);
  when.reset();
  blocked_by.clear();
  blocking.clear();
}

std::string Explanation::text() const {
  std::string text = fmt::format("{} waits for {}: {}\n", name, wish,
                                 refusal ? name_of(refusal->kind) : "in the queue");
  text += fmt::format("  why         {}\n", why);
  if (!blocked_by.empty()) {
    std::string list;
    for (std::size_t i = 0; i < blocked_by.size() && i < kNamesMost; ++i) {
      list += (i == 0 ? "" : ", ") + blocked_by[i];
    }
    if (blocked_by.size() > kNamesMost) {
      list += fmt::format(" and {} more", blocked_by.size() - kNamesMost);
    }
    text += fmt::format("  blocked by  {}\n", list);
  }
  if (ahead > 0) text += fmt::format("  ahead       {} in the queue\n", ahead);
  text += likely_text(*this);
  if (!deadline.empty()) text += fmt::format("  deadline    {}\n", deadline);
  for (const Change& change : changes) {
    text += fmt::format("  starts now  {}{}\n", change.what, cost_text(change));
  }
  if (changes.empty() && tried > 0) {
    text += fmt::format(
        "  starts now  by none of the {} changes tried: others of the queue come first\n", tried);
  }
  return text;
}

std::string refusal_text(const Refusal& refusal) {
  std::string what(name_of(refusal.kind));
  if (refusal.missing == 0) return what;
  return fmt::format("{}: {} accelerators short ({})", what, refusal.missing,
                     word_of(refusal.level));
}

}  // namespace orrery
