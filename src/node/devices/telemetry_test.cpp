// node/devices/telemetry_test.cpp - what is read of a machine of files, and by which thread.
#include "node/devices/telemetry.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <utility>

#include "base/system/real_env.hpp"
#include "node/machine/kernel_counters.hpp"

namespace orrery {
namespace {

class TelemetryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_read_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    kernel_ = {.devices = name + "/dev", .system = name + "/sys", .processes = name + "/proc"};
    real_ = RealEnv::create().value();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
  KernelDirectories kernel_;
  std::unique_ptr<RealEnv> real_;
};

TEST_F(TelemetryTest, CountersAreThoseOfHardwareAlone) {
  write("proc/stat", "cpu  100 20 30 800 50 0 5 15 7 0\ncpu0 1 1 1 1\n");
  write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 5 kB\nMemAvailable: 400 kB\n");
  const std::string bridge = "docker0: 9000 9 9 0 0 0 0 0 9000 9 9 0 0 0 0 0\n";
  write("proc/net/dev",
        "Inter-| Receive\n face |bytes\n    lo: 7 7 7 0 0 0 0 0 7 7 7 0 0 0 0 0\n  eth0: "
        "100 2 1 0 0 0 0 0 200 3 2 0 0 0 0 0\n" +
            bridge);
  const KernelCounters bare = read_kernel_counters(real_->env().storage, kernel_);
  EXPECT_EQ(bare.cpu_busy, 170u) << "guests are counted in user";
  EXPECT_EQ(bare.cpu_total, 1020u);
  EXPECT_EQ(bare.memory_used_bytes, 600u * 1024);
  EXPECT_EQ(bare.received_bytes, 9100u) << "of a machine without hardware all but the loopback";
  write("sys/class/net/eth0/device/vendor", "0x15b3\n");
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  write(port + "port_rcv_data", "1000\n");
  write(port + "port_xmit_data", "2000\n");
  write(port + "port_rcv_errors", "4\n");
  write(port + "symbol_error", "5\n");
  write(port + "link_downed", "1\n");
  const KernelCounters all = read_kernel_counters(real_->env().storage, kernel_);
  EXPECT_EQ(all.received_bytes, 100u + 4'000);
  EXPECT_EQ(all.sent_bytes, 200u + 8'000);
  EXPECT_EQ(all.network_errors, 3u + 4);
  EXPECT_EQ(all.link_errors, 6u);
}

TEST_F(TelemetryTest, ThisMachineHasCountersToo) {
  const KernelCounters counters = read_kernel_counters(real_->env().storage, {});
  EXPECT_GT(counters.cpu_total, counters.cpu_busy);
  EXPECT_GT(counters.memory_bytes, counters.memory_used_bytes);
}

TEST(CpuBusyTest, IsThePartOfTheTimeBetweenTwoReadings) {
  EXPECT_DOUBLE_EQ(
      cpu_busy_between({.cpu_busy = 10, .cpu_total = 100}, {.cpu_busy = 40, .cpu_total = 200}),
      0.3);
  EXPECT_EQ(cpu_busy_between({.cpu_busy = 40, .cpu_total = 200}, {}), 0) << "counters began anew";
}

/// What passes between a test and its driver.
struct Gate {
  std::promise<void> entered;
  std::promise<void> go;
};

/// A call waits until it is let go; the first says that it has begun.
class SlowDriver final : public AcceleratorDriver {
 public:
  explicit SlowDriver(std::shared_ptr<Gate> gate)
      : gate_(std::move(gate)), go_(gate_->go.get_future().share()) {}
  const std::string& version() const override { return version_; }
  Result<std::vector<FoundAccelerator>> find() override { return std::vector<FoundAccelerator>(8); }
  AcceleratorReading read(std::uint32_t device) override {
    if (!std::exchange(entered_, true)) gate_->entered.set_value();
    go_.wait();
    AcceleratorReading reading;
    reading.power_w = 100 * device;
    reading.temperature_c = 50 + device;
    reading.memory_errors = 1;
    return reading;
  }
  Status set_clock(std::uint32_t, double) override { return {}; }

 private:
  std::shared_ptr<Gate> gate_;
  std::shared_future<void> go_;
  bool entered_ = false;
  std::string version_ = "slow";
};

TEST_F(TelemetryTest, ADriverThatHangsHoldsUpNothingButReadings) {
  const auto gate = std::make_shared<Gate>();
  TelemetrySetup setup{.interval = Duration::milliseconds(1), .kernel = kernel_};
  setup.drivers.push_back(std::make_unique<SlowDriver>(gate));
  setup.devices = {{0, 3}, {0, 5}};
  std::vector<NodeReading> heard;
  Telemetry telemetry(real_->loop(), real_->loop(), std::move(setup),
                      [&](const NodeReading& reading) { heard.push_back(reading); });
  bool ticked = false;
  (void)real_->env().timers.call_after(Duration::milliseconds(1), [&] { ticked = true; });
  real_->run_until([&] { return ticked; });
  EXPECT_TRUE(heard.empty());
  gate->go.set_value();
  real_->run_until([&] { return heard.size() >= 2; });
  ASSERT_EQ(heard[0].accelerators.size(), 2u);
  EXPECT_EQ(heard[0].accelerators[1].power_w, 500);
  const Signals signals = signals_of(heard[1]);
  EXPECT_EQ(signals.power_w, 800u);
  EXPECT_EQ(signals.temperature_c, 55);
  EXPECT_EQ(signals.ecc_count, 2u);
}

TEST_F(TelemetryTest, WhoeverLeavesWhileADriverHangsIsToldNothingMore) {
  const auto gate = std::make_shared<Gate>();
  bool heard = false;
  {
    TelemetrySetup setup{.kernel = kernel_};
    setup.drivers.push_back(std::make_unique<SlowDriver>(gate));
    setup.devices = {{0, 0}};
    const Telemetry telemetry(real_->loop(), real_->loop(), std::move(setup),
                              [&](const NodeReading&) { heard = true; });
    gate->entered.get_future().wait();
  }
  gate->go.set_value();
  bool ticked = false;
  (void)real_->env().timers.call_after(Duration::milliseconds(1), [&] { ticked = true; });
  real_->run_until([&] { return ticked; });
  EXPECT_FALSE(heard);
}

}  // namespace
}  // namespace orrery
