// node/steps/srun_options_test.cpp - from srun's words to tasks on nodes and what each is told.
#include "node/steps/srun_options.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "fleet/import/host_list.hpp"
#include "node/steps/slurm_variables.hpp"
#include "node/steps/step_environment.hpp"
#include "node/steps/step_layout.hpp"
#include "node/steps/step_output.hpp"
#include "node/steps/step_secret.hpp"

namespace orrery {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

SrunOptions options(const std::string& line, const Variables& environment = {}) {
  Result<SrunOptions> read = read_srun_options(words(line), environment);
  EXPECT_TRUE(read) << line << ": " << (read ? "" : read.error().message);
  return read.value_or(SrunOptions{});
}

std::string complaint(const std::string& line) {
  const Result<SrunOptions> read = read_srun_options(words(line), {});
  return read ? "" : read.error().message;
}

StepGang gang() {
  return {.job = "7", .addresses = {"n1", "n2", "n3", "m"}, .here = 0, .port = 9, .secret = "s"};
}

/// "node:first+tasks" of each part.
std::string laid_out(const std::string& line, const Variables& environment = {}) {
  const Result<StepLayout> layout = step_layout(options(line, environment), gang());
  if (!layout) return layout.error().message;
  std::string text;
  for (const StepPart& part : layout->parts) {
    text += fmt::format("{}{}:{}+{}", text.empty() ? "" : " ", part.node, part.first, part.tasks);
  }
  return text;
}

TEST(SrunOptions, EndWhereTheCommandBegins) {
  const SrunOptions read = options("-n4 --nodes 2-3 -lu --gpus-per-task=h100:2 -K0 a -n 9");
  EXPECT_EQ(read.tasks, 4u);
  EXPECT_EQ(read.nodes, 2u);
  EXPECT_EQ(read.label, SrunOptions::Label::kYes);
  EXPECT_EQ(read.task_devices, 2u);
  EXPECT_EQ(read.bad_exit, SrunOptions::BadExit::kGoOn);
  EXPECT_EQ(read.command, (std::vector<std::string>{"a", "-n", "9"}));
  EXPECT_EQ(options("--kill-on-bad-exit a").bad_exit, SrunOptions::BadExit::kEndAll);
  EXPECT_EQ(options("--input=3 a").reader, 3u);
  EXPECT_EQ(options("--mpi=pmix --cpu-bind=none a").notes,
            std::vector<std::string>{"--mpi has no effect"});
  EXPECT_EQ(complaint("--ntask-per-node=2 a"),
            "--ntask-per-node is no option, did you mean \"--ntasks-per-node\"?");
  EXPECT_EQ(complaint("--pty bash"), "--pty is not supported");
  EXPECT_NE(complaint("-n"), "");
  EXPECT_NE(complaint("-n x a").find("expected a whole number"), std::string::npos);
  EXPECT_NE(complaint("-n 2").find("no command"), std::string::npos);
}

TEST(SrunOptions, TakeTheSizesOfTheScriptWhereTheySayNothing) {
  const Variables script = {{"SLURM_NTASKS", "6"},
                            {"SLURM_NTASKS_PER_NODE", "2"},
                            {"SLURM_GPUS_PER_TASK", "a100:1"},
                            {"SLURM_CPUS_PER_TASK", "8"}};
  EXPECT_EQ(laid_out("a", script), "0:0+2 1:2+2 2:4+2");
  EXPECT_EQ(laid_out("-N 1 a", script), "0:0+6");
  EXPECT_EQ(laid_out("-n 2 a", script), "0:0+1 1:1+1");
  EXPECT_EQ(options("a", script).task_devices, 1u);
  EXPECT_EQ(options("-c 2 a", script).cpus, "2");
}

TEST(SrunOptions, LayTasksOutNodeAfterNode) {
  EXPECT_EQ(laid_out("a"), "0:0+1 1:1+1 2:2+1 3:3+1");
  EXPECT_EQ(laid_out("-n 6 a"), "0:0+2 1:2+2 2:4+1 3:5+1");
  EXPECT_EQ(laid_out("-N 2 --ntasks-per-node=3 a"), "0:0+3 1:3+3");
  EXPECT_EQ(laid_out("-n 4 -N 3 --ntasks-per-node=3 a"), "0:0+3 1:3+1");
  EXPECT_EQ(laid_out("-n 1 -N 2 a"), "0:0+1");
  EXPECT_EQ(laid_out("--relative 3 -n 2 a"), "3:0+2");
  EXPECT_EQ(laid_out("-w n[3,1] -n 3 a"), "2:0+2 0:2+1");
  EXPECT_NE(laid_out("-N 5 a").find("the job has 4"), std::string::npos);
  EXPECT_NE(laid_out("-w n7 a").find("no node of this job, n[1-3],m"), std::string::npos);
}

TEST(SrunOptions, NameAFileForEachTask) {
  const SrunFileFacts facts{.job = "7", .step = "2", .task = 5, .node = 1, .host = "n2"};
  EXPECT_EQ(srun_file("o.%j.%3t-%n-%N-%J%%.%q%", facts), "o.7.005-1-n2-7.2%.%q%");
}

TEST(StepOutputs, AppendWhereToldToAndSayWhatCannotBeWritten) {
  const std::string path = testing::TempDir() + fmt::format("orrery_output_{}", ::getpid());
  const auto write = [&](const std::string& mode, const std::string& bytes) {
    const SrunOptions to = options("-o " + path + " --open-mode=" + mode + " true");
    StepOutputs outputs(to, {.job = "1"}, 0);
    EXPECT_TRUE(outputs.write({.host = "n"}, 1, bytes));
    EXPECT_TRUE(outputs.finish({.host = "n"}));
    std::ifstream file(path);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  EXPECT_EQ(write("append", "one\n"), "one\n");
  EXPECT_EQ(write("append", "two\n"), "one\ntwo\n");
  EXPECT_EQ(write("truncate", "three"), "three");
  std::filesystem::remove(path);
  EXPECT_NE(complaint("--open-mode=frob true").find("append or truncate"), std::string::npos);
  const SrunOptions full = options("-o /dev/full true");
  StepOutputs outputs(full, {.job = "1"}, 0);
  EXPECT_EQ(outputs.write({.host = "n"}, 1, "lost\n").error().message,
            "cannot write /dev/full: No space left on device");
}

TEST(StepEnvironment, TellsATaskOfItselfAndOfItsNode) {
  const Variables own = {{"CUDA_VISIBLE_DEVICES", "4,5,6"},
                         {"ORRERY_PROGRESS", "/here"},
                         {"SLURMD_NODENAME", "n2"},
                         {"SECRET", "x"}};
  EXPECT_EQ(devices_of(own), (std::vector<std::string>{"4", "5", "6"}));
  const StepOrder order{.environment = {{"PATH", "/bin"},
                                        {"CUDA_VISIBLE_DEVICES", "0"},
                                        {"ORRERY_PROGRESS", "/there"},
                                        {"SLURM_NTASKS", "6"},
                                        {"A", "b"}},
                        .first = 2,
                        .tasks = 2,
                        .node = 1};
  const Variables all = task_environment(order, own, "/t", {.local = 1, .devices = {"5"}});
  EXPECT_EQ((std::map<std::string, std::string>(all.begin(), all.end())),
            (std::map<std::string, std::string>{{"PATH", "/t:/bin"},
                                                {"CUDA_VISIBLE_DEVICES", "5"},
                                                {"SLURM_STEP_GPUS", "5"},
                                                {"ORRERY_PROGRESS", "/here"},
                                                {"ORRERY_STEP_TOOLS", "/t"},
                                                {"ORRERY_RANK", "3"},
                                                {"ORRERY_WORLD_SIZE", "6"},
                                                {"SLURM_NTASKS", "6"},
                                                {"SLURMD_NODENAME", "n2"},
                                                {"SLURM_PROCID", "3"},
                                                {"SLURM_LOCALID", "1"},
                                                {"SLURM_NODEID", "1"},
                                                {"SLURM_GTIDS", "2,3"},
                                                {"A", "b"}}));
  EXPECT_EQ(exported({{"A", "1"}, {"B", "2"}, {"SLURM_X", "3"}}, "B,C=a=b"),
            (Variables{{"B", "2"}, {"C", "a=b"}, {"SLURM_X", "3"}}));
  EXPECT_EQ(exported({{"A", "1"}, {"ORRERY_STEP_X", "2"}}, "ALL,ORRERY_STEP_X,ORRERY_Y=3"),
            (Variables{{"A", "1"}}));
}

TEST(SlurmVariables, WriteListsOfHostsThatReadBackTheSame) {
  const auto list = [](const std::vector<std::string>& hosts) {
    const std::string text = compress_host_list(hosts);
    const auto again = expand_host_list(text);
    EXPECT_TRUE(again) << text;
    if (again) EXPECT_EQ(*again, hosts) << text;
    return text;
  };
  EXPECT_EQ(list({"node0"}), "node0");
  EXPECT_EQ(list({"node0", "node1", "node2", "node7"}), "node[0-2,7]");
  EXPECT_EQ(list({"n09", "n10", "n11", "n1", "login"}), "n[09-11,1],login");
  EXPECT_EQ(list({"n9", "n10", "n010"}), "n[9-10,010]");
  EXPECT_EQ(list({"10.0.0.1", "10.0.0.2"}), "10.0.0.[1-2]");
  EXPECT_EQ(list({"127.0.0.1", "127.0.0.1"}), "127.0.0.[1,1]");
  EXPECT_EQ(list({"n", "n1", "n1", "n"}), "n,n[1,1],n");
  EXPECT_EQ(list({"n3", "n2", "m", "n12345678901"}), "n[3,2],m,n12345678901");
  EXPECT_EQ(tasks_per_node_text({4, 4, 3, 3, 3, 1}), "4(x2),3(x3),1");
}

TEST(StepSecret, IsOfOneAttemptAndProvedWithoutBeingSaid) {
  const std::string one = step_secret("key", {JobId(1), 1});
  EXPECT_EQ(one.size(), 64u);
  EXPECT_NE(one, step_secret("key", {JobId(1), 2}));
  EXPECT_NE(one, step_secret("yek", {JobId(1), 1}));
  const StepQuestion asked{StepEnd::kCaller, 2, "c"};
  EXPECT_TRUE(is_same_proof(step_proof(one, asked), step_proof(one, asked)));
  EXPECT_FALSE(is_same_proof("", step_proof(one, asked)));
  for (const StepQuestion& other : {StepQuestion{StepEnd::kCaller, 2, "d"},
                                    {StepEnd::kCaller, 1, "c"},
                                    {StepEnd::kNode, 2, "c"}}) {
    EXPECT_FALSE(is_same_proof(step_proof(one, asked), step_proof(one, other)));
  }
}

}  // namespace
}  // namespace orrery
