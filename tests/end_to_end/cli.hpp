// tests/end_to_end/cli.hpp - the program as a user runs it: a process, its exit code, what it
// prints where; in a directory that is gone with the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace orrery {

struct CliRun {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string slurp(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;  // unlike an iterator, it does not throw where a process has just ended
  text << file.rdbuf();
  return std::move(text).str();
}

/// Path of the orrery program in the build.
std::string program();

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }

  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  /// Variables of the program, "NAME=VALUE " each.
  [[nodiscard]] virtual std::string environment() const { return {}; }
  [[nodiscard]] CliRun orrery(const std::string& arguments) const {
    const std::string command = environment() + program() + " " + arguments + " >" + path("out") +
                                " 2>" + path("err") + " </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(path("out")), slurp(path("err"))};
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace orrery
