// node/devices/discovery_test.cpp - what is found on machines made of real libraries with the entry
// points of the makers' own (tests/drivers) and of files as the kernel shows them.
#include "node/devices/discovery.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/system/real_storage.hpp"
#include "hardware/builtin_catalog.hpp"
#include "node/machine/host_topology.hpp"
#include "tests/drivers/fake_nvml.hpp"

namespace orrery {
namespace {

class DiscoveryTest : public ::testing::Test {
 protected:
  /// Read once.
  static const Catalog& catalog() {
    static const Catalog read = Catalog::load(builtin_catalog(), {}).value();
    return read;
  }
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_found_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    // The library's state lives as long as it is open.
    library_ = ::dlopen(ORRERY_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    nvml_ = reinterpret_cast<FakeNvml* (*)()>(::dlsym(library_, "fake_nvml"))();
    *nvml_ = {};
  }
  void TearDown() override {
    (void)::dlclose(library_);
    std::filesystem::remove_all(directory_);
  }

  /// Nothing but what the test adds.
  [[nodiscard]] DiscoverySources empty_machine() const {
    return {.nvml = {"libof-nobody.so.1"},
            .rocm_smi = {},
            .kernel = {.devices = directory_ + "/dev", .system = directory_ + "/sys"}};
  }
  [[nodiscard]] DiscoverySources machine_with_nvml(const std::string& library) const {
    DiscoverySources sources = empty_machine();
    sources.nvml.push_back(library);
    return sources;
  }
  void add_pci(const std::string& bus, const std::map<std::string, std::string>& files) const {
    const std::string path = directory_ + "/sys/bus/pci/devices/" + bus;
    std::filesystem::create_directories(path);
    for (const auto& [name, text] : files) std::ofstream(path + "/" + name) << text << '\n';
  }
  void add_device_file(const std::string& name) const {
    const std::filesystem::path path = directory_ + "/dev/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path);
  }
  Discovery find(const DiscoverySources& sources) {
    return discover_accelerators(catalog(), storage_, sources);
  }
  NodeInventory offer_of(Discovery& discovery) {
    NodeInventory inventory;
    offer(discovery, catalog(), inventory);
    return inventory;
  }

  std::string directory_;
  RealStorage storage_;
  void* library_ = nullptr;
  FakeNvml* nvml_ = nullptr;
};

TEST_F(DiscoveryTest, TwoDevicesOfNvmlAreFoundNamedAndRead) {
  add_pci("0000:1b:00.0", {{"vendor", "0x10de"}, {"device", "0x2330"}, {"numa_node", "1"}});
  for (const char* name : {"renderD128", "card1", "version"}) {
    std::filesystem::create_directories(directory_ + "/sys/bus/pci/devices/0000:1b:00.0/drm/" +
                                        name);
  }
  {
    Discovery found = find(machine_with_nvml(ORRERY_FAKE_NVML));
    ASSERT_EQ(found.accelerators.size(), 2u) << ::testing::PrintToString(found.notes);
    EXPECT_TRUE(found.notes.empty());
    EXPECT_EQ(found.accelerators[1].type, "nvidia-h100-sxm5-80g");
    EXPECT_EQ(found.accelerators[1].serial, "GPU-1");
    EXPECT_EQ(found.accelerators[1].bus, "") << "it does not say";
    EXPECT_EQ(found.accelerators[0].bus, "0000:1b:00.0");
    EXPECT_EQ(found.accelerators[0].numa, 1);
    EXPECT_EQ(found.accelerators[0].memory_bytes, 85520809984u);
    EXPECT_EQ(found.accelerators[0].files,
              (std::vector<std::string>{directory_ + "/dev/nvidia4", directory_ + "/dev/dri/card1",
                                        directory_ + "/dev/dri/renderD128"}));
    EXPECT_EQ(found.accelerators[1].files, std::vector<std::string>{directory_ + "/dev/nvidia5"});
    const NodeInventory inventory = offer_of(found);
    EXPECT_EQ(inventory.accelerator, "nvidia-h100-sxm5-80g");
    EXPECT_EQ(inventory.accelerators, 2u);
    EXPECT_EQ(inventory.driver, "NVML, driver 550.54");
    nvml_->utilization = 3;  // not supported
    const AcceleratorReading reading = found.drivers.at(0)->read(1);
    EXPECT_DOUBLE_EQ(reading.power_w.value(), 301.5);
    EXPECT_EQ(reading.temperature_c, 61);
    EXPECT_EQ(reading.memory_used_bytes, 1'000'000'000u);
    EXPECT_EQ(reading.memory_errors, 3u);
    EXPECT_FALSE(reading.busy) << "what the device does not support";
    EXPECT_FALSE(reading.link_errors) << "what the library does not have";
    EXPECT_EQ(nvml_->open, 1);
  }
  EXPECT_EQ(nvml_->open, 0) << "shut down with the driver";
}

TEST_F(DiscoveryTest, AClockIsHeldByPowerAndLockAndARefusalSaysWhichCallAndWhy) {
  Discovery found = find(machine_with_nvml(ORRERY_FAKE_NVML));
  AcceleratorDriver& driver = *found.drivers.at(0);
  ASSERT_TRUE(driver.set_clock(1, 0.7));
  // 0.3 + 0.7 x 0.7^2.4 of 700 W, and 0.7 of 1980 MHz; the other device is as it was.
  EXPECT_NEAR(nvml_->limit_mw[1], 418'176, 1);
  EXPECT_EQ(nvml_->lock_mhz[1], 1386u);
  EXPECT_EQ(nvml_->limit_mw[0], 700'000u);
  ASSERT_TRUE(driver.set_clock(1, 1));
  EXPECT_EQ(nvml_->limit_mw[1], 700'000u);
  EXPECT_EQ(nvml_->lock_mhz[1], 0u);
  nvml_->lock = FakeNvml::kNotSupported;
  EXPECT_TRUE(driver.set_clock(0, 0.5)) << "the limit on power has to do";
  nvml_->limit = FakeNvml::kNoPermission;
  const Status refused = driver.set_clock(0, 0.8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, ORRERY_FAKE_NVML
            ": nvmlDeviceSetPowerManagementLimit failed: Insufficient Permissions");
}

TEST_F(DiscoveryTest, ALibraryThatDoesNotWorkIsANoteThatSaysWhy) {
  EXPECT_TRUE(find(empty_machine()).notes.empty()) << "one that is not installed is no news";
  nvml_->init = FakeNvml::kDriverNotLoaded;
  EXPECT_EQ(find(machine_with_nvml(ORRERY_FAKE_NVML)).notes,
            std::vector<std::string>{ORRERY_FAKE_NVML ": nvmlInit failed: Driver Not Loaded"});
  nvml_->init = 0;
  nvml_->count = 999;
  EXPECT_EQ(
      find(machine_with_nvml(ORRERY_FAKE_NVML)).notes,
      std::vector<std::string>{ORRERY_FAKE_NVML ": nvmlDeviceGetCount failed: Unknown Error"});
  EXPECT_EQ(nvml_->open, 0);
  EXPECT_EQ(find(machine_with_nvml(ORRERY_FOREIGN_NVML)).notes,
            std::vector<std::string>{ORRERY_FOREIGN_NVML " has no function nvmlInit_v2: it is too "
                                                         "old, or another library"});
  const std::string broken = directory_ + "/broken.so";
  std::ofstream(broken) << "no library";
  const std::vector<std::string> notes = find(machine_with_nvml(broken)).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("cannot load " + broken)) << notes[0];
}

TEST_F(DiscoveryTest, ADeviceThatTheCatalogDoesNotKnowIsNotedAndNotOffered) {
  nvml_->names[1] = "NVIDIA X900";
  Discovery mixed = find(machine_with_nvml(ORRERY_FAKE_NVML));
  ASSERT_EQ(mixed.notes.size(), 1u);
  EXPECT_NE(mixed.notes[0].find("NVIDIA X900"), std::string::npos) << mixed.notes[0];
  EXPECT_EQ(offer_of(mixed).accelerators, 1u);
  nvml_->names[1] = "NVIDIA L40S";
  Discovery two = find(machine_with_nvml(ORRERY_FAKE_NVML));
  EXPECT_EQ(offer_of(two).accelerator, "nvidia-h100-sxm5-80g") << "of as many the first";
  ASSERT_EQ(two.notes.size(), 1u);
  EXPECT_TRUE(two.notes[0].starts_with("1 x nvidia-l40s besides 1 x")) << two.notes[0];
}

TEST_F(DiscoveryTest, ADeviceOfRocmSmiIsFoundAndReadByWhatItsReleaseHas) {
  DiscoverySources sources = empty_machine();
  sources.rocm_smi = {"libof-nobody.so.1", ORRERY_FAKE_ROCM_SMI};
  Discovery found = find(sources);
  ASSERT_EQ(found.accelerators.size(), 1u) << ::testing::PrintToString(found.notes);
  EXPECT_EQ(found.accelerators[0].type, "amd-mi300x");
  EXPECT_EQ(found.accelerators[0].bus, "0001:0c:02.0");
  EXPECT_EQ(found.accelerators[0].serial, "0000000000000abc");
  EXPECT_EQ(offer_of(found).driver, "ROCm SMI, driver 6.2.4");
  const AcceleratorReading reading = found.drivers.at(0)->read(0);
  EXPECT_DOUBLE_EQ(reading.power_w.value(), 141);
  EXPECT_DOUBLE_EQ(reading.temperature_c.value(), 43.5);
  EXPECT_DOUBLE_EQ(reading.busy.value(), 0.2);
  EXPECT_EQ(reading.memory_used_bytes, 4096u);
  EXPECT_FALSE(reading.memory_errors);
  EXPECT_TRUE(found.drivers[0]->set_clock(0, 0.5));
  const Status refused = found.drivers[0]->set_clock(0, 0.501);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.ends_with("rsmi_dev_power_cap_set failed: Not Supported"));
  const Status too_low = found.drivers[0]->set_clock(0, 0.3);
  ASSERT_FALSE(too_low);
  EXPECT_NE(too_low.error().message.find("no limit below 300 W"), std::string::npos);
}

TEST_F(DiscoveryTest, DeviceFilesWithoutALibraryAreSaidToBeThere) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia11", "nvidiactl", "nvidia-uvm"}) {
    add_device_file(name);
  }
  add_device_file("dri/renderD128");  // of a screen: there is no kfd
  const std::vector<std::string> notes = find(empty_machine()).notes;
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("3 device files of NVIDIA and no libnvidia-ml.so.1"))
      << notes[0];
  EXPECT_TRUE(find(machine_with_nvml(ORRERY_FAKE_NVML)).notes.empty());
  add_device_file("kfd");
  EXPECT_TRUE(find(empty_machine()).notes.at(1).starts_with("1 device files of AMD"));
}

TEST_F(DiscoveryTest, NeuronAndTpuChipsAreFoundByTheirIdentitiesAndDeviceFiles) {
  add_pci("0000:00:01.0", {{"vendor", "0x8086"}, {"device", "0x7364"}});
  for (const std::string bus : {"0000:a0:1e.0", "0000:b0:1e.0"}) {
    add_pci(bus, {{"vendor", "0x1d0f"}, {"device", "0x7364"}, {"numa_node", "-1"}});
  }
  add_device_file("neuron0");
  add_device_file("neuron_core");
  Discovery partly = find(empty_machine());
  EXPECT_EQ(offer_of(partly).accelerators, 1u);
  ASSERT_EQ(partly.notes.size(), 1u);
  EXPECT_TRUE(partly.notes[0].starts_with("2 x AWS Trainium2 on PCI and 1 device files"))
      << partly.notes[0];
  add_device_file("neuron1");
  std::filesystem::create_directories(directory_ + "/sys/module/neuron");
  std::ofstream(directory_ + "/sys/module/neuron/version") << "2.19.64\n";
  Discovery all = find(empty_machine());
  EXPECT_TRUE(all.notes.empty());
  EXPECT_EQ(offer_of(all).accelerator, "aws-trainium2");
  EXPECT_EQ(offer_of(all).driver, "neuron 2.19.64");
  EXPECT_EQ(all.accelerators.at(1).number, 1u);
  EXPECT_FALSE(all.accelerators[1].numa);

  add_pci("0000:c0:00.0",
          {{"vendor", "0x1ae0"}, {"device", "0x0027"}, {"subsystem_device", "0x004f"}});
  add_device_file("vfio/7");
  add_device_file("vfio/vfio");
  Discovery tpu = find(empty_machine());
  ASSERT_EQ(tpu.accelerators.size(), 3u);
  EXPECT_EQ(tpu.accelerators[2].type, "google-tpu-v3");
}

TEST_F(DiscoveryTest, EveryTypeThatIsFoundIsInTheCatalog) {
  for (const char* id : {"aws-inferentia1", "aws-inferentia2", "aws-trainium1", "aws-trainium2",
                         "aws-trainium3", "google-tpu-v2", "google-tpu-v3", "google-tpu-v4",
                         "google-tpu-v5p", "google-tpu-v5e", "google-tpu-v6e", "google-tpu7x"}) {
    EXPECT_NE(catalog().find<Accelerator>(id), nullptr) << id;
  }
}

TEST_F(DiscoveryTest, WithoutAcceleratorsProcessorsThatTheCatalogKnowsAreOffered) {
  Discovery none;
  NodeInventory inventory;
  inventory.processor = "AMD EPYC 9654 96-Core Processor";
  inventory.packages = 2;
  offer(none, catalog(), inventory);
  EXPECT_EQ(inventory.accelerator, "amd-epyc-9654");
  EXPECT_EQ(inventory.accelerators, 2u);
  NodeInventory other;
  other.processor = "AMD EPYC 7763 64-Core Processor";
  offer(none, catalog(), other);
  EXPECT_EQ(other.accelerator, "") << "a family's name is no model";
}

TEST(HostTopologyTest, PartsOfThisMachineAddUp) {
  const Result<HostTopology> host = host_topology();
  ASSERT_TRUE(host) << host.error().text();
  EXPECT_GE(host->packages, 1u);
  EXPECT_GE(host->threads, host->cores);
  ASSERT_FALSE(host->numa.empty());
  std::uint64_t bytes = 0;
  for (const NumaNode& node : host->numa) bytes += node.memory_bytes;
  EXPECT_EQ(bytes, host->memory_bytes);
}

}  // namespace
}  // namespace orrery
