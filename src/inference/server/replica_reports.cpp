#include "inference/server/replica_reports.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace orrery {

ReplicaReports::ReplicaReports(const std::string& path) {
  if (path.empty()) return;
  pipe_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  write(R"({"quiet": 1e9})");
}

void ReplicaReports::phase(std::string_view phase) {
  write(nlohmann::ordered_json{{"replica", {{"phase", phase}}}}.dump());
}

void ReplicaReports::ready(const ReplicaEndpoint& endpoint) {
  write(nlohmann::ordered_json{{"replica",
                                {{"phase", "ready"},
                                 {"endpoint", endpoint.address},
                                 {"pid", ::getpid()},
                                 {"slots", endpoint.slots},
                                 {"prefill_tokens_s", endpoint.speed.prefill_tokens_s},
                                 {"step_s", endpoint.speed.step_s},
                                 {"step_full_s", endpoint.speed.step_full_s}}}}
            .dump());
}

void ReplicaReports::write(const std::string& json) {
  if (!pipe_.valid()) return;
  constexpr int kWaitMs = 5'000;
  pollfd writable{pipe_.get(), POLLOUT, 0};
  if (::poll(&writable, 1, kWaitMs) != 1) return;
  const std::string line = json + "\n";
  // A closed pipe is ignored: the replica serves without its keeper.
  if (::write(pipe_.get(), line.data(), line.size()) < 0) return;
}

}  // namespace orrery
