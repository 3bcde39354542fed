#include "verbs/services/told_replicas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kTailLines = 15;
constexpr std::size_t kTailMax = 8'000;

/// Returns the last lines that an attempt wrote, indented; why they are not known, otherwise.
std::string log_tail(LiveSession& session, std::uint64_t job, std::uint32_t attempt) {
  v1::ReadLogRequest request;
  request.set_id(job);
  request.set_attempt(attempt);
  request.set_tail(kTailLines);
  std::string bytes;
  v1::LogChunk chunk;
  const Status read = session.client().read(
      "ReadLog", [&]() -> const v1::ReadLogRequest& { return request; }, chunk,
      [&] {
        bytes += chunk.bytes();
        return bytes.size() < kTailMax;
      });
  if (bytes.empty()) {
    return fmt::format("  its log {}\n",
                       read ? "is empty" : "cannot be read: " + one_line(read.error().text()));
  }
  std::string lines;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    lines += "  " + one_line(rest.substr(0, end)) + "\n";
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
  }
  return lines;
}

}  // namespace

std::int64_t ready_replicas(const v1::ServiceView& service) {
  return std::ranges::count(service.replicas(), "ready", &v1::ServiceReplica::state);
}

void ToldReplicas::tell(const v1::ServiceView& service) {
  for (const v1::ServiceReplica& replica : service.replicas()) tell(replica);
  if (service.endpoints().empty() && ready_replicas(service) > 0 && !no_gateway_told_) {
    no_gateway_told_ = true;
    wait_.said("orrery: no gateway of the cluster is connected yet\n");
  }
}

void ToldReplicas::tell(const v1::ServiceReplica& replica) {
  Told& told = told_[replica.job()];
  const bool again = told.attempt > 0 && replica.attempt() > told.attempt;
  const bool failed = replica.state() == "failed" && told.state != "failed";
  if (again || failed) tell_failure(replica.job(), again ? told.attempt : replica.attempt());
  if (replica.state() != told.state || again) {
    wait_.said(one_line(fmt::format("orrery: replica {} {}{}", replica.job(), replica.state(),
                                    replica.node().empty() ? "" : " on " + replica.node())) +
               "\n");
  }
  told = {replica.state(), replica.attempt()};
}

void ToldReplicas::tell_failure(std::uint64_t job, std::uint32_t attempt) {
  wait_.said(
      fmt::format("orrery: attempt {1} of replica {0} failed; the end of its log (all of "
                  "it: `orrery logs {0} --attempt {1}`):\n{2}",
                  job, attempt, log_tail(session_, job, attempt)));
}

}  // namespace orrery
