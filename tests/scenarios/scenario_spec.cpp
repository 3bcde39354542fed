#include "tests/scenarios/scenario_spec.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/format/document.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kDay = 86'400'000'000'000;

std::int64_t first_midnight(const ScenarioSpec& spec) {
  return spec.start.ns() - spec.start.ns() % kDay;
}

}  // namespace

Result<ScenarioSpec> load_scenario(const std::string& path) {
  Result<Document> document = Document::load(path);
  if (!document) return forward_error(document);
  ScenarioSpec spec;
  if (Status status = read_struct(document->root(), spec, {}); !status) {
    return forward_error(status);
  }
  if (spec.kind != "Scenario") return input_error(spec.where, "kind: expected Scenario");
  return spec;
}

Result<Instant> time_of(const ScenarioSpec& spec, const std::string& text) {
  if (text.empty()) return spec.start;
  int day = 1;
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  const char* rest = text.c_str();
  if (const std::size_t d = text.find("d "); d != std::string::npos) {
    if (std::sscanf(rest, "%dd", &day) != 1) return input_error(spec.where, "no day: " + text);
    rest += d + 2;
  }
  if (std::sscanf(rest, "%d:%d:%d", &hours, &minutes, &seconds) < 2) {
    return input_error(spec.where, fmt::format("expected a time of day, found \"{}\"", text));
  }
  const Duration into = Duration::seconds(((hours * 60L) + minutes) * 60 + seconds);
  return Instant::from_ns(first_midnight(spec) + (day - 1) * kDay) + into;
}

std::string clock_text(const ScenarioSpec& spec, Instant time) {
  const std::int64_t since = time.ns() - first_midnight(spec);
  const std::int64_t seconds = (since % kDay + 500'000'000) / 1'000'000'000;
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  return since < kDay ? clock : fmt::format("{}d {}", since / kDay + 1, clock);
}

}  // namespace orrery
