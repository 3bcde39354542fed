// tests/end_to_end/throwaway_users.hpp - a POSIX user that exists for the duration of a test.
//
// Made by tests that run as root. If a test was killed, the next test that makes a user removes its
// user.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace orrery {

class ThrowawayUser {
 public:
  explicit ThrowawayUser(char letter) : name_(fmt::format("{}{}-{}", kPrefix, ::getpid(), letter)) {
    remove_left_over();
    const int status = std::system(
        fmt::format("{} /usr/sbin/useradd --no-log-init --no-create-home --home-dir /nonexistent "
                    "--shell /bin/sh {} >/dev/null",
                    kOneAtATime, name_)
            .c_str());
    EXPECT_EQ(status, 0) << "useradd " << name_;
    const passwd* found = ::getpwnam(name_.c_str());
    EXPECT_NE(found, nullptr) << name_;
    if (found != nullptr) uid_ = found->pw_uid;
  }
  ThrowawayUser(const ThrowawayUser&) = delete;
  ThrowawayUser& operator=(const ThrowawayUser&) = delete;
  ~ThrowawayUser() { remove(name_); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uid_t uid() const { return uid_; }

 private:
  static constexpr std::string_view kPrefix = "orrery-test-";
  /// Two userdel at a time can lose one's change of /etc/passwd.
  static constexpr std::string_view kOneAtATime = "flock /run/lock/orrery-test-users";

  static void remove(const std::string& name) {
    const std::string command =
        fmt::format("{} /usr/sbin/userdel {} >/dev/null", kOneAtATime, name);
    EXPECT_EQ(std::system(command.c_str()), 0) << name;
  }
  /// Their names have the number of the process that made them.
  static void remove_left_over() {
    std::vector<std::string> left;
    std::ifstream users("/etc/passwd");
    for (std::string line; std::getline(users, line);) {
      if (!line.starts_with(kPrefix)) continue;
      pid_t maker = 0;
      const char* digits = line.data() + kPrefix.size();
      std::from_chars(digits, line.data() + line.size(), maker);
      const bool alive = maker > 0 && ::kill(maker, 0) == 0;
      if (!alive) left.push_back(line.substr(0, line.find(':')));
    }
    for (const std::string& name : left) {
      // Another test may remove it now, and processes of a killed test may still run as it.
      (void)!std::system(
          fmt::format("{} /usr/sbin/userdel --force {} >/dev/null 2>&1", kOneAtATime, name)
              .c_str());
    }
  }

  std::string name_;
  uid_t uid_ = 0;
};

}  // namespace orrery
