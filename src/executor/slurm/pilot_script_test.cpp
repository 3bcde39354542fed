// executor/slurm/pilot_script_test.cpp - what the script of a pilot does, with a srun that is a
// shell script.
#include "executor/slurm/pilot_script.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/numbers/rng.hpp"
#include "store/backend_test.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// Starts the command behind its options once for each of two nodes, with its own input.
constexpr const char* kSrun = R"(#!/bin/sh
here=${0%/*}
printf '%s\n' "$@" > "$here/srun.words"
while [ "$1" != /bin/sh ]; do shift; done
cat > "$here/srun.input"
for node in n1 n2; do SLURMD_NODENAME=$node "$@" < "$here/srun.input" || exit; done
)";

/// Says its words, one a line, and what it reads from its standard input.
constexpr const char* kAgent = R"(#!/bin/sh
printf '%s\n' "$@" > "${0%/*}/agent.$SLURMD_NODENAME"
cat >> "${0%/*}/agent.$SLURMD_NODENAME"
)";

class PilotScriptTest : public testing::Test {
 protected:
  PilotScriptTest() {
    fs::create_directory(scratch_.path(""));
    write("srun", kSrun);
    write("it's an agent", kAgent);
    agent_ = {
        .program = scratch_.path("it's an agent"),
        .directory = scratch_.path("pilots of $HOME"),
        .controllers = {"c1:7000", "c2:7000"},
        .authority = "-----BEGIN CERTIFICATE-----\nAAAA\\n$x `y`\n-----END CERTIFICATE-----\n"};
    hold_ = {.key = {.id = 7, .epoch = 3}, .nodes = 2, .join_token = "token $1 'quoted' \\n"};
  }

  void write(const std::string& name, const std::string& text) const {
    const std::string path = scratch_.path(name);
    std::ofstream(path) << text;
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  /// Runs a script as the batch script of job 17; returns its exit status.
  [[nodiscard]] int run(const std::string& script) const {
    write("script", script);
    const std::string command =
        fmt::format("env -i PATH={}:/usr/bin:/bin SLURM_JOB_ID=17 SLURM_JOB_NUM_NODES=2 sh {}",
                    shell_word(scratch_.path("")), shell_word(scratch_.path("script")));
    return std::system(command.c_str());
  }

  TestDirectory scratch_;
  PilotAgent agent_;
  EnsureHold hold_;
};

TEST_F(PilotScriptTest, EachNodeHasAnAgentWithFilesOfItsOwn) {
  agent_.options = {"--emulate", "h100:8", "it's; $(date)"};
  const auto script = pilot_script(agent_, hold_);
  ASSERT_TRUE(script) << script.error().message;
  ASSERT_EQ(run(*script), 0) << *script;
  for (const std::string node : {"n1", "n2"}) {
    const std::string directory = agent_.directory + "/" + node;
    EXPECT_EQ(read(scratch_.path("agent." + node)),
              fmt::format("--node\n{0}\n--dir\n{1}\n--controller\nc1:7000,c2:7000\n--ca\n"
                          "{1}/pilot-ca.pem\n--join\n@{1}/pilot-join\n--hold\npilot-3-7:17\n"
                          "--emulate\nh100:8\nit's; $(date)\n",
                          node, directory));
    EXPECT_EQ(read(directory + "/pilot-join"), hold_.join_token + "\n");
    EXPECT_EQ(read(directory + "/pilot-ca.pem"), agent_.authority);
    const fs::perms others = fs::perms::group_all | fs::perms::others_all;
    for (const std::string& path : {directory, directory + "/pilot-join"}) {
      EXPECT_EQ(fs::status(path).permissions() & others, fs::perms::none) << path;
    }
  }
}

TEST_F(PilotScriptTest, NoSecretIsAnArgument) {
  const auto script = pilot_script(agent_, hold_);
  ASSERT_TRUE(script);
  ASSERT_EQ(run(*script), 0);
  const std::string words = read(scratch_.path("srun.words"));
  EXPECT_EQ(words.find("token $1"), words.npos);
  EXPECT_EQ(words.find("AAAA"), words.npos);
  EXPECT_TRUE(
      words.starts_with("--nodes=2\n--ntasks=2\n--ntasks-per-node=1\n--no-kill\n"
                        "--kill-on-bad-exit=0\n--mpi=none\n"))
      << words;
}

TEST_F(PilotScriptTest, FilesOfAnEarlierPilotAreReplaced) {
  fs::create_directories(agent_.directory + "/n1");
  const std::string token = agent_.directory + "/n1/pilot-join";
  std::ofstream(token) << "old";
  ASSERT_EQ(::chmod(token.c_str(), 0644), 0);
  const auto script = pilot_script(agent_, hold_);
  ASSERT_TRUE(script);
  ASSERT_EQ(run(*script), 0);
  EXPECT_EQ(read(token), hold_.join_token + "\n");
  struct stat status{};
  ASSERT_EQ(::stat(token.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(PilotScriptTest, AnInputThatIsCutOffStartsNoAgent) {
  const auto script = pilot_script(agent_, hold_);
  ASSERT_TRUE(script);
  const std::size_t end = script->rfind("ORRERY-CERTIFICATE-END\n");
  ASSERT_NE(end, script->npos);
  EXPECT_NE(run(script->substr(0, end) + script->substr(script->find('\n', end) + 1)), 0);
  EXPECT_FALSE(fs::exists(scratch_.path("agent.n1")));
}

TEST_F(PilotScriptTest, AnyWordsReachTheAgentAsTheyAre) {
  constexpr std::string_view kBytes = "a b'\"\\$`!*?[]{}()<>|&;#~=%\t-";
  constexpr std::uint64_t kSeed = 17;
  Rng rng(kSeed);
  const auto word = [&] {
    std::string text;
    for (std::uint64_t left = rng.below(12) + 1; left > 0; --left) {
      text += kBytes[rng.below(kBytes.size())];
    }
    return text;
  };
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", kSeed, round));
    agent_.options = {word(), word(), word()};
    hold_.join_token = word();
    const auto script = pilot_script(agent_, hold_);
    ASSERT_TRUE(script);
    ASSERT_EQ(run(*script), 0) << *script;
    EXPECT_TRUE(read(scratch_.path("agent.n2"))
                    .ends_with(fmt::format("pilot-3-7:17\n{}\n", fmt::join(agent_.options, "\n"))));
    EXPECT_EQ(read(agent_.directory + "/n2/pilot-join"), hold_.join_token + "\n");
  }
}

TEST_F(PilotScriptTest, WhatCannotBeSentIsRefused) {
  const auto refused = [&](auto&& spoil) {
    PilotAgent agent = agent_;
    EnsureHold hold = hold_;
    spoil(agent, hold);
    const auto script = pilot_script(agent, hold);
    return !script && script.error().kind == ErrorKind::kInput;
  };
  EXPECT_TRUE(refused([](auto& agent, auto&) { agent.controllers.clear(); }));
  EXPECT_TRUE(refused([](auto& agent, auto&) { agent.directory = "pilots"; }));
  EXPECT_TRUE(refused([](auto& agent, auto&) { agent.options = {"a\nb"}; }));
  EXPECT_TRUE(refused([](auto& agent, auto&) { agent.options = {std::string("a\0b", 3)}; }));
  EXPECT_TRUE(refused([](auto& agent, auto&) { agent.authority.clear(); }));
  EXPECT_TRUE(refused([](auto& agent, auto&) { agent.authority += "ORRERY-CERTIFICATE-END\n"; }));
  EXPECT_TRUE(refused([](auto&, auto& hold) { hold.join_token = "two\nlines"; }));
  EXPECT_TRUE(refused([](auto&, auto& hold) { hold.join_token.clear(); }));
  EXPECT_TRUE(refused([](auto&, auto& hold) { hold.join_token = "ORRERY-INPUT-END"; }));
  EXPECT_FALSE(refused([](auto&, auto&) {}));
}

}  // namespace
}  // namespace orrery
