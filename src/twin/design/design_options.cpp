#include "twin/design/design_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

/// Two types need two sets of spares, drivers and skills: a smaller gain does not pay for that.
constexpr double kMixGain = 1.03;
constexpr double kYearSeconds = 8760 * 3600.0;
constexpr double kUsualElectricity = 0.07 / 3.6e6;  ///< dollars a joule, for the order alone

const WorkRate* rate_at(const Design& design, std::size_t candidate, std::size_t work) {
  const MaybeRate& rate = design.candidates[candidate].rates[work];
  return rate ? &*rate : nullptr;
}

bool does_all(const Design& design, std::size_t candidate) {
  const std::vector<MaybeRate>& rates = design.candidates[candidate].rates;
  return std::all_of(rates.begin(), rates.end(), [](const MaybeRate& r) { return r.has_value(); });
}

std::size_t reference_position(const Design& design) {
  for (std::size_t c = 0; c < design.candidates.size(); ++c) {
    if (does_all(design, c)) return c;
  }
  return 0;
}

/// Tokens of the work on the reference, or on the first candidate that does it.
double reference_tokens(const Design& design, std::size_t work) {
  if (const WorkRate* rate = rate_at(design, reference_position(design), work)) return rate->tokens;
  for (std::size_t c = 0; c < design.candidates.size(); ++c) {
    if (const WorkRate* rate = rate_at(design, c, work)) return rate->tokens;
  }
  return 1;
}

class OptionMaker {
 public:
  explicit OptionMaker(const Design& design) : design_(design), spec_(*design.spec) {}

  /// Returns none if a type cannot do its work.
  std::optional<DesignOption> make(std::vector<std::size_t> candidate_of) const {
    for (std::size_t i = 0; i < candidate_of.size(); ++i) {
      if (rate_at(design_, candidate_of[i], i) == nullptr) return std::nullopt;
    }
    DesignOption option{.candidate_of = std::move(candidate_of)};
    Watts power;
    std::optional<Dollars> cost = Dollars(0);
    for (std::size_t i = 0; i < option.candidate_of.size(); ++i) {
      const DesignCandidate& candidate = design_.candidates[option.candidate_of[i]];
      const double each = accelerators_for(design_, option, i);
      power += candidate.power * candidate.pue * each;
      if (candidate.price && cost) {
        *cost += candidate.price->each * each * (1 + design_.beside);
      } else {
        cost.reset();
      }
    }
    limit(option, power, cost);
    option.label = label_of(option);
    return option;
  }

 private:
  void limit(DesignOption& option, Watts power, std::optional<Dollars> cost) const {
    option.work = spec_.site.power / power;
    if (spec_.site.budget && cost) {
      const double affordable = *spec_.site.budget / *cost;
      if (affordable < option.work) option.limit = DesignLimit::kMoney;
      option.work = std::min(option.work, affordable);
    }
    option.power = power * option.work;
    if (cost) option.cost = *cost * option.work;
    switch (spec_.objective) {
      case DesignObjective::kWork:
        option.score = option.work;
        break;
      case DesignObjective::kWorkPerDollar: {
        const double price =
            spec_.site.electricity.value_or(DollarsPerJoule(kUsualElectricity)).value();
        const double energy = power.value() * kYearSeconds * spec_.site.years * price;
        option.score = cost ? 1 / (cost->value() + energy) : 0;
        break;
      }
      case DesignObjective::kWorkPerJoule:
        option.score = 1 / power.value();
        break;
    }
  }

  [[nodiscard]] std::string label_of(const DesignOption& option) const {
    std::vector<std::string> parts;
    for (std::size_t c = 0; c < design_.candidates.size(); ++c) {
      std::vector<std::string_view> works;
      for (std::size_t i = 0; i < option.candidate_of.size(); ++i) {
        if (option.candidate_of[i] == c) works.push_back(spec_.workload[i].name);
      }
      if (works.empty()) continue;
      const std::string& id = design_.candidates[c].accelerator->id;
      const bool all = works.size() == option.candidate_of.size();
      parts.push_back(all ? id : fmt::format("{} for {}", id, fmt::join(works, ", ")));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  const Design& design_;
  const DesignSpec& spec_;
};

/// Tries every division of the works between two types, by the bits of `mask`.
std::optional<DesignOption> best_pair(const Design& design, const OptionMaker& maker) {
  const std::size_t works = design.spec->workload.size();
  std::optional<DesignOption> best;
  for (std::size_t a = 0; a < design.candidates.size(); ++a) {
    for (std::size_t b = a + 1; b < design.candidates.size(); ++b) {
      for (std::size_t mask = 1; mask + 1 < (std::size_t{1} << works); ++mask) {
        std::vector<std::size_t> of(works);
        for (std::size_t i = 0; i < works; ++i) of[i] = (mask >> i & 1) != 0 ? b : a;
        std::optional<DesignOption> option = maker.make(std::move(of));
        if (option && (!best || option->score > best->score)) best = std::move(option);
      }
    }
  }
  return best;
}

}  // namespace

std::string reference_of(const Design& design) {
  return design.candidates[reference_position(design)].accelerator->id;
}

double accelerators_for(const Design& design, const DesignOption& option, std::size_t work) {
  const WorkRate* rate = rate_at(design, option.candidate_of[work], work);
  return design.spec->workload[work].share * reference_tokens(design, work) / rate->tokens;
}

Result<std::vector<DesignOption>> design_options(const Design& design) {
  const OptionMaker maker(design);
  const std::size_t works = design.spec->workload.size();
  std::vector<DesignOption> options;
  options.reserve(design.candidates.size() + 1);
  for (std::size_t c = 0; c < design.candidates.size(); ++c) {
    std::optional<DesignOption> option = maker.make(std::vector<std::size_t>(works, c));
    if (option) options.push_back(*std::move(option));
  }
  double single = 0;
  for (const DesignOption& option : options) single = std::max(single, option.score);
  std::optional<DesignOption> pair = best_pair(design, maker);
  if (pair && pair->score > single * kMixGain) options.push_back(*std::move(pair));
  if (options.empty()) {
    return infeasible(
        fmt::format("no candidate can do the work:\n  {}", fmt::join(design.refused, "\n  ")));
  }
  std::stable_sort(options.begin(), options.end(),
                   [](const DesignOption& a, const DesignOption& b) { return a.score > b.score; });
  return options;
}

void explain_others(Design& design) {
  for (DesignOption& option : design.others) {
    if (!option.why.empty()) continue;
    const double of = option.score / design.chosen.score;
    option.why = fmt::format("{:.0f} % of the {}, limited by {}", of * 100,
                             word_of(design.spec->objective), word_of(option.limit));
  }
}

}  // namespace orrery
