#include "http/name_lookup.hpp"

#include <netdb.h>

#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace orrery {
namespace {

/// Returns the first address of a name, as SocketAddress reads it.
Result<SocketAddress> first_address(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == endpoint.npos || colon == 0) {
    return input_error({}, fmt::format("\"{}\": expected HOST:PORT", endpoint));
  }
  const std::string host = endpoint.substr(0, colon);
  const std::string port = endpoint.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0 || found == nullptr) {
    return environment_error(fmt::format("{}: {}", endpoint, ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, &::freeaddrinfo);
  char text[NI_MAXHOST];
  if (::getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return environment_error(fmt::format("{}: its address has no text", endpoint));
  }
  const bool v6 = found->ai_family == AF_INET6;
  return SocketAddress::parse(v6 ? fmt::format("tcp:[{}]:{}", text, port)
                                 : fmt::format("tcp:{}:{}", text, port));
}

}  // namespace

struct NameLookup::Shared {
  std::mutex mutex;
  Inbox* inbox = nullptr;  ///< null once the lookup has ended
  bool ended = false;      ///< read and written on the loop alone
};

NameLookup::NameLookup(Inbox& inbox) : shared_(std::make_shared<Shared>()) {
  shared_->inbox = &inbox;
}

NameLookup::~NameLookup() {
  shared_->ended = true;
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->inbox = nullptr;
}

void NameLookup::find(std::string endpoint, Answer answer) {
  const auto give = [](const std::shared_ptr<Shared>& shared, Answer to,
                       Result<SocketAddress> found) {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    if (shared->inbox == nullptr) return;
    shared->inbox->post([shared, to = std::move(to), found = std::move(found)] {
      if (!shared->ended) to(found);
    });
  };
  Result<SocketAddress> numeric = SocketAddress::parse("tcp:" + endpoint);
  if (numeric) {
    give(shared_, std::move(answer), std::move(numeric));
    return;
  }
  try {
    std::thread([give, shared = shared_, endpoint, answer] {
      give(shared, answer, first_address(endpoint));
    }).detach();
  } catch (const std::system_error& error) {
    give(
        shared_, std::move(answer),
        environment_error(fmt::format("{}: no thread for its lookup: {}", endpoint, error.what())));
  }
}

}  // namespace orrery
