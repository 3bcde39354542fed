#include "verbs/jobs/submitted_job.hpp"

#include "base/format/document.hpp"
#include "verbs/cluster/live_cluster_test.hpp"
#include "verbs/jobs/shell_job.hpp"

namespace orrery {
namespace {

class SubmittedJobTest : public LiveClusterTest {
 protected:
  [[nodiscard]] std::string refusal(const SubmitOptions& asked) {
    const auto spec = read_submitted_spec(options_, asked);
    return spec ? "accepted" : spec.error().text();
  }
  /// Returns the words that the job of a spec starts.
  [[nodiscard]] static std::vector<std::string> command_of(const SubmittedSpec& spec) {
    const Result<Document> document = Document::parse(spec.text, spec.file);
    EXPECT_TRUE(document) << (document ? "" : document.error().text());
    if (!document) return {};
    const Result<JobSpec> job = read_job_spec(*document);
    EXPECT_TRUE(job) << (job ? "" : job.error().text());
    return job && job->launch ? job->launch->command : std::vector<std::string>();
  }
  [[nodiscard]] SubmittedSpec bounded_spec() {
    options_.command = {"true"};
    return read_submitted_spec(options_, {.terms = {.by = "2026-11-28 18:00"}}).value();
  }
};

TEST_F(SubmittedJobTest, WithoutFileAndCommandThereIsNothingToSubmit) {
  EXPECT_EQ(refusal({}), "nothing to submit: expected a FILE, or a command after --");
}

TEST_F(SubmittedJobTest, ACommandBecomesAJobNamedAfterItsProgram) {
  options_.command = {"/usr/bin/my prog", "--x"};
  const auto spec = read_submitted_spec(options_, {});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->file, "command line");
  EXPECT_NE(spec->text.find("name: my-prog\n"), std::string::npos) << spec->text;
  EXPECT_EQ(checked_without_submitting(options_, *spec).value(), "");
}

TEST_F(SubmittedJobTest, ASpecIsLeftAsItIsWhereNothingOverridesIt) {
  options_.command = {"true"};
  const std::string text = read_submitted_spec(options_, {})->text + "# a comment\n";
  options_.command.reset();
  const std::string file = files_.write("job.yaml", text);
  EXPECT_EQ(read_submitted_spec(options_, {.file = {.name = file}})->text, text);
  EXPECT_EQ(refusal({.file = {.name = file, .arguments = {"small"}}}),
            "small: expected no arguments after " + file + ", which is not a script");
  options_.command = {"true"};
  EXPECT_EQ(refusal({.file = {.name = file}}),
            "both " + file + " and a command after --: expected one of them");
}

TEST_F(SubmittedJobTest, AScriptTakesTheCommandAsItsArguments) {
  const std::string file =
      files_.write("train.sbatch", "#!/bin/sh\n#SBATCH --job-name=small\n#SBATCH --gpus=1\ntrue\n");
  options_.command = {"--epochs", "3"};
  const auto spec = read_submitted_spec(options_, {.file = {.name = file, .arguments = {"a"}}});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_NE(spec->text.find("name: small\n"), std::string::npos) << spec->text;
  const std::vector<std::string> words = command_of(*spec);
  ASSERT_GE(words.size(), 3u) << spec->text;
  EXPECT_EQ(std::vector<std::string>(words.end() - 3, words.end()),
            (std::vector<std::string>{"a", "--epochs", "3"}));
}

TEST_F(SubmittedJobTest, ADeadlineIsCheckedByAClusterWhereThereIsOne) {
  const SubmittedSpec spec = bounded_spec();
  options_.cluster_directory = files_.path("no cluster");
  EXPECT_TRUE(
      checked_without_submitting(options_, spec)
          ->starts_with(
              "note: deadline and budget were not checked, no cluster was found: no cluster at "));
  write_cluster_directory();
  v1::SubmitJobResponse answer;
  answer.set_note("ends\nlate");
  answers<v1::SubmitJobRequest>("SubmitJob", answer);
  EXPECT_EQ(checked_without_submitting(options_, spec).value(), "note: ends\\nlate\n");
  EXPECT_TRUE(heard<v1::SubmitJobRequest>("SubmitJob").at(0).dry_run());
  refuses<v1::SubmitJobRequest>("SubmitJob", grpc::StatusCode::INVALID_ARGUMENT, "no such type");
  EXPECT_EQ(checked_without_submitting(options_, spec).error().text(), "no such type");
}

TEST_F(SubmittedJobTest, ADryRunNamesTheLineOfAWrongSpec) {
  const auto fault = [&](const std::string& text) {
    const auto note = checked_without_submitting(options_, {text, "chat.yaml", ""});
    return note ? "none: " + *note : note.error().text();
  };
  EXPECT_TRUE(fault("no: [yaml").starts_with("chat.yaml:2:1: not valid YAML"))
      << fault("no: [yaml");
  const std::string service =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nslo: {ttft_p99: 0 ms}\n"
      "revisions: [{id: r1, model: m, artifact: /m}]\n"
      "roles: [{name: worker, accelerators: 1}]\n";
  EXPECT_TRUE(fault(service).starts_with("chat.yaml:4:")) << fault(service);
}

TEST_F(SubmittedJobTest, AJobIsSubmittedOnceWithItsTextAndTheNameOfItsFile) {
  v1::SubmitJobResponse answer;
  answer.set_id(7);
  answer.set_name("train");
  answers<v1::SubmitJobRequest>("SubmitJob", answer);
  const SubmittedSpec spec{"kind: Batch\nname: train\n", "train.yaml", ""};
  const auto job = submit_job(session(), spec);
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(submitted_answer(*job).text, "job 7 (train) accepted\n");
  ASSERT_TRUE(submit_job(session(), spec));
  const auto requests = heard<v1::SubmitJobRequest>("SubmitJob");
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].spec(), spec.text);
  EXPECT_EQ(requests[0].file(), "train.yaml");
  EXPECT_FALSE(requests[0].dry_run());
  EXPECT_NE(requests[0].request_id(), "");
  EXPECT_NE(requests[0].request_id(), requests[1].request_id()) << "another call is another job";
}

TEST_F(SubmittedJobTest, ARefusalOfTheControllerIsTheErrorOfTheVerb) {
  const SubmittedSpec spec{"kind: Batch\n", "train.yaml", ""};
  refuses<v1::SubmitJobRequest>("SubmitJob", grpc::StatusCode::INVALID_ARGUMENT,
                                "train.yaml:1:1: the key \"name\" is missing");
  const auto wrong = submit_job(session(), spec);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kInput);
  EXPECT_EQ(wrong.error().text(), "train.yaml:1:1: the key \"name\" is missing");
  refuses<v1::SubmitJobRequest>("SubmitJob", grpc::StatusCode::FAILED_PRECONDITION,
                                "budget: 8 h100 cost $236");
  const auto dear = submit_job(session(), spec);
  ASSERT_FALSE(dear);
  EXPECT_EQ(dear.error().text(), "budget: 8 h100 cost $236");
}

TEST(SubmittedAnswerTest, AnArrayIsNamedByItsFirstAndLastJob) {
  v1::SubmitJobResponse job;
  job.set_id(7);
  job.set_name("a\x1b");
  EXPECT_EQ(submitted_answer(job).text, "job 7 (a\\x1b) accepted\n");
  EXPECT_EQ(submitted_answer(job).after, "");
  EXPECT_EQ(submitted_numbers(job), (std::vector<std::uint64_t>{7}));
  for (const std::uint64_t id : {8u, 9u, 10u}) job.add_array(id);
  job.set_note("busy");
  EXPECT_EQ(submitted_answer(job).text, "jobs 8 to 10 (a\\x1b) accepted\n");
  EXPECT_EQ(submitted_answer(job).after, "note: busy\n");
  EXPECT_EQ(submitted_numbers(job), (std::vector<std::uint64_t>{8, 9, 10}));
}

TEST(SubmittedAnswerTest, AServiceWithAModelHasANoteOnItsKey) {
  v1::SubmitJobResponse job;
  job.set_id(7);
  const std::string head =
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{accelerators: 1}]\n";
  EXPECT_EQ(key_note({head + "launch: {command: [x]}\n", "f", ""}, job), "");
  EXPECT_EQ(key_note({"{", "f", ""}, job), "");
  EXPECT_EQ(key_note({head + "revisions: [{model: m, artifact: /m}]\n", "f", ""}, job),
            "`orrery serve --key 7` makes a key for this service and shows how to call it\n");
}

TEST(ShellJobTest, TheJobHoldsANodeAndIsNotRestarted) {
  SubmitOptions options;
  options.terms.restarts = 5;
  const auto with_shell = shell_job_spec(options, ShellHold::kWithShell);
  ASSERT_TRUE(with_shell) << with_shell.error().text();
  EXPECT_NE(with_shell->find("name: shell\n"), std::string::npos) << *with_shell;
  EXPECT_NE(with_shell->find("per: node"), std::string::npos) << *with_shell;
  EXPECT_NE(with_shell->find("ORRERY_SCRATCH"), std::string::npos);
  const auto for_good = shell_job_spec(options, ShellHold::kForGood);
  EXPECT_EQ(for_good->find("ORRERY_SCRATCH"), std::string::npos);
  const auto command = shell_command({"python3", "-i"});
  EXPECT_EQ(command.size(), shell_command({}).size() + 2);
  EXPECT_EQ(command.back(), "-i");
}

using ShellJobWaitTest = LiveClusterTest;

TEST_F(ShellJobWaitTest, WhatAJobWaitsForIsToldOnceForEachReason) {
  int looked = 0;
  on<v1::GetJobRequest>("GetJob", [&looked](const v1::GetJobRequest&) {
    v1::Job job = job_named(7, "shell", ++looked == 5 ? "running" : "queued");
    job.set_waiting(looked < 3 ? "waits for 2 h100" : "waits for its turn");
    return answer_with(job);
  });
  const ShellWait wait{.pause = [] { return true; }, .said = progress().message};
  EXPECT_TRUE(await_running(session(), 7, wait).value());
  EXPECT_EQ(messages_,
            "orrery: job 7 waits for 2 h100 (^C cancels it)\n"
            "orrery: job 7 waits for its turn (^C cancels it)\n");
}

TEST_F(ShellJobWaitTest, ASignalEndsTheWaitAndAnEndIsAnError) {
  v1::Job job = job_named(7, "shell", "queued");
  answers<v1::GetJobRequest>("GetJob", job);
  const ShellWait wait{.pause = [] { return false; }, .said = progress().message};
  EXPECT_FALSE(await_running(session(), 7, wait).value());
  job.set_phase("cancelled");
  *job.mutable_ended() = seconds_from_noon(0);
  answers<v1::GetJobRequest>("GetJob", job);
  EXPECT_EQ(await_running(session(), 7, wait).error().text(), "job 7 (shell) cancelled");
}

TEST_F(ShellJobWaitTest, AJobThatHasEndedNeedsNoCancelling) {
  refuses<v1::CancelJobRequest>("CancelJob", grpc::StatusCode::FAILED_PRECONDITION, "has ended");
  EXPECT_TRUE(cancel_shell_job(session(), 7));
  refuses<v1::CancelJobRequest>("CancelJob", grpc::StatusCode::PERMISSION_DENIED, "not yours");
  EXPECT_EQ(cancel_shell_job(session(), 7).error().text(),
            "job 7 could not be cancelled and may still hold its devices (`orrery cancel 7`): not "
            "yours");
}

}  // namespace
}  // namespace orrery
