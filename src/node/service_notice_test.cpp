#include "node/service_notice.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <filesystem>

#include "base/file_descriptor.hpp"

namespace orrery {
namespace {

/// What a manager bound to `name` hears of one notice.
std::string heard_at(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path);
  if (name.front() == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const FileDescriptor manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  notify_service(name, "READY=1\nSTATUS=serving");
  std::array<char, 256> bytes{};
  const ssize_t got = ::recv(manager.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

TEST(ServiceNotice, AManagerHearsItByAPathOrAnAbstractName) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "orrery-notice-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  EXPECT_EQ(heard_at(directory + "/notify"), "READY=1\nSTATUS=serving");
  EXPECT_EQ(heard_at("@" + directory), "READY=1\nSTATUS=serving");
  std::filesystem::remove_all(directory);
}

TEST(ServiceNotice, NobodyWhoListensIsNoFailure) {
  notify_service("", "READY=1");
  notify_service("/nowhere/at/all", "READY=1");
  notify_service("@" + std::string(200, 'x'), "READY=1");
}

}  // namespace
}  // namespace orrery
