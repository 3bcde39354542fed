// verbs/cluster/live_text.hpp - jobs, nodes and tenants of a running cluster as text for people.
//
// Pure functions over the messages of the API and the time of day.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/command_options.hpp"

namespace orrery {

/// How text is shown, and when.
struct LiveText {
  Colour colour = Colour::kOff;
  Instant now;

  /// Reads the present state of the terminal and the clock.
  [[nodiscard]] static LiveText of(const CommandOptions& options);

  [[nodiscard]] std::string jobs(const std::vector<v1::Job>& jobs) const;
  [[nodiscard]] std::string job(const v1::Job& job) const;
  [[nodiscard]] std::string nodes(const std::vector<v1::Node>& nodes) const;
  [[nodiscard]] std::string node(const v1::Node& node) const;
  [[nodiscard]] std::string tenants(const v1::ListTenantsResponse& tenants) const;
  [[nodiscard]] std::string users(const v1::ListUsersResponse& users) const;
  /// Returns what was used, one row per tenant or job.
  [[nodiscard]] std::string tenant_bills(const v1::ListTenantsResponse& tenants) const;
  [[nodiscard]] std::string job_bills(const std::vector<v1::Job>& jobs) const;

  /// Returns the time from the first start to the end, or to now: "12m"; "" before the start.
  [[nodiscard]] std::string run_time(const v1::Job& job) const;
  /// Returns "2m ago"; "" where there is no time.
  [[nodiscard]] std::string ago(const google::protobuf::Timestamp& at) const;
  /// Returns the colour of a phase of a job, the health of a node or a verdict, for
  /// TextTable::colour().
  [[nodiscard]] std::string_view colour_code(std::string_view word) const;
};

/// Returns "4s", "12m", "3h", "9d": the largest unit that fits at least once.
[[nodiscard]] std::string short_duration(Duration duration);

/// Returns how a job ended or that it has not, in one sentence without its number.
[[nodiscard]] std::string outcome(const v1::Job& job);

}  // namespace orrery
