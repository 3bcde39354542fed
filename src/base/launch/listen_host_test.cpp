#include "base/launch/listen_host.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/socket_address.hpp"

namespace orrery {
namespace {

class SeededEntropy final : public Entropy {
 public:
  [[nodiscard]] std::uint64_t draw() override { return rng_.next_u64(); }

 private:
  Rng rng_{7};
};

TEST(ListenHost, IsTheAddressOfANameInNumbers) {
  EXPECT_EQ(listen_host("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(listen_host("::1"), "[::1]");
  EXPECT_EQ(listen_host("no host has such a name"), "0.0.0.0");
}

TEST(ListenHost, AFreePortIsOneThatNobodyHas) {
  SeededEntropy first;
  const std::uint16_t port = free_port("127.0.0.1", first).value();
  const SocketAddress at = *SocketAddress::parse("tcp:127.0.0.1:" + std::to_string(port));
  const FileDescriptor taken(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(taken.get(), at.get(), at.size()), 0) << "it was free";
  SeededEntropy again;
  EXPECT_NE(free_port("127.0.0.1", again).value(), port) << "the same draw finds it taken";
  EXPECT_FALSE(free_port("nonsense", again));
}

}  // namespace
}  // namespace orrery
