#include "inference/server/replica_reports.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace orrery {

ReplicaReports::ReplicaReports(const std::string& path) : pipe_(path) {
  pipe_.write(R"({"quiet": 1e9})");
}

void ReplicaReports::phase(std::string_view phase) {
  pipe_.write(nlohmann::ordered_json{{"replica", {{"phase", phase}}}}.dump());
}

void ReplicaReports::ready(const ReplicaEndpoint& endpoint) {
  pipe_.write(nlohmann::ordered_json{{"replica",
                                      {{"phase", "ready"},
                                       {"endpoint", endpoint.address},
                                       {"pid", ::getpid()},
                                       {"slots", endpoint.slots},
                                       {"kv_tokens", endpoint.kv_tokens},
                                       {"kv_events", endpoint.kv_events},
                                       {"prefill_tokens_s", endpoint.speed.prefill_tokens_s},
                                       {"step_s", endpoint.speed.step_s},
                                       {"step_full_s", endpoint.speed.step_full_s}}}}
                  .dump());
}

}  // namespace orrery
