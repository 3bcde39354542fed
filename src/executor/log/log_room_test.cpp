#include "executor/log/log_room.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"
#include "store/memory/memory_shared_store_test.hpp"

namespace orrery {
namespace {

TEST(LogRoom, EachChangeOfTheSizeIsLoggedOnceAndOnlyTheLargestRefusesWork) {
  const auto real = RealEnv::create().value();
  CollectedLog sink;
  MemoryService service;
  MemorySharedStore store(service);
  LogRoom room(real->env(), Log(sink), store,
               {.warn = std::uint64_t{4} << 20, .refuse = std::uint64_t{8} << 20});
  const auto look_at = [&](std::uint64_t mebibytes) {
    sink.lines.clear();
    store.held = mebibytes << 20;
    room.look();
    room.look();
    EXPECT_LE(sink.lines.size(), 1u) << sink.text();
    return sink.text();
  };
  EXPECT_EQ(look_at(4), "");
  EXPECT_EQ(room.warning(), "");
  EXPECT_NE(look_at(5).find("the shared log is large"), std::string::npos);
  EXPECT_TRUE(room.admission());
  EXPECT_TRUE(room.warning().starts_with(
      "the shared log has 5 MiB, expected at most 4 MiB; above 8 MiB no jobs are accepted. "))
      << room.warning();
  EXPECT_NE(look_at(9).find("submissions are refused"), std::string::npos);
  EXPECT_EQ(room.admission().error().text(), room.warning());
  EXPECT_NE(look_at(7).find("submissions are taken again"), std::string::npos);
  EXPECT_TRUE(room.admission());
  EXPECT_NE(look_at(1).find("small enough again"), std::string::npos);
}

}  // namespace
}  // namespace orrery
