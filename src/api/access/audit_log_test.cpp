// api/access/audit_log_test.cpp - that no caller can make the log forget what others did.
#include "api/access/audit_log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_audit_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    real_ = RealEnv::create().value();
    audit_ = AuditLog::open(real_->env(), Log(sink_), directory_).value();
  }
  void TearDown() override {
    audit_.reset();
    std::filesystem::remove_all(directory_);
  }

  void cancel(const Caller& caller, std::uint64_t job, CallCode code) {
    v1::CancelJobRequest request;
    request.set_id(job);
    audit_->write({"CancelJob", caller, request, {code, "no job"}, {job}, ""});
  }
  [[nodiscard]] std::vector<nlohmann::json> lines_of(const std::string& caller) const {
    std::vector<nlohmann::json> found;
    std::ifstream file(directory_ + "/audit.log");
    for (std::string line; std::getline(file, line);) {
      nlohmann::json entry = nlohmann::json::parse(line);
      if (entry["caller"] == caller) found.push_back(std::move(entry));
    }
    return found;
  }

  std::string directory_;
  SilentLog sink_;
  std::unique_ptr<RealEnv> real_;
  std::unique_ptr<AuditLog> audit_;
};

TEST_F(AuditLogTest, OneCallerHasAThousandLinesAnHourAndTheRestIsCounted) {
  const Caller eve{.name = "eve", .role = Role::kUser, .tenant = "", .node = ""};
  const Caller ada{.name = "ada", .role = Role::kUser, .tenant = "", .node = ""};
  const Caller root{.name = "root", .role = Role::kAdmin, .tenant = "", .node = ""};
  cancel(ada, 7, CallCode::kOk);
  for (std::uint64_t job = 0; job < 5'000; ++job) {
    cancel(eve, job, job % 2 == 0 ? CallCode::kNotFound : CallCode::kOk);
    if (job < std::uint64_t{2} * AuditLog::kLinesMax) cancel(root, job, CallCode::kOk);
  }
  cancel(ada, 8, CallCode::kOk);
  EXPECT_EQ(lines_of("eve").size(), AuditLog::kLinesMax);
  EXPECT_EQ(lines_of("ada").size(), 2U);
  EXPECT_EQ(lines_of("root").size(), 2 * AuditLog::kLinesMax);
  audit_.reset();
  const std::vector<nlohmann::json> told = lines_of("eve");
  ASSERT_EQ(told.size(), AuditLog::kLinesMax + 2) << "one for each code";
  EXPECT_EQ(told.back()["method"], "CancelJob");
  EXPECT_EQ(told.back()["code"], 5);
  EXPECT_EQ(told.back()["calls"], 2000);
  EXPECT_TRUE(told.back()["jobs"].get<std::string>().starts_with("1000, 1002")) << told.back();
}

}  // namespace
}  // namespace orrery
