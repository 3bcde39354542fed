#include "apps/orreryd/reachable_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <memory>
#include <optional>

namespace orrery {
namespace {

/// Returns the text of an address; empty where it is of this machine alone or of one link.
std::string global_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    const std::uint32_t number = ntohl(v4->sin_addr.s_addr);
    const bool loopback = number >> 24 == 127;
    const bool link = number >> 16 == 0xA9FE;
    if (loopback || link || number == 0) return {};
    return ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
  }
  if (address->sa_family != AF_INET6) return {};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) || IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ||
      IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) {
    return {};
  }
  return ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
}

bool leads_elsewhere(const std::string& name) {
  addrinfo* found = nullptr;
  if (name.empty() || ::getaddrinfo(name.c_str(), nullptr, nullptr, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (!global_text(each->ai_addr).empty()) return true;
  }
  return false;
}

std::string first_global_address() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(found, &::freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* each = found; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      if (std::string text = global_text(each->ifa_addr); !text.empty()) return text;
    }
  }
  return {};
}

std::string host_of(const std::vector<std::string>& names) {
  if (!names.empty()) return names.front();
  std::array<char, HOST_NAME_MAX + 1> machine{};
  (void)::gethostname(machine.data(), HOST_NAME_MAX);
  if (leads_elsewhere(machine.data())) return machine.data();
  std::string address = first_global_address();
  return address.empty() ? machine.data() : address;
}

}  // namespace

bool listens_everywhere(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  return host.empty() || host == "0.0.0.0" || host == "[::]" || host == "::";
}

std::string reachable_address(const std::string& address, const std::vector<std::string>& names) {
  if (!listens_everywhere(address)) return address;
  const std::string host = host_of(names);
  const std::string port = address.substr(address.rfind(':'));
  return host.find(':') == std::string::npos ? host + port : "[" + host + "]" + port;
}

}  // namespace orrery
