#include "runtime/collectives/device_collectives.hpp"

#include <gtest/gtest.h>

#include <latch>

#include "runtime/elastic/group_of_threads_test.hpp"

namespace orrery {
namespace {

constexpr int kRemoteError = 6;

DeviceLibraryNames stand_in() {
  return {.collectives = {ORRERY_FAKE_NCCL}, .runtime = {ORRERY_FAKE_NCCL}, .prefix = "cuda"};
}

/// The controls that the stand-in library offers to tests.
struct StandIn {
  StandIn() {
    const std::vector<std::string> names{ORRERY_FAKE_NCCL};
    library = std::move(*DynamicLibrary::open(names));
    library->find("fake_nccl_fail", fail);
    library->find("fake_nccl_aborted", aborted);
    library->find("fake_nccl_open", open);
    (void)aborted();
  }
  std::unique_ptr<DynamicLibrary> library;
  void (*fail)(int) = nullptr;
  int (*aborted)() = nullptr;
  int (*open)() = nullptr;
};

class DeviceThreads : public testing::Test {
 protected:
  static constexpr std::uint32_t kWorld = 3;
  TestGang gang_{kWorld, TestGang::Memory::kShared};
  StandIn stand_in_;

  std::unique_ptr<DeviceCollectives> opened(MemberGroup& group) {
    auto device =
        DeviceCollectives::open(stand_in(), group.communicator(), static_cast<int>(group.rank()));
    if (!device) ADD_FAILURE() << device.error().text();
    return device ? std::move(*device) : nullptr;
  }
};

TEST_F(DeviceThreads, OperationsMoveAndSumWhatTheySay) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    auto devices = opened(*group);
    ASSERT_NE(devices, nullptr);
    std::vector<float> sum(100, static_cast<float>(rank));
    std::vector<std::int32_t> whole(5, 7);
    std::vector<std::uint16_t> halves(4, 0x3f80);
    ASSERT_TRUE(devices->all_reduce({sum.data(), sum.size(), SumType::kFloat32}));
    ASSERT_TRUE(devices->all_reduce({whole.data(), whole.size(), SumType::kInt32}));
    ASSERT_TRUE(devices->all_reduce({halves.data(), halves.size(), SumType::kBfloat16}));
    ASSERT_TRUE(devices->wait());
    EXPECT_EQ(sum, std::vector<float>(100, 3));
    EXPECT_EQ(whole, std::vector<std::int32_t>(5, 21));
    EXPECT_EQ(halves, std::vector<std::uint16_t>(4, 0x4040));
    std::vector<float> own(2, static_cast<float>(rank));
    std::vector<float> all(std::size_t{2} * kWorld);
    ASSERT_TRUE(devices->all_gather({own.data(), own.size()}, all.data()));
    ASSERT_TRUE(devices->wait());
    EXPECT_EQ(all, (std::vector<float>{0, 0, 1, 1, 2, 2}));
    ASSERT_TRUE(devices->reduce_scatter(all.data(), {own.data(), own.size()}));
    ASSERT_TRUE(devices->wait());
    EXPECT_EQ(own, std::vector<float>(2, static_cast<float>(std::size_t{rank} * kWorld)));
    ASSERT_TRUE(devices->broadcast({own.data(), own.size()}, 2));
    std::vector<float> to_each(kWorld);
    for (std::uint32_t to = 0; to < kWorld; ++to) to_each[to] = static_cast<float>(rank * 10 + to);
    std::vector<float> from_each(kWorld);
    ASSERT_TRUE(devices->all_to_all({to_each.data(), to_each.size()}, from_each.data()));
    ASSERT_TRUE(devices->wait());
    EXPECT_EQ(own, std::vector<float>(2, 6));
    for (std::uint32_t from = 0; from < kWorld; ++from) {
      EXPECT_EQ(from_each[from], static_cast<float>(from * 10 + rank));
    }
    if (rank == 0) {
      ASSERT_TRUE(devices->send({own.data(), 1}, 1));
    }
    if (rank == 1) {
      ASSERT_TRUE(devices->receive({to_each.data(), 1}, 0));
    }
    ASSERT_TRUE(devices->wait());
    if (rank == 1) {
      EXPECT_EQ(to_each[0], 6);
    }
    devices.reset();
    group->farewell();
  });
  EXPECT_EQ(stand_in_.open(), 0);
  EXPECT_EQ(stand_in_.aborted(), 0);
}

TEST_F(DeviceThreads, ADeathThatTheLibraryDoesNotSeeEndsWhatIsQueued) {
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    auto devices = opened(*group);
    ASSERT_NE(devices, nullptr);
    if (rank == 2) {
      devices->abort();
      EXPECT_FALSE(devices->wait());
      devices.reset();
      return;
    }
    std::vector<float> sum(100, 1);
    const DeviceElements elements{sum.data(), sum.size()};
    ASSERT_TRUE(devices->all_reduce(elements));
    const Shared<void> waited = devices->wait();
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().rank, 2u);
    EXPECT_FALSE(devices->all_reduce(elements));
    EXPECT_EQ(devices->failure(), "");
    EXPECT_TRUE(group->regroup(0));
    devices.reset();
    group->farewell();
  });
  EXPECT_EQ(stand_in_.aborted(), 3) << "that of the dead is one of them";
  EXPECT_EQ(stand_in_.open(), 0);
}

TEST_F(DeviceThreads, AnErrorOfTheLibraryIsALostPeerAndSaysWhatItWas) {
  std::latch queued(kWorld);
  gang_.run([&](std::uint32_t rank) {
    auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    auto devices = opened(*group);
    ASSERT_NE(devices, nullptr);
    std::vector<float> got(1);
    if (rank == 0) {
      ASSERT_TRUE(devices->receive({got.data(), 1}, 1));
    }
    queued.arrive_and_wait();
    if (rank == 1) stand_in_.fail(kRemoteError);
    if (rank == 0) {
      const Shared<void> waited = devices->wait();
      ASSERT_FALSE(waited);
      EXPECT_EQ(devices->failure(), "remote process exited");
    }
    devices.reset();
    group->farewell();
  });
  stand_in_.fail(0);
  EXPECT_EQ(stand_in_.aborted(), 3);
  EXPECT_EQ(stand_in_.open(), 0);
}

TEST_F(DeviceThreads, WhoHasNoLibraryOrNoDeviceTellsTheOthers) {
  gang_.run([&](std::uint32_t rank) {
    const auto group = gang_.found(rank);
    ASSERT_NE(group, nullptr);
    DeviceLibraryNames names = stand_in();
    if (rank == 1) names.collectives = {"libno-such-collectives.so.2"};
    const auto absent = DeviceCollectives::open(names, group->communicator(), 0);
    ASSERT_FALSE(absent);
    const std::string why = absent.error().text();
    const char* expected = rank == 1 ? "there is no libno-such-collectives.so.2 on this machine"
                                     : "rank 1 cannot take part";
    EXPECT_NE(why.find(expected), why.npos) << why;
    const auto no_device =
        DeviceCollectives::open(stand_in(), group->communicator(), rank == 2 ? 8 : 0);
    EXPECT_FALSE(no_device);
    group->farewell();
  });
}

TEST(DeviceLibrary, AnotherLibraryOfTheNameIsRefused) {
  DeviceLibraryNames names = stand_in();
  names.collectives = {"libc.so.6"};
  const auto other = DeviceLibrary::open(names);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().text().find("libc.so.6 has no function ncclGetUniqueId"),
            std::string::npos);
  names = stand_in();
  names.prefix = "hip";
  EXPECT_FALSE(DeviceLibrary::open(names));
}

/// Runs one rank on the first device of this machine, with its own libraries.
TEST(DeviceLibrary, SumsOnARealDevice) {
  DeviceLibraryNames names = DeviceLibraryNames::nvidia();
  auto library = DeviceLibrary::open(names);
  if (!library) {
    names = DeviceLibraryNames::amd();
    library = DeviceLibrary::open(names);
  }
  if (!library || (*library)->set_device(0) != 0)
    GTEST_SKIP() << "SKIPPED: no device, or no library";
  const auto runtime = DynamicLibrary::open(names.runtime);
  int (*allocate)(void**, std::size_t) = nullptr;
  int (*copy)(void*, const void*, std::size_t, int) = nullptr;
  int (*release)(void*) = nullptr;
  ASSERT_TRUE((*runtime)->require((names.prefix + "Malloc").c_str(), allocate));
  ASSERT_TRUE((*runtime)->require((names.prefix + "Memcpy").c_str(), copy));
  ASSERT_TRUE((*runtime)->require((names.prefix + "Free").c_str(), release));
  constexpr int kToDevice = 1;
  constexpr int kToHost = 2;
  const TestGang alone(1, TestGang::Memory::kOwn);
  const auto group = alone.found(0);
  ASSERT_NE(group, nullptr);
  auto devices = DeviceCollectives::open(names, group->communicator(), 0);
  ASSERT_TRUE(devices) << devices.error().text();
  std::vector<float> numbers(1000, 5);
  const std::size_t bytes = numbers.size() * sizeof(float);
  void* at = nullptr;
  ASSERT_EQ(allocate(&at, bytes), 0);
  ASSERT_EQ(copy(at, numbers.data(), bytes, kToDevice), 0);
  ASSERT_TRUE((*devices)->all_reduce({at, numbers.size()}));
  ASSERT_TRUE((*devices)->wait());
  std::vector<float> sums(1000);
  ASSERT_EQ(copy(sums.data(), at, bytes, kToHost), 0);
  EXPECT_EQ(sums, numbers);
  EXPECT_EQ(release(at), 0);
}

}  // namespace
}  // namespace orrery
