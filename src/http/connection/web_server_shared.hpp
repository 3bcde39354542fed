// http/connection/web_server_shared.hpp - what the connections of a server share.
//
// The server makes and owns it; it outlives the connections. On the loop's thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/system/real_clock.hpp"
#include "base/system/real_loop.hpp"
#include "http/web_server.hpp"

namespace orrery {

struct WebServerShared {
  RealLoop& loop;
  const WebServerOptions options;
  WebHandler& handler;
  RealClock clock;
  std::unique_ptr<char[]> chunk;  ///< for the read in progress
  std::string head;               ///< of the answer in progress
  enum class Stage : std::uint8_t { kServing, kStopping } stage = Stage::kServing;
};

}  // namespace orrery
