#include "serving/scaling/scale_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// The least time between orders of opposite directions.
constexpr Duration kNotReversed = Duration::seconds(60);

std::uint32_t present_of(const ScaleQuestion& question) {
  std::uint32_t sum = 0;
  for (const ScaleVariant& each : question.variants) sum += each.present;
  return sum;
}

double usd_s_of(const ScaleQuestion& question, const ScaleVariant& variant) {
  return variant.usd_s + question.power.usd_per_joule * variant.watts;
}

/// Returns the share of a demand that one replica serves; 1: there is none.
double serves(const TokenDemand& demand, const ScaleVariant& variant) {
  const double replicas = replicas_for(demand, variant.capacity);
  return replicas > 1e-6 ? 1 / replicas : 1;
}

/// Returns the share of a demand that these counts serve.
double serve_all(const ScaleQuestion& question, const TokenDemand& demand,
                 const std::vector<std::uint32_t>& counts) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += counts[i] * serves(demand, question.variants[i]);
  }
  return sum;
}

std::string demand_text(const ScaleQuestion& question) {
  return fmt::format(
      "{:.0f} prompt and {:.0f} output tokens/s are expected in {} ({:.0f} % quantile)",
      question.traffic.demand.prompt_s, question.traffic.demand.output_s,
      (question.cold_start + DemandForecast::kTick).text(), 100 * question.terms.quantile);
}

std::string capacity_text(const ScaleQuestion& question) {
  std::string text;
  for (const ScaleVariant& each : question.variants) {
    const double requests = requests_s_of(each.capacity, question.traffic.shape);
    text += fmt::format("{}one replica{}{} serves {:.0f} and {:.0f}", text.empty() ? "" : ", ",
                        each.name.empty() ? "" : " on ", each.name,
                        requests * question.traffic.shape.prompt,
                        requests * question.traffic.shape.output);
    if (!each.capacity.keeps) text += " and misses its targets even with a single request";
  }
  return text;
}

std::string counts_text(const ScaleQuestion& question, const std::vector<std::uint32_t>& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string& name = question.variants[i].name;
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " + ", counts[i], name.empty() ? "" : " ",
                        name);
  }
  return text;
}

class ScalePlanner {
 public:
  explicit ScalePlanner(const ScaleQuestion& question)
      : question_(question), present_(present_of(question)) {
    now_.reserve(question.variants.size());
    for (const ScaleVariant& each : question.variants) now_.push_back(each.present);
  }

  ScaleAnswer plan() {
    const ScaleTerms& terms = question_.terms;
    if (present_ > terms.max) return less(present_ - terms.max, "more than max");
    if (present_ == 0 && terms.min == 0) return from_zero();
    if (present_ < terms.min) return more(terms.min, fmt::format("min is {}", terms.min));
    if (!is_capacity_known()) return with_unknown_capacity();
    if (serve_all(question_, question_.traffic.demand, now_) < 1 - kRounding) return out();
    return in();
  }

 private:
  static constexpr double kRounding = 1e-9;

  [[nodiscard]] ScaleAnswer answer(std::vector<std::uint32_t> counts, std::string why) const {
    std::uint32_t total = 0;
    for (const std::uint32_t count : counts) total += count;
    return {std::move(counts), total, std::move(why)};
  }
  [[nodiscard]] ScaleAnswer keep(const std::string& why) const { return answer(now_, why); }

  [[nodiscard]] bool is_capacity_known() const {
    return std::ranges::all_of(question_.variants,
                               [](const ScaleVariant& each) { return each.capacity.busy > 0; });
  }

  /// Returns how long an order of the other direction still has to wait; zero: it may come.
  [[nodiscard]] Duration held_for(ScaleDirection wanted) const {
    const std::optional<PastScaleOrder>& last = question_.last;
    if (!last) return {};
    Duration quiet = last->direction == wanted ? Duration() : kNotReversed;
    if (wanted == ScaleDirection::kIn) {
      quiet = std::max({quiet, kNotReversed, question_.cold_start});
    }
    return std::max(last->at + quiet - question_.now, Duration());
  }

  /// The cheapest counts for the demand that keep what there is.
  [[nodiscard]] ReplicaMix mix(std::uint32_t least) const {
    std::vector<MixVariant> variants;
    variants.reserve(now_.size());
    for (const ScaleVariant& each : question_.variants) {
      variants.push_back({.serves = serves(question_.traffic.demand, each),
                          .usd_s = each.usd_s,
                          .watts = each.watts,
                          .least = each.present,
                          .most = std::max(each.most, each.present)});
    }
    return least_cost_mix(variants, {.least = std::max(least, present_),
                                     .most = question_.terms.max,
                                     .watts = question_.power.watts,
                                     .usd_per_joule = question_.power.usd_per_joule});
  }

  /// At least so many replicas, as many as the demand needs.
  [[nodiscard]] ScaleAnswer more(std::uint32_t least, const std::string& why) const {
    const ReplicaMix wanted = mix(std::max(least, 1U));
    if (wanted.counts.empty()) {
      return keep(why + ", but neither machines nor power allow another replica");
    }
    return answer(wanted.counts, why);
  }

  [[nodiscard]] ScaleAnswer from_zero() const {
    if (question_.traffic.waiting == 0) return keep("There are no requests and no replicas.");
    return more(1, fmt::format("there is no replica for the requests that wait ({})",
                               question_.traffic.waiting));
  }

  [[nodiscard]] ScaleAnswer with_unknown_capacity() const {
    const std::string unknown = "no replica has measured its pace yet";
    return is_idle() ? idle() : keep(unknown);
  }

  [[nodiscard]] ScaleAnswer out() const {
    const std::string need =
        fmt::format("{}; {}", demand_text(question_), capacity_text(question_));
    if (const Duration held = held_for(ScaleDirection::kOut); held > Duration()) {
      return keep(fmt::format("{}. More replicas wait for {}, as one was just given up", need,
                              held.text()));
    }
    ScaleAnswer wanted = more(1, need);
    if (wanted.replicas == now_) {
      wanted.why += fmt::format(
          ". {} cannot serve it, and neither max ({}) nor machines nor power "
          "allow another",
          counts_text(question_, now_), question_.terms.max);
      return wanted;
    }
    wanted.why += ", so " + counts_text(question_, wanted.replicas) + " are needed";
    if (serve_all(question_, question_.traffic.demand, wanted.replicas) < 1 - kRounding) {
      wanted.why += fmt::format(" and more, which max ({}), machines or power do not allow",
                                question_.terms.max);
    }
    return wanted;
  }

  [[nodiscard]] bool is_idle() const {
    return question_.terms.min == 0 && question_.traffic.waiting == 0 &&
           question_.traffic.running == 0 &&
           question_.traffic.last_request + question_.terms.idle <= question_.now;
  }

  [[nodiscard]] ScaleAnswer idle() const {
    if (held_for(ScaleDirection::kIn) > Duration())
      return keep("The service is idle, and was just scaled.");
    return less(1, fmt::format("there was no request for {}", question_.terms.idle.text()));
  }

  [[nodiscard]] ScaleAnswer in() const {
    if (is_idle()) return idle();
    const std::string need =
        fmt::format("{}; {}", demand_text(question_), capacity_text(question_));
    if (present_ <= std::max(question_.terms.min, 1U)) return keep(need);
    if (const Duration held = held_for(ScaleDirection::kIn); held > Duration()) return keep(need);
    ScaleAnswer fewer = less(1, need);
    if (fewer.replicas == now_) {
      fewer.why +=
          fmt::format("; {} serve it and one fewer would not", counts_text(question_, now_));
      return fewer;
    }
    fewer.why += ", so " + counts_text(question_, fewer.replicas) + " serve it";
    return fewer;
  }

  /// Gives up so many replicas, each the one that saves most of those without which the rest serves
  /// the demand; where no rest does, only those beyond max.
  [[nodiscard]] ScaleAnswer less(std::uint32_t replicas, const std::string& why) const {
    std::vector<std::uint32_t> counts = now_;
    const bool must = present_ > question_.terms.max || is_idle();
    for (std::uint32_t i = 0; i < replicas; ++i) {
      std::optional<std::size_t> best;
      for (std::size_t v = 0; v < counts.size(); ++v) {
        if (counts[v] == 0) continue;
        const ScaleVariant& each = question_.variants[v];
        std::vector<std::uint32_t> rest = counts;
        --rest[v];
        if (!must && serve_all(question_, question_.traffic.demand_in, rest) < 1 - kRounding)
          continue;
        if (!best || usd_s_of(question_, each) > usd_s_of(question_, question_.variants[*best])) {
          best = v;
        }
      }
      if (!best) break;
      --counts[*best];
    }
    return answer(counts, why);
  }

  const ScaleQuestion& question_;
  std::uint32_t present_;
  std::vector<std::uint32_t> now_;
};

}  // namespace

TokenDemand with_waiting(const TokenDemand& demand, std::uint32_t waiting,
                         const RequestShape& shape, Duration time) {
  ORRERY_ASSERT(time > Duration(), "requests that wait are computed within some time");
  const double requests_s = waiting / time.count_seconds();
  return {demand.prompt_s + requests_s * shape.prompt, demand.output_s + requests_s * shape.output};
}

ScaleAnswer plan_scale(const ScaleQuestion& question) {
  ORRERY_ASSERT(question.terms.min <= question.terms.max && question.terms.max > 0 &&
                    !question.variants.empty(),
                "a service may have replicas of some variant");
  return ScalePlanner(question).plan();
}

}  // namespace orrery
