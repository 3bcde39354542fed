// Jobs handled by operators, on real processes: held, released, requeued, changed, and their
// records after they have ended.
#include "tests/end_to_end/local_cluster.hpp"

namespace orrery {
namespace {

class JobChangesCli : public LocalClusterTest {};

TEST_F(JobChangesCli, AFailedJobRunsOnceAndItsHistoryIsKept) {
  const std::string once = submitted("--env KEY=value -- sh -c 'exit 3'");
  EXPECT_EQ(live("wait " + once).code, 1);
  const Json ended = Json::parse(live("-o json job " + once).out);
  EXPECT_EQ(ended["attempt"], 1) << "a program's own fault is not tried again unless asked";
  EXPECT_NE(std::string(ended["spec"]).find("exit 3"), std::string::npos);
  EXPECT_NE(std::string(ended["spec"]).find("KEY"), std::string::npos);
  ASSERT_EQ(ended["attempts"].size(), 1u);
  EXPECT_EQ(ended["attempts"][0]["exit_status"], 3);
  EXPECT_EQ(ended["attempts"][0]["reason"], "program");
  EXPECT_EQ(ended["attempts"][0]["nodes"].size(), 1u);
  const std::string text = live("job " + once).out;
  for (const char* part : {"command", "sh -c exit 3", "ATTEMPT", "3, rank 0"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string after = submitted("--after notok:" + once + " -- true");
  EXPECT_EQ(live("wait " + after).code, 0);
  EXPECT_EQ(live("submit --after " + once + " -- true").code, 2) << "it can never start";
}

TEST_F(JobChangesCli, JobsAreHeldReleasedRequeuedAndChanged) {
  const auto phase = [&](const std::string& id) -> std::string {
    return Json::parse(live("-o json job " + id).out)["phase"];
  };
  const auto await_phase = [&](const std::string& id, const std::string& wanted) {
    for (int i = 0; i < 300 && phase(id) != wanted; ++i) ::usleep(100'000);
    EXPECT_EQ(phase(id), wanted);
  };
  const std::string held = submitted("--hold --name held -- true");
  EXPECT_NE(live("job " + held).out.find("is held by its owner"), std::string::npos);
  const std::string next = submitted("--after any:held -- true");
  const std::string runs = submitted("--name runs -- sleep 600");
  await_phase(runs, "running");
  EXPECT_EQ(live("requeue runs --hold").out, "job " + runs + " (runs) requeued\n");
  await_phase(runs, "held");
  EXPECT_EQ(phase(held), "held");
  const CliRun waits = live("release " + next);
  EXPECT_EQ(waits.code, 1);
  EXPECT_NE(waits.err.find("job " + next + " is not held: waits for job " + held),
            std::string::npos)
      << waits.err;
  EXPECT_EQ(live("release --dry-run " + next).code, 1) << "nor would it be";
  EXPECT_EQ(live("release --state held --name 'h*'").out, "job " + held + " (held) released\n");
  EXPECT_EQ(live("wait " + held + " " + next).code, 0);
  const CliRun changed = live("change runs --priority 9 --time-limit '1 s'");
  EXPECT_EQ(changed.code, 0) << changed.err;
  EXPECT_EQ(Json::parse(live("-o json job " + runs).out)["priority"], 9);
  EXPECT_EQ(live("release runs").code, 0);
  EXPECT_EQ(live("wait " + runs).code, 1) << "its time limit ends it";
  const Json ended = Json::parse(live("-o json job " + runs).out);
  ASSERT_EQ(ended["attempts"].size(), 2u) << ended;
  EXPECT_EQ(ended["attempts"][0]["reason"], "requeued");
  EXPECT_EQ(ended["attempts"][1]["reason"], "time-limit");
  const CliRun late = live("hold " + runs);
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("has already ended (failed)"), std::string::npos) << late.err;
  EXPECT_EQ(live("change " + runs).code, 2) << "nothing to change";
}

TEST_F(JobChangesCli, EachJobThatIsNamedIsReportedOnce) {
  const std::string first = submitted("--hold --name first -- true");
  EXPECT_EQ(live("hold " + first + " first").out, "job " + first + " held\n") << "it is one job";
  const CliRun shown = live("cancel --dry-run 999 " + first);
  EXPECT_EQ(shown.code, 1);
  EXPECT_NE(shown.out.find("first"), std::string::npos) << "a number is looked up\n" << shown.out;
  EXPECT_NE(shown.out.find("1 job would be cancelled"), std::string::npos) << shown.out;
  EXPECT_NE(shown.err.find("999"), std::string::npos) << shown.err;
  const CliRun some = live("-o json cancel nonesuch " + first);
  EXPECT_EQ(some.code, 1);
  const Json said = Json::parse(some.out);
  EXPECT_EQ(said["cancelled"], Json::array({first})) << "the other one's name does not spare it";
  EXPECT_EQ(said["failed"][0]["name"], "nonesuch");
  const CliRun late = live("cancel --dry-run " + first);
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("has already ended (cancelled)"), std::string::npos) << late.err;
}

}  // namespace
}  // namespace orrery
