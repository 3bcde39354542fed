#include "verbs/training/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text/csv_text.hpp"
#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

using nlohmann::json;

constexpr std::size_t kColumns = 8;

template <class Each>
Status each_line(const std::string& path, const Each& each) {
  std::ifstream file(path);
  if (!file) return environment_error(fmt::format("{}: cannot be read", path));
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    // The last line of a process that was killed may be half of one.
    if (file.eof()) break;
    if (Status good = each(line, SourcePosition{path, number, 1}); !good) return good;
  }
  return {};
}

Result<std::vector<double>> numbers_of(const std::string& line, const SourcePosition& at) {
  std::vector<double> numbers;
  const char* next = line.data();
  const char* const end = next + line.size();
  while (next <= end) {
    double value = 0;
    const auto [stop, failed] = std::from_chars(next, end, value);
    if (failed != std::errc() || (stop != end && *stop != ',')) {
      return input_error(at, fmt::format("expected {} numbers", kColumns));
    }
    numbers.push_back(value);
    next = stop + 1;
  }
  // One more: of the routers of a mixture of experts.
  if (numbers.size() != kColumns && numbers.size() != kColumns + 1) {
    return input_error(at, fmt::format("expected {} numbers, found {}", kColumns, numbers.size()));
  }
  return numbers;
}

ParallelPlan layout_of(const json& layout) {
  const bool recomputes = layout.at("recompute") == "full";
  return {.tp = layout.at("tp").get<std::uint32_t>(),
          .pp = layout.at("pp").get<std::uint32_t>(),
          .vpp = layout.value("vpp", 1U),
          .ep = layout.at("ep").get<std::uint32_t>(),
          .zero = layout.at("zero").get<std::uint32_t>(),
          .micro_batch = layout.at("micro_batch").get<std::uint32_t>(),
          .recompute = recomputes ? Recompute::kFull : Recompute::kNone};
}

void take_event(const json& event, TrainingLog& log) {
  const std::string name = event.at("event").get<std::string>();
  const double at = event.at("at").get<double>();
  if (name == "begin" || name == "regrouped") {
    TrainedGeneration& next = log.generations.emplace_back();
    next = {event.at("attempt").get<std::uint32_t>(),
            event.at("generation").get<std::uint32_t>(),
            event.at("ranks").get<std::uint32_t>(),
            event.at("step").get<std::uint64_t>(),
            at,
            std::nullopt};
    if (event.value("memory", "shared") == "sockets") log.memory = TrainingLog::Memory::kSockets;
    if (event.contains("layout")) log.layout = layout_of(event.at("layout"));
    if (event.contains("lost_at")) next.lost_at = event.at("lost_at").get<double>();
  } else if (name == "recovered") {
    log.recoveries_s.push_back(event.at("recover_s").get<double>());
  } else if (name == "checkpoint") {
    log.checkpoints.push_back(event.at("step").get<std::uint64_t>());
  } else if (name == "evaluated") {
    log.held_out_loss = event.at("held_out_loss").get<double>();
  } else if (name == "end") {
    log.ended_at = at;
    log.state_sha256 = event.at("state_sha256").get<std::string>();
  }
}

}  // namespace

std::string TrainingLog::layout_text() const {
  if (!layout) return "";
  ParallelPlan plan = *layout;
  plan.dp = usual_ranks() / std::max(1U, plan.tp * plan.pp);
  return print_layout(plan);
}

double TrainingLog::median_step_s() const {
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const TrainedStep& each : steps) seconds.push_back(each.seconds);
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::uint32_t TrainingLog::usual_ranks() const {
  std::map<std::uint32_t, std::size_t> done;
  for (const TrainedStep& each : steps) ++done[each.ranks];
  const auto most = std::ranges::max_element(
      done, {},
      [](const std::pair<const std::uint32_t, std::size_t>& each) { return each.second; });
  return most == done.end() ? 0 : most->first;
}

double TrainingLog::mean_step_s(std::uint32_t ranks) const {
  double sum = 0;
  double count = 0;
  for (const TrainedStep& each : steps) {
    if (each.ranks != ranks) continue;
    sum += each.seconds;
    count += 1;
  }
  return count > 0 ? sum / count : 0;
}

Result<TrainingLog> read_training_log(const std::string& directory) {
  TrainingLog log;
  const Status steps = each_line(
      directory + "/loss.csv", [&log](const std::string& line, const SourcePosition& at) -> Status {
        if (at.line == 1) return {};
        const auto numbers = numbers_of(line, at);
        if (!numbers) return tl::unexpected(numbers.error());
        const std::vector<double>& n = *numbers;
        log.steps.push_back({static_cast<std::uint64_t>(n[0]), n[1], n[4], n[5],
                             static_cast<std::uint32_t>(n[6]), static_cast<std::uint32_t>(n[7])});
        return {};
      });
  if (!steps) return tl::unexpected(steps.error());
  const Status events = each_line(
      directory + "/events.jsonl", [&log](const std::string& line, const SourcePosition& at) {
        try {
          take_event(json::parse(line), log);
          return Status();
        } catch (const json::exception&) {
          return Status(input_error(at, "expected an event of a training, a JSON object"));
        }
      });
  if (!events) return tl::unexpected(events.error());
  return log;
}

}  // namespace orrery
