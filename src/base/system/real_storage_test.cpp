// base/system/real_storage_test.cpp - real files: durability calls, atomic replacement, full disks,
// kills.
#include "base/system/real_storage.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace orrery {
namespace {

constexpr std::size_t kSizeMax = std::size_t{1} << 24;

class StorageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_storage_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  [[nodiscard]] std::string content(const std::string& name) {
    StorageResult<std::string> read = storage_.read_file(path(name), kSizeMax);
    return read ? *read : read.error().message;
  }
  [[nodiscard]] std::unique_ptr<File> open(const std::string& name, OpenMode mode) {
    StorageResult<std::unique_ptr<File>> file = storage_.open(path(name), mode);
    EXPECT_TRUE(file) << file.error().message;
    return file ? *std::move(file) : nullptr;
  }

  RealStorage storage_;
  std::string directory_;
};

// While it lives, no file of this process grows beyond `bytes`: a disk that is full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : signal_before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_before_);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int);
};

TEST_F(StorageTest, AFileKeepsWhatIsAppendedAcrossOpens) {
  {
    const auto file = open("log", OpenMode::kCreate);
    ASSERT_TRUE(file->append("one"));
    ASSERT_TRUE(file->append(""));
    ASSERT_TRUE(file->sync());
    EXPECT_EQ(file->size(), 3u);
  }
  const auto file = open("log", OpenMode::kAppend);
  EXPECT_EQ(file->size(), 3u);
  ASSERT_TRUE(file->append("two"));
  EXPECT_EQ(file->read({.offset = 0, .size = 100}).value(), "onetwo");
  EXPECT_EQ(file->read({.offset = 2, .size = 2}).value(), "et");
  EXPECT_EQ(file->read({.offset = 6, .size = 1}).value(), "");
  EXPECT_EQ(content("log"), "onetwo");
}

TEST_F(StorageTest, ATornTailIsCutAndAppendingGoesOnAtTheCut) {
  const auto file = open("log", OpenMode::kAppend);
  ASSERT_TRUE(file->append("whole|torn"));
  ASSERT_TRUE(file->truncate(6));
  ASSERT_TRUE(file->append("next"));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(content("log"), "whole|next");
}

TEST_F(StorageTest, OpenModesSayWhetherTheFileMayOrMustExist) {
  EXPECT_EQ(storage_.open(path("a"), OpenMode::kRead).error().failure, StorageFailure::kNotFound);
  EXPECT_EQ(open("a", OpenMode::kCreate)->size(), 0u);
  EXPECT_EQ(storage_.open(path("a"), OpenMode::kCreate).error().failure, StorageFailure::kExists);
  EXPECT_FALSE(open("a", OpenMode::kRead)->append("x"));
  EXPECT_EQ(content("a"), "");
}

TEST_F(StorageTest, FilesAndDirectoriesAreForTheirOwnerAlone) {
  ASSERT_TRUE(storage_.make_directories(path("d/e")));
  ASSERT_TRUE(storage_.write_file(path("d/e/f"), "x"));
  ASSERT_NE(open("d/e/g", OpenMode::kAppend), nullptr);
  const auto mode_of = [&](const std::string& name) {
    struct stat found{};
    EXPECT_EQ(::stat(path(name).c_str(), &found), 0);
    return found.st_mode & 0777u;
  };
  EXPECT_EQ(mode_of("d"), 0700u);
  EXPECT_EQ(mode_of("d/e"), 0700u);
  EXPECT_EQ(mode_of("d/e/f"), 0600u);
  EXPECT_EQ(mode_of("d/e/g"), 0600u);
}

TEST_F(StorageTest, AppendingToAFullDiskSaysFullAndLeavesTheFileAsItWas) {
  const auto file = open("log", OpenMode::kAppend);
  ASSERT_TRUE(file->append(std::string(3000, 'a')));
  StorageStatus refused;
  {
    const FileSizeLimit full(4096);
    refused = file->append(std::string(3000, 'b'));
  }
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().failure, StorageFailure::kFull);
  EXPECT_NE(refused.error().message.find(path("log")), std::string::npos);
  EXPECT_EQ(content("log"), std::string(3000, 'a'));
  ASSERT_TRUE(file->append("c"));  // room again
  EXPECT_EQ(content("log"), std::string(3000, 'a') + "c");
}

TEST_F(StorageTest, ADeviceWithoutSpaceSaysFull) {
  StorageResult<std::unique_ptr<File>> device = storage_.open("/dev/full", OpenMode::kAppend);
  ASSERT_TRUE(device) << device.error().message;
  const StorageStatus refused = (*device)->append("x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().failure, StorageFailure::kFull);
  EXPECT_EQ((*device)->size(), 0u);
}

TEST_F(StorageTest, AFailedSyncIsFinal) {
  // A device that cannot be synced stands for a disk that lost what it was given.
  StorageResult<std::unique_ptr<File>> device = storage_.open("/dev/null", OpenMode::kAppend);
  ASSERT_TRUE(device) << device.error().message;
  ASSERT_TRUE((*device)->append(""));
  ASSERT_FALSE((*device)->sync());
  EXPECT_FALSE((*device)->append("x"));
  const StorageStatus again = (*device)->sync();
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("earlier failure"), std::string::npos);
}

TEST_F(StorageTest, WritingAFileOnAFullDiskKeepsTheOldContentAndLeavesNothingBehind) {
  ASSERT_TRUE(storage_.write_file(path("state"), "old"));
  StorageStatus refused;
  {
    const FileSizeLimit full(4096);
    refused = storage_.write_file(path("state"), std::string(10'000, 'n'));
  }
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().failure, StorageFailure::kFull);
  EXPECT_EQ(content("state"), "old");
  EXPECT_FALSE(std::filesystem::exists(path("state.tmp")));
}

TEST_F(StorageTest, AReaderSeesTheOldOrTheNewContentNeverAMixture) {
  const std::string even(40'000, 'e');
  const std::string odd(70'000, 'o');
  ASSERT_TRUE(storage_.write_file(path("state"), even));
  std::atomic<bool> done = false;
  std::string torn;
  int reads = 0;
  std::thread reader([&] {
    RealStorage own;
    do {
      const StorageResult<std::string> seen = own.read_file(path("state"), kSizeMax);
      if (!seen) {
        torn = seen.error().message;
      } else if (*seen != even && *seen != odd) {
        torn = fmt::format("{} bytes", seen->size());
      }
      ++reads;
    } while (!done && torn.empty());
  });
  StorageStatus wrote;
  for (int i = 0; i < 100 && wrote; ++i) {
    wrote = storage_.write_file(path("state"), i % 2 == 0 ? odd : even);
  }
  done = true;
  reader.join();
  EXPECT_TRUE(wrote);
  EXPECT_EQ(torn, "");
  EXPECT_GE(reads, 1);
}

constexpr std::size_t kNumberDigits = 10;

// A large file whose every ten bytes are the number of its version.
std::string version(int number) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("{:0{}}", number, kNumberDigits);
  return text;
}

// Replaces the file for ever, telling `progress` of every replacement done.
[[noreturn]] void replace_until_killed(const std::string& path, int progress) {
  RealStorage storage;
  for (int number = 1;; ++number) {
    if (!storage.write_file(path, version(number))) ::_exit(1);
    if (::write(progress, "", 1) != 1) ::_exit(2);
  }
}

TEST_F(StorageTest, AKilledWriterLeavesOneWholeVersionNotOlderThanTheLastReported) {
  for (int reported = 1; reported <= 5; ++reported) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const FileDescriptor progress(ends[0]);
    FileDescriptor child_end(ends[1]);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) replace_until_killed(path("state"), child_end.get());
    child_end.reset();
    char byte = '\0';
    for (int i = 0; i < reported; ++i) ASSERT_EQ(::read(progress.get(), &byte, 1), 1);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::string found = content("state");
    const int number = std::atoi(found.substr(0, kNumberDigits).c_str());
    EXPECT_GE(number, reported);
    EXPECT_TRUE(found == version(number));
    EXPECT_EQ(storage_.list(directory_).value(), std::vector<std::string>{"state"});
  }
  EXPECT_TRUE(storage_.write_file(path("state"), "after"));  // whatever the killed one left behind
  EXPECT_EQ(content("state"), "after");
}

TEST_F(StorageTest, ListIsSortedAndHidesUnfinishedWrites) {
  for (const char* name : {"b", "a", "B", "a.tmp.x", "c.tmp"}) {
    std::ofstream(path(name)) << "x";
  }
  ASSERT_TRUE(storage_.make_directories(path("sub")));
  EXPECT_EQ(storage_.list(directory_).value(),
            (std::vector<std::string>{"B", "a", "a.tmp.x", "b", "sub"}));
  EXPECT_EQ(storage_.list(path("none")).error().failure, StorageFailure::kNotFound);
}

TEST_F(StorageTest, RenameReplacesAndRemoveRemoves) {
  ASSERT_TRUE(storage_.write_file(path("new"), "new"));
  ASSERT_TRUE(storage_.write_file(path("old"), "old"));
  ASSERT_TRUE(storage_.rename({.from = path("new"), .to = path("old")}));
  EXPECT_EQ(content("old"), "new");
  EXPECT_EQ(storage_.rename({.from = path("new"), .to = path("old")}).error().failure,
            StorageFailure::kNotFound);
  ASSERT_TRUE(storage_.remove(path("old")));
  EXPECT_EQ(storage_.remove(path("old")).error().failure, StorageFailure::kNotFound);
  EXPECT_TRUE(storage_.list(directory_).value().empty());
}

TEST_F(StorageTest, MakingADirectoryThatExistsIsFineUnlessItIsAFile) {
  ASSERT_TRUE(storage_.make_directories(path("a/b/c")));
  EXPECT_TRUE(storage_.make_directories(path("a/b/c/")));
  EXPECT_TRUE(storage_.make_directories(path("a/d//e/./f/")));
  EXPECT_TRUE(std::filesystem::is_directory(path("a/d/e/f")));
  ASSERT_TRUE(storage_.write_file(path("file"), ""));
  EXPECT_EQ(storage_.make_directories(path("file")).error().failure, StorageFailure::kExists);
}

TEST_F(StorageTest, AFileAboveTheLimitIsNotReadAndOneAtTheLimitIs) {
  ASSERT_TRUE(storage_.write_file(path("f"), std::string(100'000, 'x')));
  EXPECT_EQ(storage_.read_file(path("f"), 100'000).value().size(), 100'000u);
  const StorageResult<std::string> refused = storage_.read_file(path("f"), 99'999);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("99999 bytes"), std::string::npos);
}

TEST_F(StorageTest, FreeSpaceIsKnownForPathsThatExist) {
  EXPECT_GT(storage_.free_bytes(directory_).value(), 0u);
  EXPECT_EQ(storage_.free_bytes(path("none")).error().failure, StorageFailure::kNotFound);
}

TEST_F(StorageTest, APathWithoutANameIsRefused) {
  EXPECT_FALSE(storage_.write_file(directory_ + "/", "x"));
  EXPECT_FALSE(storage_.write_file("", "x"));
  EXPECT_FALSE(storage_.open("", OpenMode::kAppend));
}

TEST_F(StorageTest, AStorageErrorTravelsOnAsAnError) {
  const auto read_it = [&]() -> Result<std::string> {
    StorageResult<std::string> read = storage_.read_file(path("none"), 1);
    if (!read) return forward_error(read);
    return *read;
  };
  const Result<std::string> failed = read_it();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(failed.error().message, path("none") + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace orrery
