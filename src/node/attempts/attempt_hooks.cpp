#include "node/attempts/attempt_hooks.hpp"

#include <fmt/format.h>

#include <bit>

namespace orrery {
namespace {

/// Lists the devices of all shares: "0,3".
std::string device_list(const LaunchRanks& ranks) {
  std::uint64_t devices = 0;
  for (const RankShare& share : ranks.shares) devices |= share.devices;
  std::string list;
  for (; devices != 0; devices &= devices - 1) {
    list += fmt::format("{}{}", list.empty() ? "" : ",", std::countr_zero(devices));
  }
  return list;
}

}  // namespace

void AttemptHooks::note_launch(const AttemptId& id, const KeeperLaunch& launch) {
  variables_ = {{"ORRERY_JOB", launch.facts.job},
                {"ORRERY_JOB_ID", fmt::format("{}", id.job.value())},
                {"ORRERY_ATTEMPT", fmt::format("{}", id.attempt)},
                {"ORRERY_TENANT", launch.facts.tenant},
                {"ORRERY_DEVICES", device_list(launch.ranks)},
                {"ORRERY_NODE", setup_.node}};
}

bool AttemptHooks::run_prologue(HookProcess::Ended ended) {
  if (!setup_.prologue) return false;
  step_ = Step::kPrologue;
  run(*setup_.prologue, Step::kRanks, std::move(ended));
  return true;
}

bool AttemptHooks::run_epilogue(HookProcess::Ended ended) {
  if (!setup_.epilogue || step_ != Step::kRanks) return false;
  step_ = Step::kEpilogue;
  run(*setup_.epilogue, Step::kClean, std::move(ended));
  return true;
}

void AttemptHooks::run(const HookSpec& spec, Step then, HookProcess::Ended ended) {
  const HookStart start{spec.command, variables_, Duration::from_seconds(spec.timeout.value())};
  process_ = std::make_unique<HookProcess>(
      real_, start, [this, then, ended = std::move(ended)](const std::string& failure) {
        const std::unique_ptr<HookProcess> process = std::move(process_);  // whose call this is
        step_ = then;
        ended(failure);
      });
}

}  // namespace orrery
