#include "node/devices/device_files.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr DeviceNumber kNull{.major = 1, .minor = 3};
constexpr DeviceNumber kZero{.major = 1, .minor = 5};
constexpr DeviceNumber kFull{.major = 1, .minor = 7};

FoundAccelerator found(const std::string& type, std::vector<std::string> files) {
  FoundAccelerator each;
  each.type = type;
  each.files = std::move(files);
  return each;
}

AgentSpec spec_of(const std::string& keys) {
  const Document text =
      Document::parse("apiVersion: orrery/v1\nkind: Agent\n" + keys, "agent.yaml").value();
  return read_agent_spec(text).value();
}

TEST(NodeDeviceFilesTest, AreThoseThatDriversNameAndThoseOfDevicesThatAreNotOffered) {
  Discovery discovery;
  discovery.accelerators.push_back(found("h100", {"/dev/null"}));
  discovery.accelerators.push_back(found("l4", {"/dev/full"}));
  discovery.accelerators.push_back(found("h100", {"/dev/zero", "/dev/no-such"}));
  NodeInventory inventory;
  inventory.accelerator = "h100";
  inventory.accelerators = 2;
  const Result<NodeDeviceFiles> files = node_device_files({}, inventory, discovery);
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_EQ(files->own, (std::vector<std::vector<DeviceNumber>>{{kNull}, {kZero}}));
  EXPECT_EQ(files->others, std::vector<DeviceNumber>{kFull});
  ASSERT_EQ(discovery.notes.size(), 1u);
  EXPECT_NE(discovery.notes[0].find("/dev/no-such: No such file"), std::string::npos);
}

TEST(NodeDeviceFilesTest, OfTheOperatorTakeThePlaceOfThoseFound) {
  Discovery discovery;
  discovery.accelerators.push_back(found("h100", {"/dev/null"}));
  NodeInventory inventory;
  inventory.accelerator = "h100";
  inventory.accelerators = 1;
  const auto files =
      node_device_files(spec_of("devices: [{files: [/dev/full]}]\n"), inventory, discovery);
  ASSERT_TRUE(files) << files.error().text();
  EXPECT_EQ(files->own, std::vector<std::vector<DeviceNumber>>{{kFull}});
}

TEST(NodeDeviceFilesTest, OfTheOperatorMustBeThereAndAsManyAsTheNodeOffers) {
  Discovery discovery;
  NodeInventory inventory;
  inventory.accelerators = 2;
  const auto few =
      node_device_files(spec_of("devices: [{files: [/dev/full]}]\n"), inventory, discovery);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().text(),
            "agent.yaml:3:11: devices: 1 are listed, expected one entry for each of the 2 "
            "accelerators that the node offers");
  const auto plain = node_device_files(
      spec_of("devices: [{files: []}, {files: [/proc/self/status]}]\n"), inventory, discovery);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().text(), "agent.yaml:3:24: devices: /proc/self/status: not a device file");
}

TEST(DeniedDevicesTest, AreAllButThoseOfTheSharesAndWhatTheyHaveInCommonIsDeniedToNeither) {
  const NodeDeviceFiles files{.own = {{kNull, kFull}, {kZero, kFull}, {kZero}},
                              .others = {{.major = 9, .minor = 1}}};
  const auto denied = [&](std::vector<std::uint64_t> masks) {
    std::vector<RankShare> shares;
    for (const std::uint64_t mask : masks) shares.push_back({.gang = 0, .devices = mask});
    return denied_devices(files, shares);
  };
  const DeviceNumber other{.major = 9, .minor = 1};
  EXPECT_EQ(denied({1}), (std::vector<DeviceNumber>{kZero, kZero, other}));
  EXPECT_EQ(denied({2}), (std::vector<DeviceNumber>{kNull, other}));
  EXPECT_EQ(denied({1, 4}), std::vector<DeviceNumber>{other});
  // A device whose files are not known hides nothing, and its job is kept from all others.
  EXPECT_EQ(denied({8}).size(), 6u);
}

}  // namespace
}  // namespace orrery
