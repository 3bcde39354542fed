#include "verbs/local/local_gateway.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "base/system/file_descriptor.hpp"
#include "base/system/free_address.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_env.hpp"
#include "base/system/socket_address.hpp"
#include "verbs/local/program_log.hpp"

namespace orrery {
namespace {

constexpr Duration kLook = Duration::milliseconds(20);
constexpr Duration kStartPatience = Duration::seconds(60);
constexpr Duration kEndPatience = Duration::seconds(10);
/// Seconds in which running requests may end, fewer than the patience.
constexpr const char* kDrain = "5";

bool accepts_connections(const std::string& address) {
  const Result<SocketAddress> parsed = SocketAddress::parse("tcp:" + address);
  if (!parsed) return false;
  const FileDescriptor socket(::socket(parsed->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.valid() && ::connect(socket.get(), parsed->get(), parsed->size()) == 0;
}

Status wait_for(const ProcessHandle& gateway, const std::string& address,
                const std::pair<std::string, std::uint64_t>& log) {
  const RealClock clock;
  const Instant until = clock.now_monotonic() + kStartPatience;
  while (!gateway.ended_within(kLook)) {
    if (accepts_connections(address)) return {};
    if (clock.now_monotonic() > until) {
      return environment_error(fmt::format("the gateway accepts no connection after {}; see {}",
                                           kStartPatience.text(), log.first));
    }
  }
  return environment_error(
      fmt::format("the gateway exited during startup:{}", log_since(log.first, log.second)));
}

void end_gateway(const ProcessHandle& gateway) {
  gateway.signal(SIGTERM);
  if (gateway.ended_within(kEndPatience)) return;
  gateway.signal(SIGKILL);
  (void)gateway.ended_within(kEndPatience);
}

Status choose_address(LocalRecord& record) {
  if (!record.gateway.empty()) return {};
  RealEntropy entropy;
  const Result<FreeAddress> free = FreeAddress::on_loopback(entropy);
  if (!free) return tl::unexpected(free.error());
  record.gateway = free->text();
  return {};
}

}  // namespace

Result<GatewayStarted> start_local_gateway(Storage& storage, LocalRecord& record,
                                           const GatewayStart& start) {
  LocalProcess& gateway = record.process(LocalRole::kGateway, kLocalGateway);
  const ProcessHandle running(gateway.process);
  if (running.alive()) {
    if (gateway.controller == start.controllers) return GatewayStarted::kBefore;
    end_gateway(running);  // it looks for controllers where they are no more
  }
  if (Status chosen = choose_address(record); !chosen) return forward_error(chosen);
  const std::string log = start.directory + "/gateway.log";
  const std::uint64_t log_from = file_size(log);
  Result<ProcessIdentity> started = start_process(
      {.program = start.program,
       .arguments = {"--dir", start.directory, "--listen", record.gateway, "--name", kLocalGateway,
                     "--state", start.directory + "/gateway.table.json", "--drain", kDrain},
       .log = log});
  if (!started) return forward_error(started);
  gateway.process = *started;
  gateway.controller = start.controllers;
  if (Status saved = write_local_record(storage, start.directory, record); !saved) {
    return forward_error(saved);
  }
  const Status accepts = wait_for(ProcessHandle(gateway.process), record.gateway, {log, log_from});
  if (!accepts) return tl::unexpected(accepts.error());
  return GatewayStarted::kNow;
}

std::string gateway_url(const LocalRecord& record) {
  return record.gateway.empty() ? "" : "http://" + record.gateway;
}

}  // namespace orrery
