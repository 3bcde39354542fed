#include "verbs/services/service_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"
#include "runtime/checkpoint/checkpoint_directory.hpp"
#include "verbs/option_text.hpp"
#include "verbs/schedule/artifact_paths.hpp"
#include "verbs/schedule/submit_request.hpp"
#include "verbs/services/engine_artifact.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

/// Restarts of a replica after faults of its program, before it is given up.
constexpr std::uint32_t kRestarts = 100;

/// Returns the absolute path of a model of orrery-serve: a GGUF file, a directory of Hugging Face,
/// or one with a checkpoint that is committed.
Result<std::filesystem::path> model_of(const std::string& typed) {
  std::error_code failed;
  std::filesystem::path path = std::filesystem::absolute(typed, failed).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string shown = printable(path.string(), 200);
  if (!std::filesystem::exists(path, failed)) {
    return input_error({}, fmt::format("{}: there is no such file or directory{}", shown,
                                       quickstart_hint(path.string())));
  }
  if (!std::filesystem::is_directory(path, failed)) {
    if (path.extension() == ".gguf") return path;
    return input_error({}, fmt::format("{} is a file: expected one whose name ends in .gguf, or a "
                                       "directory of checkpoints or of Hugging Face",
                                       shown));
  }
  if (std::filesystem::exists(path / "config.json", failed)) return path;
  const Result<std::vector<ListedCheckpoint>> listed = list_checkpoints(path.string());
  if (!listed) return tl::unexpected(listed.error());
  const bool committed = std::ranges::any_of(*listed, [](const ListedCheckpoint& each) {
    return each.state == ListedCheckpoint::State::kCommitted;
  });
  if (committed) return path;
  if (!listed->empty() && !listed->front().fault.empty()) {
    return input_error(
        {}, fmt::format("{}: no checkpoint can be read: {}", shown, listed->front().fault));
  }
  return input_error({}, fmt::format("{} has no complete checkpoint of orrery-train and no "
                                     "config.json of Hugging Face",
                                     shown));
}

}  // namespace

Result<std::string> served_artifact(EngineName engine, const std::string& typed) {
  if (engine != EngineName::kOrrery) return engine_artifact(engine, typed);
  const Result<std::filesystem::path> path = model_of(typed);
  if (!path) return tl::unexpected(path.error());
  return path->string();
}

Status take_rollout(const RolloutOptions& options, RolloutSpec& rollout) {
  rollout.surge = options.surge.value_or(rollout.surge);
  rollout.unavailable = options.unavailable.value_or(rollout.unavailable);
  if (options.canary == std::vector<std::string>{"none"}) {
    rollout.canary.clear();
    rollout.bake.reset();
    rollout.gates.clear();
  } else if (!options.canary.empty()) {
    rollout.canary = options.canary;
  }
  if (!options.bake.empty()) {
    const Result<Seconds> bake = parse<Seconds>(options.bake);
    if (!bake) return input_error({}, "--bake: " + bake.error().message);
    rollout.bake = *bake;
  }
  if (options.gates.empty()) return {};
  rollout.gates.clear();
  for (const std::string& each : options.gates) {
    const Result<RolloutGate> gate = word_option<RolloutGate>("gates", each);
    if (!gate) return tl::unexpected(gate.error());
    rollout.gates.push_back(*gate);
  }
  return {};
}

Status take_slo(const std::vector<std::string>& typed, SloSpec& slo) {
  for (const std::string& each : typed) {
    const std::size_t mark = each.find('=');
    const std::string key = each.substr(0, mark);
    std::optional<Seconds>* const target = mark == each.npos ? nullptr : target_named(slo, key);
    if (target == nullptr) {
      return input_error({},
                         fmt::format("--slo: \"{}\", expected ttft=TIME or tpot=TIME of the 99th "
                                     "percentile, or another one: ttft_p50, _p90, _p95",
                                     printable(each, 60)));
    }
    const Result<Seconds> time = parse<Seconds>(each.substr(mark + 1));
    if (!time) return input_error({}, fmt::format("--slo: {}: {}", key, time.error().message));
    *target = *time;
  }
  return {};
}

Status take_scaling(const std::string& typed, std::optional<ScalingSpec>& scaling) {
  if (typed.empty()) return {};
  if (typed == "none") {
    scaling.reset();
    return {};
  }
  const std::size_t dots = typed.find("..");
  const auto number = [&typed](std::size_t from, std::size_t to) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto [end, failed] = std::from_chars(typed.data() + from, typed.data() + to, value);
    if (failed != std::errc() || end != typed.data() + to) return std::nullopt;
    return value;
  };
  const auto min = dots == typed.npos ? std::nullopt : number(0, dots);
  const auto max = dots == typed.npos ? std::nullopt : number(dots + 2, typed.size());
  if (!min || !max) {
    return input_error({}, fmt::format("--scale: \"{}\", expected MIN..MAX, such as 1..8, or none",
                                       printable(typed, 60)));
  }
  if (!scaling) scaling.emplace();
  scaling->min = *min;
  scaling->max = *max;
  if (*min > 0) scaling->idle.reset();
  return {};
}

std::uint32_t replicas_within(const std::optional<ScalingSpec>& scaling, std::uint32_t wanted) {
  if (!scaling) return wanted;
  const std::uint32_t least = std::max(scaling->min, 1U);
  return std::clamp(wanted, least, std::max(scaling->max, least));
}

Result<std::string> service_spec(const ServiceOptions& options,
                                 const std::vector<std::string>& arguments) {
  const Result<EngineName> engine = word_option<EngineName>("engine", options.engine);
  if (!engine) return tl::unexpected(engine.error());
  const Result<std::string> artifact = served_artifact(*engine, options.artifact);
  if (!artifact) return tl::unexpected(artifact.error());
  JobSpec spec;
  spec.kind = JobKind::kServe;
  spec.name = options.name.empty() ? job_name_of(*artifact) : options.name;
  spec.tenant = options.tenant;
  spec.restart = {.policy = RestartPolicy::kAtOnce, .max = kRestarts, .where = {}};
  RoleSpec role;
  if (Status taken = take_scaling(options.scale, spec.service.scaling); !taken) {
    return forward_error(taken);
  }
  role.replicas = options.replicas.value_or(replicas_within(spec.service.scaling, 1));
  role.accelerators = options.accelerators;
  for (const std::string& type : options.types) role.types.push_back({.type = type});
  spec.roles.push_back(std::move(role));
  RevisionSpec revision;
  revision.model = options.model.empty() ? spec.name : options.model;
  revision.artifact = *artifact;
  revision.engine.name = *engine;
  revision.engine.arguments = arguments;
  spec.service.revisions.push_back(std::move(revision));
  if (Status taken = take_rollout(options.rollout, spec.service.rollout); !taken) {
    return forward_error(taken);
  }
  if (Status taken = take_slo(options.slo, spec.service.slo); !taken) return forward_error(taken);
  return checked_job_text(spec);
}

}  // namespace orrery
