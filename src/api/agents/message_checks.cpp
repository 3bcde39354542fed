#include "api/agents/message_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "node/keeper/keeper_launch.hpp"

namespace orrery {
namespace {

struct FieldWords {
  std::string_view field;
  std::string_view words;
  std::uint64_t max = std::numeric_limits<std::uint64_t>::max();  ///< besides that of its type
};

/// The fields whose own names say too little.
constexpr std::array kFieldWords = std::to_array<FieldWords>({
    {"orrery.v1.AttemptEnd.kind", "kind of an end"},
    {"orrery.v1.ExecTerminal.columns", "columns of a terminal"},
    {"orrery.v1.ExecTerminal.rows", "rows of a terminal"},
    {"orrery.v1.Lease.kind", "kind of a lease"},
    {"orrery.v1.Lease.length_ns", "lease"},
    {"orrery.v1.Program.per", "process per"},
    {"orrery.v1.RankProgress.lost_ns", "time lost"},
    {"orrery.v1.RankProgress.saving_ns", "time of saving"},
    {"orrery.v1.RankProgress.undetected_ns", "time undetected"},
    {"orrery.v1.RankShare.share", "share of a device", kWholeDevice},
    {"orrery.v1.Refused.why", "reason to refuse"},
    {"orrery.v1.Signals.temperature_c", "temperature"},
    {"orrery.v1.Signals.xid_count", "number of driver errors"},
});

const FieldWords* words_of(const google::protobuf::FieldDescriptor& field) {
  const auto* const found =
      std::find_if(kFieldWords.begin(), kFieldWords.end(),
                   [&](const FieldWords& each) { return each.field == field.full_name(); });
  return found == kFieldWords.end() ? nullptr : found;
}

std::string clock_complaint(double clock) {
  if (std::isfinite(clock) && clock > 0) return {};
  return fmt::format("clock {}, expected a part of the full one", clock);
}

std::string part_complaint(double part, std::string_view what) {
  if (part >= 0 && part <= 1) return {};
  return fmt::format("{} {}, expected 0 to 1", what, part);
}

std::string program_complaint(const LaunchRanks& launch, const NodeProgram& program) {
  if (program.command.empty() || program.command[0].empty()) return "no program";
  if (std::string what = launch_complaint(launch, program.gangs); !what.empty()) return what;
  for (const RankShare& share : launch.shares) {
    const GangLayout& layout = layout_of(share.gang, program.gangs);
    if (layout.nodes[layout.here].ranks == share.ranks) continue;
    return fmt::format("other ranks of gang {} here than its layout says", share.gang);
  }
  return {};
}

}  // namespace

std::string complaint(const AgentWelcome& welcome) {
  const bool timed = welcome.beat > Duration{} && welcome.repeat > Duration{};
  return timed ? "" : "a beat that is no time";
}

std::string complaint(const RankShare& share) {
  if (share.share == 0) return "no share of a device";
  if (share.share > kWholeDevice) {
    return fmt::format("share of a device {}, expected at most {}", share.share, kWholeDevice);
  }
  return clock_complaint(share.clock);
}

std::string complaint(const GangLayout& layout) {
  std::vector<std::uint32_t> ranks;
  for (const GangNode& node : layout.nodes) {
    ranks.insert(ranks.end(), node.ranks.begin(), node.ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] == i) continue;
    return fmt::format("the ranks of gang {} do not count from 0 to {}", layout.gang,
                       ranks.size() - 1);
  }
  return {};
}

std::string complaint(const NodeOrder& ordered) {
  const auto* launch = std::get_if<LaunchRanks>(&ordered.order.what);
  return launch == nullptr ? "" : program_complaint(*launch, ordered.program);
}

std::string complaint(const Progress& progress) {
  if (progress.done >= 0 && progress.done <= 1) return {};
  return fmt::format("{} of the work done, expected 0 to 1", progress.done);
}

std::string complaint(const AttemptReport& report) {
  for (const double clock : report.clocks) {
    if (std::string what = clock_complaint(clock); !what.empty()) return what;
  }
  return {};
}

std::string complaint(const RankPace& pace) {
  const bool timed = pace.seconds >= 0 && std::isfinite(pace.seconds);
  return timed ? "" : "seconds of a step that are no time";
}

std::string complaint(const AcceleratorReading& reading) {
  const bool finite = std::isfinite(reading.power_w.value_or(0)) &&
                      std::isfinite(reading.temperature_c.value_or(0));
  if (!finite) return "a power or temperature that is no number";
  std::string what = part_complaint(reading.busy.value_or(0), "part of an accelerator");
  return what.empty() ? part_complaint(reading.clock.value_or(1), "clock") : what;
}

std::string complaint(const NodeReading& reading) {
  constexpr auto kDevicesMax = std::numeric_limits<std::uint64_t>::digits;  // of a mask
  if (reading.accelerators.size() > kDevicesMax) {
    return fmt::format("{} accelerators, expected at most {}", reading.accelerators.size(),
                       kDevicesMax);
  }
  return part_complaint(reading.cpu_busy, "part of the CPUs");
}

std::string spoken_name(const google::protobuf::FieldDescriptor& field) {
  if (const FieldWords* own = words_of(field); own != nullptr) return std::string(own->words);
  std::string words = field.name();
  if (words.ends_with("_ns")) words.resize(words.size() - 3);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::uint64_t highest_of(const google::protobuf::FieldDescriptor& field, std::uint64_t type_max) {
  const FieldWords* own = words_of(field);
  return own == nullptr ? type_max : std::min(type_max, own->max);
}

std::string no_content(const google::protobuf::OneofDescriptor& oneof) {
  const std::string& name = oneof.containing_type()->name();
  if (name == "AgentOrder") return "an order that says nothing";
  return name == "AgentReport" ? "a report that says nothing" : "a message that says nothing";
}

}  // namespace orrery
