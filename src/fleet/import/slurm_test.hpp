// fleet/import/slurm_test.hpp - Slurm configurations in a directory of their own, for the tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.hpp"

namespace orrery {

class SlurmDirectory : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_slurm_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  /// Returns the text of an error, which must exist and be an input error, without the directory.
  template <class T>
  [[nodiscard]] std::string shown_error(const Result<T>& result) const {
    EXPECT_FALSE(result);
    if (result) return {};
    EXPECT_EQ(result.error().kind, ErrorKind::kInput);
    std::string text = result.error().text();
    for (std::size_t at = text.find(path("")); at != text.npos; at = text.find(path(""))) {
      text.erase(at, path("").size());
    }
    return text;
  }

 private:
  std::string directory_;
};

}  // namespace orrery
