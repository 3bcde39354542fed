#include "verbs/local/local_gateway.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

TEST(LocalGatewayTest, AProgramThatIsMissingOrEndsIsNamedAndTheAddressStays) {
  const ScratchFiles files;
  RealStorage storage;
  LocalRecord record;
  EXPECT_EQ(gateway_url(record), "");
  GatewayStart start{
      .program = "/none/orrery-gateway", .directory = files.path(""), .controllers = "127.0.0.1:1"};
  const auto missing = start_local_gateway(storage, record, start);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("/none/orrery-gateway"), std::string::npos)
      << missing.error().text();
  const std::string address = record.gateway;
  EXPECT_TRUE(address.starts_with("127.0.0.1:")) << address;
  EXPECT_EQ(gateway_url(record), "http://" + address);
  start.program = "/bin/false";
  const auto ended = start_local_gateway(storage, record, start);
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().text().find("exited during startup"), std::string::npos)
      << ended.error().text();
  EXPECT_EQ(read_local_record(storage, files.path("")).value().gateway, address);
}

TEST(LocalGatewayTest, OneThatRunsAndKnowsTheControllersIsLeftAlone) {
  const ScratchFiles files;
  RealStorage storage;
  LocalRecord record;
  record.gateway = "127.0.0.1:1";
  LocalProcess& gateway = record.process(LocalRole::kGateway, kLocalGateway);
  gateway.process = identity_of(::getpid());
  gateway.controller = "127.0.0.1:1";
  const auto again = start_local_gateway(
      storage, record,
      {.program = "/bin/false", .directory = files.path(""), .controllers = "127.0.0.1:1"});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, GatewayStarted::kBefore);
}

}  // namespace
}  // namespace orrery
