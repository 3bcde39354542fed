#include "base/launch/listen_host.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(ListenHost, IsTheAddressOfANameInNumbers) {
  EXPECT_EQ(listen_host("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(listen_host("::1"), "[::1]");
  EXPECT_EQ(listen_host("no host has such a name"), "0.0.0.0");
}

}  // namespace
}  // namespace orrery
