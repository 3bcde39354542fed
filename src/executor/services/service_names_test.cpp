// executor/services/service_names_test.cpp - services that are submitted beside others.
#include "executor/services/service_names.hpp"

#include "executor/controller_test.hpp"

namespace orrery {
namespace {

class ServiceNamesTest : public ControllerTest {
 protected:
  static std::string service(const std::string& name, const std::string& model,
                             const std::string& tenant = "default") {
    return "apiVersion: orrery/v1\nkind: Serve\nname: " + name + "\ntenant: " + tenant +
           "\nroles: [{accelerators: 4}]\nrevisions: [{model: " + model +
           ", artifact: /models/1}]\n";
  }
  std::string refusal(const std::string& text, const std::string& request = "") {
    const Result<std::vector<JobId>> jobs = submit(text, request);
    return jobs ? "" : jobs.error().text();
  }
  void cancel(JobId job) {
    bool done = false;
    controller_->command(CancelJob{job}, "", [&](const Result<JobId>&) { done = true; });
    await([&] { return done; });
  }
};

TEST_F(ServiceNamesTest, ANameOrAModelIsOfOneServiceOfATenant) {
  set_tenants(
      "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants: [{name: default}, {name: lab}]\n");
  ASSERT_EQ(refusal(service("chat", "gpt"), "once"), "");
  EXPECT_EQ(refusal(service("chat", "gpt"), "once"), "") << "the same submission again";
  const std::string name = refusal(service("chat", "other"));
  EXPECT_NE(name.find("job.yaml:"), std::string::npos) << name;
  EXPECT_NE(name.find("service chat (job 0) runs already"), std::string::npos) << name;
  EXPECT_NE(name.find("`--update chat`"), std::string::npos) << name;
  const std::string model = refusal(service("talk", "gpt"));
  EXPECT_NE(model.find("service chat (job 0) serves model \"gpt\" already"), std::string::npos)
      << model;
  EXPECT_EQ(refusal(service("talk", "other")), "");
  EXPECT_EQ(refusal(service("chat", "gpt", "lab")), "") << "another tenant's";
}

TEST_F(ServiceNamesTest, JobsWithoutRevisionsMayHaveAnyName) {
  const std::string plain =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 4}]\n"
      "launch: {command: [sh]}\n";
  EXPECT_EQ(refusal(plain), "");
  EXPECT_EQ(refusal(plain), "");
  EXPECT_EQ(refusal(job("chat")), "") << "a batch job";
  EXPECT_NE(refusal(service("chat", "gpt")).find("service chat (job 0) runs"), std::string::npos);
  EXPECT_NE(refusal(service("talk", "chat")).find("serves model \"chat\""), std::string::npos)
      << "without revisions the name is the model's";
}

TEST_F(ServiceNamesTest, AServiceThatWasCancelledGivesItsNameBack) {
  const JobId first = submit(service("chat", "gpt")).value().front();
  ASSERT_NE(refusal(service("chat", "gpt")), "");
  cancel(first);
  EXPECT_EQ(refusal(service("chat", "gpt")), "");
}

}  // namespace
}  // namespace orrery
