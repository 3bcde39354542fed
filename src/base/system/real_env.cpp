#include "base/system/real_env.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.hpp"

namespace orrery {

std::uint64_t RealEntropy::draw() {
  std::uint64_t bits = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&bits, sizeof bits, 0);
  } while (got < 0 && errno == EINTR);
  ORRERY_ASSERT(got == static_cast<ssize_t>(sizeof bits), "getrandom fills up to 256 bytes whole");
  return bits;
}

Result<std::unique_ptr<RealEnv>> RealEnv::create(const TransportLimits& limits,
                                                 Durability durability) {
  Result<std::unique_ptr<RealLoop>> loop = RealLoop::create();
  if (!loop) return forward_error(loop);
  return std::make_unique<RealEnv>(*std::move(loop), limits, durability);
}

void RealEnv::run() {
  run_until([] { return false; });
}

void RealEnv::run_until(const std::function<bool()>& condition) {
  while (!stopping_ && !condition()) loop_->run_round();
  stopping_ = false;
}

}  // namespace orrery
