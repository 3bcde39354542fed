// twin/protocol_sites_test.hpp - the fleets of protocol runs, for tests of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "perf/repository_facts_test.hpp"
#include "twin/protocol/protocol_run.hpp"

namespace orrery {

class ProtocolSitesTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<ProtocolSites> sites = ProtocolSites::make(builtin_facts());
    ASSERT_TRUE(sites) << sites.error().text();
    sites_ = std::make_unique<ProtocolSites>(*std::move(sites));
  }

  std::unique_ptr<ProtocolSites> sites_;
};

}  // namespace orrery
