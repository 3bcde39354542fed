#include "node/service_notice.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "base/system/file_descriptor.hpp"

namespace orrery {
namespace {

/// A manager that listens at a path or at "@" and an abstract name.
FileDescriptor manager_at(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path);
  if (name.front() == '@') address.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  FileDescriptor manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  return manager;
}

/// The notice that has reached the manager; empty: none.
std::string heard(const FileDescriptor& manager) {
  std::array<char, 256> bytes{};
  const ssize_t got = ::recv(manager.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

std::string heard_at(const std::string& name) {
  const FileDescriptor manager = manager_at(name);
  notify_service(name, "READY=1\nSTATUS=serving");
  return heard(manager);
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

TEST(ServiceNotice, AManagerHearsItByAPathOrAnAbstractName) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "orrery-notice-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  EXPECT_EQ(heard_at(directory + "/notify"), "READY=1\nSTATUS=serving");
  EXPECT_EQ(heard_at("@" + directory), "READY=1\nSTATUS=serving");
  std::filesystem::remove_all(directory);
}

TEST(ServiceNotice, WithoutAListenerLeavesNothingOpen) {
  const std::ptrdiff_t before = open_descriptors();
  notify_service("", "READY=1");
  notify_service("/nowhere/at/all", "READY=1");
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ServiceNotice, OfANameThatIsTooLongReachesNobodyElse) {
  std::string longest = "@orrery-notice-" + std::to_string(::getpid()) + "-";
  longest.resize(sizeof(sockaddr_un::sun_path), 'x');
  const FileDescriptor manager = manager_at(longest);
  notify_service(longest + "x", "READY=1");
  EXPECT_EQ(heard(manager), "");
}

}  // namespace
}  // namespace orrery
