#include "node/steps/step_gang.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <memory>

#include "fleet/import/host_list.hpp"
#include "node/launch/process_environment.hpp"
#include "node/steps/step_secret.hpp"

namespace orrery {
namespace {

std::uint32_t number_of(const std::string& text) {
  std::uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Result<std::string> look_up(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int wrong = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); wrong != 0) {
    return environment_error(fmt::format("cannot find {}: {}", host, ::gai_strerror(wrong)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::array<char, NI_MAXHOST> text{};
  const int wrong = ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(),
                                  nullptr, 0, NI_NUMERICHOST);
  if (wrong != 0) {
    return environment_error(fmt::format("cannot find {}: {}", host, ::gai_strerror(wrong)));
  }
  return found->ai_family == AF_INET6 ? fmt::format("[{}]", text.data()) : text.data();
}

}  // namespace

Result<StepGang> StepGang::read(
    const std::vector<std::pair<std::string, std::string>>& environment) {
  const auto value = [&](std::string_view name) { return variable_of(environment, name); };
  StepGang gang{.job = value("SLURM_JOB_ID"),
                .addresses = {},
                .here = number_of(value("ORRERY_STEP_NODE")),
                .port = number_of(value("ORRERY_STEP_PORT")),
                .secret = {}};
  const std::string file = value(kStepSecretFileVariable);
  auto addresses = expand_host_list(value("ORRERY_STEP_NODES"));
  if (!addresses || gang.port == 0 || file.empty() || gang.here >= addresses->size()) {
    return environment_error("not inside a job that began as a script");
  }
  std::ifstream secret(file);
  if (!(secret >> gang.secret)) {
    return environment_error(fmt::format("{}: cannot read the secret of the job's steps", file));
  }
  gang.addresses = *std::move(addresses);
  return gang;
}

bool StepGang::is_one_machine() const {
  return std::all_of(addresses.begin(), addresses.end(),
                     [&](const std::string& each) { return each == addresses[0]; });
}

std::uint32_t StepGang::port_of(std::uint32_t node) const {
  const auto end = addresses.begin() + node;
  return port + static_cast<std::uint32_t>(std::count(addresses.begin(), end, addresses[node]));
}

std::string StepGang::listening_address() const {
  if (addresses.size() == 1) return "tcp:127.0.0.1:0";
  if (is_one_machine()) return fmt::format("tcp:127.0.0.1:{}", port_of(here));
  const Result<std::string> own = look_up(addresses[here]);
  const bool six = own && own->starts_with('[');
  return fmt::format("tcp:{}:{}", six ? "[::]" : "0.0.0.0", port_of(here));
}

Result<std::string> StepGang::address_of(std::uint32_t node) const {
  if (is_one_machine()) return fmt::format("tcp:127.0.0.1:{}", port_of(node));
  Result<std::string> host = look_up(addresses[node]);
  if (!host) return forward_error(host);
  return fmt::format("tcp:{}:{}", *host, port_of(node));
}

}  // namespace orrery
