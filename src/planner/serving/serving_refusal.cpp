#include "planner/serving/serving_refusal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery {
namespace {

std::string gibibytes(double bytes) { return fmt::format("{:.1f} GiB", bytes / (1u << 30)); }

double needed(const ServingMemory& memory) {
  return memory.weights + memory.activations + memory.sequence;
}

std::string where(const ServingAttempt& attempt) {
  return fmt::format("{}, {}", print_layout(attempt.plan), print_numbers(attempt.numbers));
}

/// Keeps the attempt with the smaller measure.
template <class Measure>
void keep(std::optional<ServingAttempt>& kept, const ServingAttempt& attempt, Measure measure) {
  if (!kept || measure(attempt) < measure(*kept)) kept = attempt;
}

double ttft(const ServingAttempt& attempt) { return attempt.least.ttft.value(); }
double tpot(const ServingAttempt& attempt) { return attempt.least.tpot.value(); }

/// A limit that a user could type: three digits, not below the value.
std::string seconds(double value) { return fmt::format("{:.3g} s", value * 1.005); }

}  // namespace

void ServingShortfall::add(const ServingAttempt& attempt) {
  if (!is_finite(attempt.least)) return;
  keep(smallest_, attempt, [](const ServingAttempt& a) { return needed(a.least.memory); });
  if (!attempt.least.fits) return;
  keep(first_, attempt, ttft);
  keep(token_, attempt, tpot);
  if (question_.limits.tpot_met(attempt.least)) keep(first_of_token_, attempt, ttft);
  if (attempt.accelerators == 0) return;
  keep(fastest_, attempt, [](const ServingAttempt& a) { return -a.requests_max; });
  keep(fewest_, attempt, [](const ServingAttempt& a) { return a.accelerators; });
}

bool ServingShortfall::fits(const ServingNumbers& numbers, std::uint64_t devices) const {
  const ServingRun run = run_of(question_, choice_, numbers);
  std::vector<std::string> unread;
  Result<ServingJob> job = serving_job_of(run, unread);
  if (!job) return false;
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(devices, kInstanceMax));
  for (const ServingPlan& plan : serving_layouts(job->shape, most)) {
    job->plan = plan;
    const ServingConstants constants = constants_of(*job, run, facts_.calibration);
    if (serving_memory(*job, constants.engine).fits()) return true;
  }
  return false;
}

std::string ServingShortfall::memory_help() const {
  std::vector<std::string> helps;
  const std::uint64_t here = largest_instance(choice_);
  ServingChoice whole = choice_;
  whole.accelerators.reset();
  for (const NumberFormat format : {NumberFormat::kFp8, NumberFormat::kInt4}) {
    const auto numbers = serving_numbers(*choice_.accelerator, *question_.model, {format});
    if (numbers.empty() || !fits(numbers.front(), here)) continue;
    helps.push_back(print_numbers(numbers.front()));
    break;
  }
  for (std::uint64_t devices = 2 * std::bit_floor(here); devices <= largest_instance(whole);
       devices *= 2) {
    if (!fits(smallest_->numbers, devices)) continue;
    helps.push_back(fmt::format("{} accelerators", devices));
    break;
  }
  const ServingMemory& memory = smallest_->least.memory;
  const double left = memory.available - memory.weights - memory.activations;
  const double tokens = question_.input + question_.output;
  if (left > 0 && std::floor(left / memory.sequence * tokens) >= 2) {
    helps.push_back(fmt::format("at most {:.0f} tokens per request",
                                std::floor(left / memory.sequence * tokens)));
  }
  helps.push_back(
      gibibytes(needed(memory) / memory.available * choice_.accelerator->memory.value()) +
      " of memory per accelerator");
  return fmt::format("{}", fmt::join(helps, "; "));
}

std::string ServingShortfall::memory_text() const {
  const ServingMemory& memory = smallest_->least.memory;
  return fmt::format(
      "out of memory. The layout with the lowest demand ({}) needs {} per accelerator (weights {}, "
      "activations {}, cache of one sequence {}), the engine has {}. {}What would help: {}",
      where(*smallest_), gibibytes(needed(memory)), gibibytes(memory.weights),
      gibibytes(memory.activations), gibibytes(memory.sequence), gibibytes(memory.available),
      network_text(), memory_help());
}

/// A fact that is missing is no limit of the hardware.
std::string ServingShortfall::network_text() const {
  if (choice_.joined || choice_.accelerators.value_or(kInstanceMax) <= choice_.domain) return {};
  return fmt::format(
      "No instance over several nodes is planned, as the network of {} is not known. ",
      choice_.node->id);
}

std::string ServingShortfall::latency_text() const {
  const LatencyLimits& limits = question_.limits;
  if (!limits.tpot_met(token_->least)) {
    return fmt::format(
        "--tpot {:.3g} s is too low: no layout generates a token in less than {} ({}). What would "
        "help: --tpot {}",
        limits.tpot->value(), seconds(tpot(*token_)), where(*token_), seconds(tpot(*token_)));
  }
  const bool alone = !limits.ttft_met(first_->least);
  const ServingAttempt& closest = alone || !first_of_token_ ? *first_ : *first_of_token_;
  return fmt::format(
      "--ttft {:.3g} s is too low{}: no layout generates the first token in less than {} ({}). "
      "What would "
      "help: --ttft {}",
      limits.ttft.value_or(Seconds(0)).value(), alone ? "" : " for layouts within --tpot",
      seconds(ttft(closest)), where(closest), seconds(ttft(closest)));
}

std::string ServingShortfall::rate_text() const {
  return fmt::format(
      "--rate {:.6g} is too high: {} accelerators serve at most {:.4g} requests/s ({}). What would "
      "help: "
      "--rate {:.4g}; {} accelerators ({})",
      question_.rate.value_or(0), choice_.accelerators.value_or(0), fastest_->requests_max,
      where(*fastest_), fastest_->requests_max * 0.9995,  // rounds to no more than there is
      fewest_->accelerators, where(*fewest_));
}

Error ServingShortfall::explain() const {
  std::string why;
  if (!smallest_) {
    why = fmt::format("the catalog's rates of {} give no prediction", choice_.accelerator->id);
  } else if (!first_) {
    why = memory_text();
  } else {
    why = fastest_ ? rate_text() : latency_text();
  }
  return {.kind = ErrorKind::kInfeasible, .message = choice_.label + ": " + why};
}

}  // namespace orrery
