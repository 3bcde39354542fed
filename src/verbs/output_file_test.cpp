#include "verbs/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(OutputFile, IsWrittenReplacedAndReadableByAll) {
  const ScratchFiles files;
  const std::string path = files.path("out.html");
  ASSERT_TRUE(write_output_file(path, std::string("a\0b", 3)));
  EXPECT_EQ(files.read("out.html"), std::string("a\0b", 3));
  ASSERT_TRUE(write_output_file(path, ""));
  EXPECT_EQ(files.read("out.html"), "");
  EXPECT_EQ(static_cast<int>(fs::status(path).permissions()), 0644);
  EXPECT_EQ(files_in(files.path("")), 1U) << "no file beside it is left";
}

TEST(OutputFile, ALinkStaysALink) {
  const ScratchFiles files;
  files.write("target", "before");
  fs::create_symlink(files.path("target"), files.path("link"));
  ASSERT_TRUE(write_output_file(files.path("link"), "after"));
  EXPECT_TRUE(fs::is_symlink(files.path("link")));
  EXPECT_EQ(files.read("target"), "after");
}

TEST(OutputFile, AReaderOfTheOldFileStillSeesAllOfIt) {
  const ScratchFiles files;
  std::ifstream old(files.write("out", std::string(100'000, 'x')));
  ASSERT_TRUE(write_output_file(files.path("out"), "short"));
  const std::string seen{std::istreambuf_iterator<char>(old), {}};
  EXPECT_EQ(seen, std::string(100'000, 'x'));
}

TEST(OutputFile, IntoAPipeThreadsGetTheTextAndThePipeStays) {
  const ScratchFiles files;
  const std::string pipe = files.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string seen;
  std::thread reader([&] {
    std::ifstream in(pipe);
    seen.assign(std::istreambuf_iterator<char>(in), {});
  });
  const Status written = write_output_file(pipe, std::string(200'000, 'y'));
  reader.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(seen.size(), 200'000U);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, WhatCannotBeWrittenIsNamed) {
  const ScratchFiles files;
  const std::string nowhere = files.path("no/such/file");
  const Status missing = write_output_file(nowhere, "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(missing.error().text(), "cannot write " + nowhere + ": No such file or directory");
  const Status directory = write_output_file(files.path(""), "x");
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().text(), "cannot write " + files.path("") + ": Is a directory");
  const Status full = write_output_file("/dev/full", "x");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().text(), "cannot write /dev/full: No space left on device");
}

}  // namespace
}  // namespace orrery
