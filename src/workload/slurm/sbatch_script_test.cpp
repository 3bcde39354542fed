// workload/slurm/sbatch_script_test.cpp - what the options of sbatch become, and what is reported
// for those that have no effect.
#include "workload/slurm/sbatch_script.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace orrery {
namespace {

Result<SbatchJob> read(const std::string& lines, UnknownSbatchOption unknown = {}) {
  return read_sbatch_script("#!/bin/bash\n" + lines + "\nsrun ./a\n",
                            {.file = "jobs/train.sh",
                             .directory = "/data/ada",
                             .arguments = {"x y", "2"},
                             .environment = {{"HOME", "/data/ada"},
                                             {"PATH", "/opt:/bin"},
                                             {"TOKEN", "secret"},
                                             {"SLURM_NTASKS", "9"},
                                             {"BASH_FUNC_ml%%", "()"}},
                             .unknown = unknown});
}

SbatchJob job(const std::string& lines) {
  Result<SbatchJob> read_job = read(lines);
  EXPECT_TRUE(read_job) << (read_job ? "" : read_job.error().text());
  if (!read_job) return {};
  // What it writes is a job.
  const Result<Document> document = Document::parse(write_job_spec(read_job->spec), "");
  const Result<JobSpec> again = read_job_spec(document.value());
  EXPECT_TRUE(again) << (again ? "" : again.error().text());
  if (again) EXPECT_EQ(again->launch->command, read_job->spec.launch->command);
  return *std::move(read_job);
}

std::string error(const std::string& lines) {
  const Result<SbatchJob> wrong = read(lines);
  return wrong ? "" : wrong.error().text();
}

std::map<std::string, std::string> environment(const SbatchJob& of) {
  return {of.spec.launch->environment.begin(), of.spec.launch->environment.end()};
}

const RoleSpec& role(const SbatchJob& of) { return of.spec.roles.at(0); }

bool noted(const SbatchJob& of, const std::string& what) {
  return std::ranges::any_of(of.notes,
                             [&](const auto& note) { return note.find(what) != note.npos; });
}

TEST(SbatchScript, BecomesAJobWhoseCommandIsTheScriptAndItsArguments) {
  const SbatchJob all =
      job("#SBATCH --job-name=\"big run\" -A lab/vision   # who pays\n"
          "#SBATCH -N 2 --ntasks-per-node 4\n"
          "#SBATCH --gres=gpu:h100:4 -c8\n"
          "#SBATCH --mem=64G --time 1-02:30\n"
          "\n# a comment\n"
          "#SBATCH --dependency=afterok:12:13,afternotok:prep --hold --exclusive --chdir=run");
  EXPECT_EQ(all.spec.name, "big-run");
  EXPECT_EQ(all.spec.tenant, "lab/vision");
  EXPECT_EQ(role(all).accelerators, 8u);
  EXPECT_EQ(role(all).node_accelerators, 4u);
  EXPECT_EQ(role(all).types.at(0).type, "h100");
  EXPECT_EQ(role(all).host.cpu, 8);
  EXPECT_EQ(role(all).host.memory, Bytes(16.0 * (1 << 30)));
  EXPECT_EQ(role(all).topology.exclusive, TopologyLevel::kNode);
  EXPECT_EQ(all.spec.time_limit, Seconds(26.5 * 3600));
  ASSERT_EQ(all.spec.after.size(), 3u);
  EXPECT_EQ(all.spec.after[1].job, "13");
  EXPECT_EQ(all.spec.after[1].when, AfterCondition::kOk);
  EXPECT_EQ(all.spec.after[2].job, "prep");
  EXPECT_EQ(all.spec.after[2].when, AfterCondition::kNotOk);
  EXPECT_TRUE(all.spec.hold);
  EXPECT_EQ(all.spec.restart.max, 0u);
  EXPECT_EQ(all.spec.software.framework, "slurm");
  EXPECT_EQ(all.spec.launch->directory, "/data/ada/run");
  EXPECT_EQ(all.spec.launch->command.size(), 3u);
  EXPECT_TRUE(all.spec.launch->command[0].ends_with("\nsrun ./a\n"));
  EXPECT_EQ(all.spec.launch->command[1], "x y");
  EXPECT_EQ(environment(all),
            (std::map<std::string, std::string>{{"HOME", "/data/ada"},
                                                {"PATH", "/opt:/bin"},
                                                {"SLURM_NTASKS", "8"},
                                                {"SLURM_NPROCS", "8"},
                                                {"SLURM_NTASKS_PER_NODE", "4"},
                                                {"SLURM_CPUS_PER_TASK", "8"},
                                                {"SLURM_GPUS_PER_NODE", "4"},
                                                {"SLURM_MEM_PER_NODE", "65536"},
                                                {"SLURM_SUBMIT_DIR", "/data/ada"}}));
  EXPECT_TRUE(all.notes.empty());
  EXPECT_EQ(job("").spec.name, "train.sh");
}

TEST(SbatchScript, SizesAGangFromWhicheverNumbersAreGiven) {
  const auto size = [](const std::string& options) {
    const SbatchJob of = job("#SBATCH " + options);
    auto tasks = environment(of)["SLURM_NTASKS"];
    return fmt::format("{}/{} {} {}", *role(of).accelerators,
                       role(of).node_accelerators.value_or(0), tasks.empty() ? "-" : tasks,
                       role(of).host.cpu);
  };
  EXPECT_EQ(size("--gpus=16"), "16/0 - 0");
  EXPECT_EQ(size("-G 16 -N 2"), "16/8 - 0");
  EXPECT_EQ(size("--gpus=8 --gpus-per-task=2 -c 4"), "8/0 4 2");
  EXPECT_EQ(size("-n 8 --gpus-per-task=1 --ntasks-per-node=4"), "8/4 8 0");
  EXPECT_EQ(size("--gpus-per-node=a100:4 --nodes=2-4"), "8/4 - 0");
  EXPECT_EQ(size("--gpus-per-node 4 --gpus 8 --cpus-per-gpu 6"), "8/4 - 6");
  EXPECT_EQ(size("-n 6 -c 2"), "1/1 6 12");
  EXPECT_EQ(size("-n 6 -N 2"), "2/1 6 3");
  EXPECT_EQ(size("-n 2 -N 4"), "2/1 2 1");
  EXPECT_NE(error("#SBATCH -G 6 -N 4").find("train.sh:2:9: 6 GPUs on 4 nodes"), std::string::npos);
  EXPECT_EQ(size("-n 8 --gpus-per-node=4 --gpus-per-task=1"), "8/4 8 0");
  EXPECT_EQ(size("-n 6 --gpus-per-node=4 --gpus-per-task=1"), "8/4 6 0");
  EXPECT_EQ(size("--gpus-per-node=4 --gpus-per-task=2"), "4/4 2 0");
  EXPECT_EQ(size("--gpus=8 --ntasks-per-node=4"), "8/8 4 0");
  EXPECT_EQ(size("--gpus=8 --gpus-per-node=4 --ntasks-per-node=4"), "8/4 8 0");
  EXPECT_EQ(size("--gpus-per-task=2 --ntasks-per-node=4"), "8/8 4 0");
  for (const char* less : {"-n 8 -G 4 --gpus-per-task=1", "-G 1 --gpus-per-task=2"}) {
    EXPECT_NE(error(fmt::format("#SBATCH {}", less)).find("expected enough"), std::string::npos);
  }
  for (const char* most :
       {"-N 1048576 --ntasks-per-node=1048576", "-N 65536 -G 65536 --ntasks-per-node=65536",
        "-n 1048576 --gpus-per-node=1048576 --gpus-per-task=1048576"}) {
    EXPECT_NE(error(fmt::format("#SBATCH {}", most)).find("at most 1048576"), std::string::npos);
  }
}

TEST(SbatchScript, ReadsEveryFormOfTimeAndMemory) {
  const auto minutes = [](const std::string& text) {
    return job("#SBATCH -t " + text).spec.time_limit.value_or(Seconds(-60)).value() / 60;
  };
  EXPECT_EQ(minutes("90"), 90);
  EXPECT_EQ(minutes("90:30"), 90.5);
  EXPECT_EQ(minutes("1:30:00"), 90);
  EXPECT_EQ(minutes("2-12"), 60 * 60);
  EXPECT_EQ(minutes("2-12:05"), 60 * 60 + 5);
  EXPECT_EQ(minutes("0-0:1:30"), 1.5);
  EXPECT_EQ(minutes("UNLIMITED"), -1);
  EXPECT_EQ(minutes("0"), -1);
  for (const char* wrong : {"1:2:3:4", "-5", "1-2-3", "5m", "1-"}) {
    EXPECT_NE(error(std::string("#SBATCH --time=") + wrong).find("expected a time"),
              std::string::npos)
        << wrong;
  }
  const auto mebibytes = [](const std::string& text) {
    return role(job("#SBATCH -G 2 --mem-per-gpu=" + text)).host.memory.value() / (1 << 20);
  };
  EXPECT_EQ(mebibytes("4000"), 4000);
  EXPECT_EQ(mebibytes("2048K"), 2);
  EXPECT_EQ(mebibytes("2GB"), 2048);
  EXPECT_EQ(role(job("#SBATCH -n 4 -c 2 --mem-per-cpu=1G")).host.memory, Bytes(8.0 * (1 << 30)));
  EXPECT_NE(error("#SBATCH --mem=4X").find("expected a size"), std::string::npos);
}

TEST(SbatchScript, MakesAnArrayOfItsNumbers) {
  const SbatchJob array = job("#SBATCH --array=1,4-6,10-20:5%2");
  EXPECT_EQ(array.spec.array->count, 7u);
  EXPECT_EQ(array.spec.array->parallel, 2u);
  auto known = environment(array);
  EXPECT_EQ(known["SLURM_ARRAY_TASK_ID"], "1,4-6,10-20:5");
  EXPECT_EQ(known["SLURM_ARRAY_TASK_MIN"], "1");
  EXPECT_EQ(known["SLURM_ARRAY_TASK_MAX"], "20");
  EXPECT_EQ(known["SLURM_ARRAY_TASK_COUNT"], "7");
  for (const char* wrong : {"", "3-1", "1,1", "1-4:0", "4:2", "a", "1,,2", "0-4000000"}) {
    EXPECT_NE(error(std::string("#SBATCH --array='") + wrong + "'"), "") << wrong;
  }
}

TEST(SbatchScript, HandsOverOnlyWhatExportNames) {
  const auto has = [](const std::string& value, const std::string& name) {
    return environment(job("#SBATCH --export=" + value))[name];
  };
  EXPECT_EQ(has("ALL", "TOKEN"), "secret");
  EXPECT_EQ(has("ALL", "SLURM_NTASKS"), "");
  EXPECT_EQ(has("TOKEN,A=b=c", "TOKEN"), "secret");
  EXPECT_EQ(has("TOKEN,A=b=c", "A"), "b=c");
  EXPECT_EQ(has("TOKEN,A=b=c", "HOME"), "");
  EXPECT_EQ(has("NONE", "PATH"), "");
}

TEST(SbatchScript, NamesOfFilesForItsOutputAreKeptAndChecked) {
  const SbatchJob both = job("#SBATCH -o out/%x-%A_%4a.log -e err.%j");
  EXPECT_EQ(both.spec.launch->output, "out/%x-%A_%4a.log");
  EXPECT_EQ(both.spec.launch->error, "err.%j");
  EXPECT_FALSE(noted(both, "--output") || noted(both, "--error"));
  EXPECT_EQ(job("#SBATCH -n 1").spec.launch->output, "");
  EXPECT_EQ(
      error("#SBATCH --output=out.%q"),
      "jobs/train.sh:2:9: --output: \"out.%q\": \"%q\" is no pattern, expected %j, %x, %A, %a, "
      "%t, %N, %u or %%");
}

TEST(SbatchScript, SaysWhatHasNoEffectAndRefusesWhatItDoesNotKnow) {
  const SbatchJob quiet = job("#SBATCH -i in --mail-type=END -p gpu\necho\n#SBATCH -n 4");
  EXPECT_TRUE(noted(quiet, "train.sh:2: --input has no effect"));
  EXPECT_TRUE(noted(quiet, "train.sh:2: --mail-type has no effect: no mail"));
  EXPECT_TRUE(noted(quiet, "--partition gpu has no effect"));
  EXPECT_TRUE(noted(quiet, "train.sh:4: #SBATCH after the first command"));
  EXPECT_EQ(environment(quiet)["SLURM_JOB_PARTITION"], "gpu");
  EXPECT_EQ(error("#SBATCH -n 2\n#SBATCH --ntask-per-node=2"),
            "jobs/train.sh:3:9: --ntask-per-node is no option of sbatch, did you mean "
            "\"--ntasks-per-node\"?");
  EXPECT_NE(error("#SBATCH --begin=now+1hour").find("--lenient goes on without it"),
            std::string::npos);
  EXPECT_NE(error("#SBATCH --dependency=singleton").find("expected afterok"), std::string::npos);
  EXPECT_NE(error("#SBATCH --gres=nic:2").find("train.sh:2:9: --gres: \"nic:2\""),
            std::string::npos);
  EXPECT_NE(error("#SBATCH -n").find("--ntasks has no value"), std::string::npos);
  EXPECT_NE(error("#SBATCH 4").find("expected an option"), std::string::npos);
  EXPECT_NE(error("#SBATCH -J \"a").find(":2:12: a quote"), std::string::npos);
  EXPECT_NE(error("#SBATCH -n 2\r").find("carriage return"), std::string::npos);
  const Result<SbatchJob> lenient =
      read("#SBATCH --frob 3 --begin=now --ntask=2", UnknownSbatchOption::kNote);
  ASSERT_TRUE(lenient) << lenient.error().text();
  EXPECT_EQ(lenient->notes.size(), 4u);  // and that there are no GPUs
}

TEST(SbatchScript, IsKnownByItsFirstLineAndItsMark) {
  EXPECT_TRUE(is_sbatch_script("#!/bin/sh\n#SBATCH -n 1\n"));
  EXPECT_FALSE(is_sbatch_script("#!/bin/sh\necho #SBATCH\n"));
  EXPECT_FALSE(is_sbatch_script("apiVersion: orrery/v1\n#SBATCH\n"));
}

}  // namespace
}  // namespace orrery
