// A cluster whose disk is small, then full, on a file system of the test's own. Needs the right to
// mount one, and fails without it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/system/file_descriptor.hpp"
#include "tests/end_to_end/cli.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class FullDiskTest : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    fs::create_directory(path("disk"));
  }
  void TearDown() override {
    if (HasFailure()) std::cerr << slurp(path("disk/c/orreryd.log"));
    if (fs::exists(path("disk/c/local.json"))) {
      EXPECT_EQ(live("down").code, 0);
    }
    EXPECT_EQ(::umount(path("disk").c_str()), 0) << std::strerror(errno);
    Cli::TearDown();
  }
  void mount_disk(const std::string& size) const {
    ASSERT_EQ(::mount("tmpfs", path("disk").c_str(), "tmpfs", 0, ("size=" + size).c_str()), 0)
        << "this test mounts a tmpfs, which needs root: " << std::strerror(errno);
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("disk/c") + " " + arguments);
  }
  /// Fills the disk until the space is freed.
  void fill() const {
    const FileDescriptor file(
        ::open(path("disk/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    off_t size = 0;
    for (const off_t step : {off_t{8} << 20, off_t{64} << 10, off_t{4} << 10}) {
      while (::posix_fallocate(file.get(), size, step) == 0) size += step;
    }
    ASSERT_GT(size, 0);
  }
  void empty() const { fs::remove(path("disk/filler")); }
  static void await(const std::function<bool()>& condition) {
    for (int i = 0; i < 2'000; ++i) {
      if (condition()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL() << "what was awaited did not come";
  }
  /// The answer of the controller at this path.
  [[nodiscard]] std::string fetched(const std::string& url_path) const {
    const Json cluster = Json::parse(slurp(path("disk/c/cluster.json")));
    const std::string script =
        write("fetch.py",
              "import ssl, sys, urllib.request\n"
              "asked = urllib.request.Request(sys.argv[1], headers={'Authorization': 'Bearer ' + "
              "open(sys.argv[2]).read().strip()})\n"
              "print(urllib.request.urlopen(asked, context=ssl._create_unverified_context()).read()"
              ".decode())\n");
    const std::string command = "python3 " + script + " https://" +
                                cluster.at("http").get<std::string>() + url_path + " " +
                                path("disk/c/token") + " >" + path("fetched");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return slurp(path("fetched"));
  }
  void kill_controller() const {
    const int pid = std::stoi(slurp(path("disk/c/orreryd.pid")));
    const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    ASSERT_GE(handle, 0);
    ASSERT_EQ(::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0), 0);
    ::close(handle);
    await([&] { return !fs::exists("/proc/" + std::to_string(pid)); });
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  /// Whether a file below `directory` has this text.
  [[nodiscard]] static bool has_text(const std::string& directory, const std::string& text) {
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && slurp(entry.path()).find(text) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
};

TEST_F(FullDiskTest, ADiskThatIsTooSmallIsRefusedAtTheStart) {
  mount_disk("100m");
  const CliRun up = live("up --nodes 1 --accelerators 1");
  EXPECT_EQ(up.code, 1);
  expect_in(up.err, "MiB are free, expected at least 144 MiB");
}

TEST_F(FullDiskTest, AFullDiskIsToldAndAControllerComesBackOnIt) {
  mount_disk("400m");
  const CliRun up = live("up --nodes 1 --accelerators 2");
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_EQ(fetched("/healthz"), "ok\n\n");
  expect_in(fetched("/metrics"), "orrery_store_full 0");
  const std::string script = write("rank.sh",
                                   "x=$(head -c 4000 /dev/zero | tr '\\0' x)\n"
                                   "while [ ! -e " +
                                       path("go") +
                                       " ]; do\n"
                                       "  echo a-line-of-the-rank $x; echo >>" +
                                       path("lines") +
                                       "; sleep 0.01\n"
                                       "done\n");
  const CliRun writer = live("-o json submit -- sh " + script);
  ASSERT_EQ(writer.code, 0) << writer.err;
  const std::string id = Json::parse(writer.out).at("id");
  await([&] { return has_text(path("disk/c/nodes"), "a-line-of-the-rank"); });
  fill();
  const std::size_t lines = slurp(path("lines")).size();
  await([&] { return slurp(path("lines")).size() > lines + 50; });
  const CliRun refused = live("submit -- true");
  EXPECT_EQ(refused.code, 1);
  expect_in(refused.err, "disk is full");
  expect_in(fetched("/metrics"), "orrery_store_full 1");
  expect_in(fetched("/healthz"), "disk is full");
  kill_controller();
  const CliRun again = live("up");
  EXPECT_EQ(again.code, 0) << again.err;
  expect_in(fetched("/healthz"), "disk is full");
  expect_in(slurp(path("disk/c/orreryd.log")), "disk full, submissions are refused");
  expect_in(fetched("/metrics"), "orrery_disk_free_bytes");
  empty();
  static_cast<void>(write("go", ""));
  EXPECT_EQ(live("wait " + id).code, 0);
  EXPECT_TRUE(
      has_text(path("disk/c/nodes"), "bytes of this log are missing here: the disk was full"));
  expect_in(live("logs " + id).out, "bytes of this log are missing here: the disk was full");
  await([&] { return live("submit -- true").code == 0; });
}

}  // namespace
}  // namespace orrery
