// runtime/elastic/group_of_threads_test.hpp - a group whose members are threads of the test, over
// real sockets and real shared memory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/system/port_block_test.hpp"
#include "base/system/real_clock.hpp"
#include "runtime/elastic/member_group.hpp"

namespace orrery {

/// Settings of a rank; all ranks of one test meet at ports that no other test uses.
class TestGang {
 public:
  enum class Memory { kOwn, kShared };
  TestGang(std::uint32_t world, Memory memory) {
    settings_.gang = "job/1/0";
    settings_.world = world;
    settings_.share_memory = memory == Memory::kShared;
    settings_.addresses = {"127.0.0.1"};
    settings_.workspace_bytes = 1 << 20;
    settings_.patience = Duration::seconds(20);
    settings_.ports = PortBlock::kPorts;
    settings_.port = static_cast<std::uint16_t>(ports_.first());
  }

  [[nodiscard]] GroupSettings of(std::uint32_t rank) const {
    GroupSettings settings = settings_;
    settings.rank = rank;
    settings.cookie = settings_.port * 1000 + rank;
    if (!machines_.empty()) settings.memory_domain = fmt::format("machine {}", machines_[rank]);
    return settings;
  }

  /// Sets the machine of each rank: ranks of different machines share no memory.
  void pretend_machines(std::vector<std::uint32_t> machines) { machines_ = std::move(machines); }

  /// Runs `body` in a thread for each rank, until all have ended.
  void run(const std::function<void(std::uint32_t)>& body) const {
    std::vector<std::thread> threads;
    threads.reserve(settings_.world);
    for (std::uint32_t rank = 0; rank < settings_.world; ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }

  [[nodiscard]] std::unique_ptr<MemberGroup> found(std::uint32_t rank,
                                                   std::uint64_t step = 0) const {
    auto group = MemberGroup::found(clock_, of(rank), step);
    if (!group) ADD_FAILURE() << group.error().text();
    return group ? std::move(*group) : nullptr;
  }

  [[nodiscard]] std::unique_ptr<MemberGroup> join(std::uint32_t rank) const {
    auto group = MemberGroup::join(clock_, of(rank));
    if (!group) ADD_FAILURE() << group.error().text();
    return group ? std::move(*group) : nullptr;
  }

 private:
  PortBlock ports_;
  GroupSettings settings_;
  std::vector<std::uint32_t> machines_;
  RealClock clock_;
};

}  // namespace orrery
