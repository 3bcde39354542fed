// verbs/scratch_files_test.hpp - a directory of one test, for the files that a verb reads and
// writes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace orrery {

/// The directory is empty when it is made, is named for the test that owns it, and is removed at
/// the end. Precondition: a test runs.
class ScratchFiles {
 public:
  ScratchFiles() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    const std::string name = std::string("orrery_") + test.test_suite_name() + "_" + test.name();
    directory_ = std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~ScratchFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  ScratchFiles(const ScratchFiles&) = delete;
  ScratchFiles& operator=(const ScratchFiles&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }
  /// Writes a file, and returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return path(name);
  }
  /// Returns what a file holds; "" where there is none.
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(directory_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path directory_;
};

}  // namespace orrery
