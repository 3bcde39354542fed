// http/name_lookup.hpp - addresses of host names, looked up beside the event loop.
//
// getaddrinfo(3) blocks, so each lookup runs on a thread of its own; its result is posted to the
// loop. The end of a NameLookup drops results that are still on their way. Cost: a thread for each
// lookup, so callers keep what they get.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {

class NameLookup {
 public:
  using Answer = std::function<void(Result<SocketAddress>)>;

  /// `inbox` outlives the object.
  explicit NameLookup(Inbox& inbox);
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;
  ~NameLookup();

  /// Looks up "HOST:PORT"; an address in numbers is answered in a later round without a thread.
  void find(std::string endpoint, Answer answer);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace orrery
