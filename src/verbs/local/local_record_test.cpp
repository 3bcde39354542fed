#include "verbs/local/local_record.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

TEST(LocalRecordTest, WhatWasWrittenIsReadAgain) {
  const ScratchFiles files;
  RealStorage storage;
  LocalRecord record = read_local_record(storage, files.path("")).value();
  EXPECT_TRUE(record.processes.empty());
  record.servers = {.store = "etcd://127.0.0.1:1/local",
                    .listen = {"127.0.0.1:2"},
                    .http = {"127.0.0.1:3"},
                    .etcd = {"127.0.0.1:1"},
                    .etcd_peers = {"127.0.0.1:4"}};
  record.gateway = "127.0.0.1:5";
  record.process(LocalRole::kStore, "etcd-1").process = {17, 4};
  ASSERT_TRUE(write_local_record(storage, files.path(""), record));
  LocalRecord again = read_local_record(storage, files.path("")).value();
  EXPECT_EQ(again.servers.store, record.servers.store);
  EXPECT_EQ(again.servers.listen, record.servers.listen);
  EXPECT_EQ(again.servers.http, record.servers.http);
  EXPECT_EQ(again.servers.etcd, record.servers.etcd);
  EXPECT_EQ(again.servers.etcd_peers, record.servers.etcd_peers);
  EXPECT_EQ(again.gateway, record.gateway);
  ASSERT_EQ(again.processes.size(), 1u);
  EXPECT_EQ(again.process(LocalRole::kStore, "etcd-1").process.pid, 17);
  EXPECT_EQ(again.processes.size(), 1u) << "it has the role that it was written with";
}

TEST(LocalRecordTest, AControllerOfAnEarlierReleaseHasItsRole) {
  const ScratchFiles files;
  RealStorage storage;
  LocalRecord record = read_local_record(storage, files.path("")).value();
  record.process(LocalRole::kAgent, "orreryd").process = {17, 4};
  ASSERT_TRUE(write_local_record(storage, files.path(""), record));
  EXPECT_EQ(read_local_record(storage, files.path("")).value().processes.front().role,
            LocalRole::kController);
}

}  // namespace
}  // namespace orrery
