// A local cluster whose log is damaged, lost or restored from a copy, as seen by an operator.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/end_to_end/cli.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class LogLossTest : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    expect_done("up --nodes 1 --accelerators 2");
  }
  void TearDown() override {
    if (HasFailure()) std::cerr << slurp(path("c/orreryd.log"));
    EXPECT_EQ(live("down").code, 0);
    Cli::TearDown();
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--dir " + path("c") + " " + arguments);
  }
  void expect_done(const std::string& arguments) const {
    const CliRun run = live(arguments);
    EXPECT_EQ(run.code, 0) << arguments << ": " << run.err;
  }
  /// Error output of a call that must fail.
  [[nodiscard]] std::string refusal(const std::string& arguments) const {
    const CliRun run = live(arguments);
    EXPECT_EQ(run.code, 1) << arguments << ": " << run.out;
    return run.err;
  }
  [[nodiscard]] int submitted(const std::string& arguments) const {
    const CliRun run = live("-o json submit " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    return std::stoi(Json::parse(run.out).at("id").get<std::string>());
  }
  /// Whether a process with this command line, which no other test uses, is running.
  [[nodiscard]] static bool runs(const std::string& command) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (slurp(entry.path() / "cmdline") == command) return true;
    }
    return false;
  }
  static void await(const std::function<bool()>& condition) {
    for (int i = 0; i < 2'000; ++i) {
      if (condition()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL() << "what was awaited did not come";
  }
  /// A job that runs until it is ended.
  [[nodiscard]] int sleeper() const {
    const int id = submitted("-- sleep " + sleep_time());
    await([&] { return sleeps(); });
    return id;
  }
  [[nodiscard]] bool sleeps() const {
    return runs(std::string("sleep\0", 6) + sleep_time() + std::string(1, '\0'));
  }
  [[nodiscard]] std::string sleep_time() const { return std::to_string(100'000 + ::getpid()); }

  void kill_controller() const {
    const int pid = std::stoi(slurp(path("c/orreryd.pid")));
    const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    ASSERT_GE(handle, 0);
    ASSERT_EQ(::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0), 0);
    ::close(handle);
    await([&] { return !fs::exists("/proc/" + std::to_string(pid)); });
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
};

TEST_F(LogLossTest, FlippedBytesOfTheLogAreRefusedAndWhatIsGoodGoesOn) {
  const int running = sleeper();
  int newest = 0;
  for (int i = 0; i < 8; ++i) newest = submitted("-- true");
  expect_done("wait " + std::to_string(newest));
  kill_controller();
  const std::string wal = path("c/store/store.db-wal");
  {
    std::fstream file(wal, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(wal) * 3 / 4));
    file.write("\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a", 8);
  }
  expect_in(refusal("store verify " + path("c/store")), wal + ": byte ");
  const std::string refused = refusal("up");
  expect_in(refused, wal + ": byte ");
  expect_in(refused, "orrery store salvage " + path("c/store") + " --out NEW");
  EXPECT_TRUE(sleeps()) << "nothing is ended";
  const CliRun salvaged =
      live("-o json store salvage " + path("c/store") + " --out " + path("salvaged"));
  EXPECT_EQ(salvaged.code, 0) << salvaged.err;
  const Json lost = Json::parse(salvaged.out);
  expect_in(lost.at("damage"), wal + ": byte ");
  ASSERT_EQ(lost.at("lost_jobs").size(), 2U) << lost;
  EXPECT_EQ(lost.at("lost_jobs").at(1), newest);
  EXPECT_GT(lost.at("lost_batches").at(1), lost.at("newest_batch"));
  expect_done("store verify " + path("salvaged"));
  const CliRun restored = live("store restore " + path("salvaged"));
  EXPECT_EQ(restored.code, 0) << restored.err;
  expect_in(restored.out, "previous store kept as: " + path("c/store.before-restore"));
  expect_in(refusal("store verify " + path("c/store.before-restore")), "byte ");
  expect_done("up");
  EXPECT_EQ(submitted("-- true"), newest + 1) << "no number is given out twice";
  const Json job = Json::parse(live("-o json job " + std::to_string(running)).out);
  EXPECT_EQ(job.at("phase"), "running");
  EXPECT_EQ(job.at("attempt"), 1);
  EXPECT_TRUE(sleeps());
}

TEST_F(LogLossTest, RanksThatAnOlderLogNeverHadHaltTheControllerUntilAnOperatorChooses) {
  const int before = submitted("-- true");
  expect_done("wait " + std::to_string(before));
  const std::string copy = path("copy.db");
  expect_done("store backup " + path("c/store") + " " + copy);
  expect_in(refusal("store restore " + copy), "writes this store");
  const int lost = sleeper();
  kill_controller();
  expect_in(refusal("store restore " + copy), "--force");
  expect_done("store restore --force " + copy);
  const std::string halted = "runs attempt 1 of job " + std::to_string(lost);
  static_cast<void>(live("up"));  // its agent may not have reported yet
  await([&] { return live("doctor --fleet").out.find(halted) != std::string::npos; });
  expect_in(refusal("submit -- true"), halted);
  expect_in(refusal("up"), halted);
  expect_in(slurp(path("c/orreryd.log")), halted);
  EXPECT_TRUE(sleeps()) << "nothing is ended unasked";
  expect_in(refusal("up --accept-lost-jobs"), "down --keep-jobs");
  expect_done("down --keep-jobs");
  EXPECT_TRUE(sleeps());
  expect_done("up --accept-lost-jobs");
  await([&] { return !sleeps(); });
  EXPECT_EQ(submitted("-- true"), lost + 1);
  expect_in(live("job " + std::to_string(lost)).err, "lost with a part of the log");
}

}  // namespace
}  // namespace orrery
