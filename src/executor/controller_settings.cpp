#include "executor/controller_settings.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

/// A former leader has been silent for a second when another one begins; until then an order that
/// it has sent arrives, and a process that was paused finds out.
Status check_times(const ControllerSettings& settings, const SourcePosition& at) {
  constexpr Seconds kSpeaksMin{1};
  constexpr Seconds kClaimsMax{600};
  constexpr Seconds kSilenceMin{1};
  constexpr double kRounding = 1e-9;
  if (settings.speaks_for < kSpeaksMin || settings.claims_after > kClaimsMax) {
    return input_error(at, "speaks_for, claims_after: expected times of 1 s to 10 min");
  }
  const Seconds silence = settings.claims_after - settings.speaks_for;
  if (silence.value() >= kSilenceMin.value() - kRounding) return {};
  return input_error(at, fmt::format("claims_after: expected at least 1 s more than speaks_for, "
                                     "which is {:g} s; found {:g} s",
                                     settings.speaks_for.value(), settings.claims_after.value()));
}

}  // namespace

Result<ControllerSettings> read_controller_settings(const Document& document) {
  ControllerSettings settings;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, settings, {}); !read) return forward_error(read);
  if (settings.api_version != "orrery/v1" || settings.kind != "Controller") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Controller, found {} and {}",
                    printable(settings.api_version, 60), printable(settings.kind, 60)));
  }
  constexpr Seconds kWaitMax{86'400};
  for (const auto& [key, wait] : {std::pair{"grace", settings.grace},
                                  {"backoff", settings.backoff},
                                  {"node_grace", settings.node_grace}}) {
    if (wait >= Seconds{0} && wait <= kWaitMax) continue;
    return input_error(root.position(), fmt::format("{}: expected a time of 0 s to 1 day", key));
  }
  constexpr Seconds kRetainMax{100 * 365 * 86'400.0};
  if (settings.retain < Seconds{0} || settings.retain > kRetainMax) {
    return input_error(root.position(), "retain: expected a time of 0 s to 100 years");
  }
  for (const auto& [key, limit] : {std::pair{"submit_rate", settings.submit_rate},
                                   {"submit_burst", settings.submit_burst},
                                   {"jobs_max", settings.jobs_max}}) {
    if (limit >= 0 && limit <= 1e9) continue;
    return input_error(root.position(), fmt::format("{}: expected a number of 0 to 1e9", key));
  }
  constexpr Bytes kSnapshotMin{std::uint64_t{64} << 10};
  constexpr Bytes kSnapshotMax{std::uint64_t{64} << 30};
  if (settings.snapshot_every < kSnapshotMin || settings.snapshot_every > kSnapshotMax) {
    return input_error(root.position(), "snapshot_every: expected a size of 64 KiB to 64 GiB");
  }
  if (Status times = check_times(settings, root.position()); !times) return forward_error(times);
  return settings;
}

}  // namespace orrery
