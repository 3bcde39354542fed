// tests/end_to_end/training_run.hpp - ranks of orrery-train as processes, and a training of a small
// model for them in a directory of its own.
//
// Made by a test, used by its thread; what is left of processes and files goes with it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "base/system/file_descriptor.hpp"
#include "base/system/port_block_test.hpp"

namespace orrery {

/// Path of the orrery-train program in the build.
const char* train_program();

inline constexpr int kPatienceMs = 120'000;

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The value of `"name": "..."` in the last line that has it.
inline std::string last_text(const std::string& text, const std::string& name) {
  const std::size_t at = text.rfind('"' + name + "\": \"");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 5;
  return text.substr(begin, text.find('"', begin) - begin);
}

/// A rank: its process and its output.
class Rank {
 public:
  Rank(std::vector<std::string> arguments, std::vector<std::string> environment) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = FileDescriptor(ends[0]);
    const FileDescriptor writer(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> argv;
    std::vector<char*> envp;
    argv.reserve(arguments.size() + 1);
    envp.reserve(environment.size() + 1);
    for (std::string& each : arguments) argv.push_back(each.data());
    for (std::string& each : environment) envp.push_back(each.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, train_program(), &actions, nullptr, argv.data(), envp.data()),
              0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    kill();
    (void)end();
  }

  /// Reads until `words` were printed or the process ended. Returns whether they were.
  bool says(const std::string& words) {
    while (text_.find(words) == std::string::npos) {
      if (!read()) return false;
    }
    return true;
  }

  void kill(int signal = SIGKILL) {
    if (pid_ > 0) (void)::kill(pid_, signal);
  }

  /// The exit status of the process, or 128 + the signal.
  int end() {
    if (pid_ <= 0) return status_;
    while (read()) {
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return status_;
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] int descriptor() const { return output_.get(); }

 private:
  bool read() {
    pollfd ready{output_.get(), POLLIN, 0};
    if (::poll(&ready, 1, kPatienceMs) != 1) {
      ADD_FAILURE() << "a rank was silent for " << kPatienceMs << " ms after\n" << text_;
      kill();
      return false;
    }
    char bytes[4096];
    const ssize_t got = ::read(output_.get(), bytes, sizeof bytes);
    if (got <= 0) return false;
    text_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  int status_ = -1;
  FileDescriptor output_;
  std::string text_;
};

/// A training with its own directory and ports.
class Training {
 public:
  /// `layout`: lines of the spec, or none; `model`: more keys of it.
  explicit Training(std::uint32_t steps, const std::string& layout = "", std::string model = "")
      : model_(std::move(model)) {
    std::string name = std::filesystem::temp_directory_path() / "orrery-training-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    std::ofstream text(directory_ / "text");
    Rng rng(7);
    for (int i = 0; i < 20'000; ++i) text << static_cast<char>('a' + rng.below(20));
    steps_ = steps;
    lay_out(layout.empty() ? "verify_every: 5" : layout);
  }
  ~Training() { std::filesystem::remove_all(directory_); }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Sets the layout for ranks started from now on.
  void lay_out(const std::string& layout) const {
    std::ofstream(directory_ / "spec.yaml")
        << "apiVersion: orrery/v1\nkind: Training\nname: kills\n"
           "model: {family: gpt, layers: 2, width: 32, heads: 2, sequence: 32"
        << model_ << "}\ndata: {paths: [" << path("text") << "]" << data_
        << "}\nbatch: {sequences: 8, shards: 4, micro: 2}\nsteps: " << steps_ << "\n"
        << layout << "\ncheckpoint: {directory: " << path("saved") << ", " << saves_
        << "}\noutput: " << path("out") << "\n";
  }

  /// `how` holds the keys of the spec's checkpoint.
  void save(const std::string& how, const std::string& layout) {
    saves_ = how;
    lay_out(layout);
  }

  /// For ranks started from now on, uses tokens of a model that is made of the text.
  void take_pieces(const std::string& kinds) {
    model_ = ", vocab: " + kinds;
    data_ = ", tokenizer: " + path("pieces") + ", cache: " + path("tokens");
    lay_out("verify_every: 5");
    Rank maker({"orrery-train", path("spec.yaml"), "--train-tokenizer", kinds}, {"NOTHING="});
    EXPECT_EQ(maker.end(), 0) << maker.text();
  }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ / name; }

  [[nodiscard]] std::unique_ptr<Rank> start(std::uint32_t rank, std::uint32_t world,
                                            std::uint32_t epoch = 0,
                                            const std::string& more = "NOTHING=") const {
    // One file for each rank, as another rank may be reading its own.
    const std::string members =
        path("membership-" + std::to_string(epoch) + "-" + std::to_string(rank));
    std::ofstream(members) << R"({"epoch": )" << epoch << R"(, "gangs": [{"gang": 0, "nodes": [)"
                           << R"({"address": "127.0.0.1", "ranks": [0]}]}]})";
    return std::make_unique<Rank>(
        std::vector<std::string>{"orrery-train", path("spec.yaml")},
        std::vector<std::string>{
            "ORRERY_JOB=kills", "ORRERY_ATTEMPT=" + std::to_string(attempt_), "ORRERY_GANG=0",
            "ORRERY_RANK=" + std::to_string(rank), "ORRERY_WORLD_SIZE=" + std::to_string(world),
            "ORRERY_ADDRESS=127.0.0.1", "ORRERY_MASTER=127.0.0.1:" + std::to_string(port_),
            "ORRERY_MEMBERSHIP=" + members, more});
  }

  [[nodiscard]] std::vector<std::unique_ptr<Rank>> start_all(std::uint32_t world) const {
    std::vector<std::unique_ptr<Rank>> ranks;
    ranks.reserve(world);
    for (std::uint32_t rank = 0; rank < world; ++rank) ranks.push_back(start(rank, world));
    return ranks;
  }

  void next_attempt() { ++attempt_; }
  [[nodiscard]] int attempt() const { return attempt_; }
  [[nodiscard]] int port() const { return port_; }
  /// For ranks started from now on, uses the ports of a block that another training has.
  void meet_at(int port) { port_ = port; }

  /// The routers' column of loss.csv, step by step; empty without it.
  [[nodiscard]] std::vector<double> router_losses() const {
    std::vector<double> losses;
    std::ifstream file(path("out/loss.csv"));
    std::string line;
    std::getline(file, line);
    if (!line.ends_with(",router_loss")) return losses;
    while (std::getline(file, line)) losses.push_back(std::stod(line.substr(line.rfind(',') + 1)));
    return losses;
  }

  /// The losses of loss.csv, step by step.
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> losses;
    std::ifstream file(path("out/loss.csv"));
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) losses.push_back(std::stod(line.substr(line.find(',') + 1)));
    return losses;
  }

  [[nodiscard]] std::string hash() const {
    return last_text(slurp(path("out/events.jsonl")), "state_sha256");
  }

 private:
  std::filesystem::path directory_;
  std::string model_;
  std::string data_;
  std::string saves_ = "every: 8, peer_every: 3";
  std::uint32_t steps_ = 0;
  PortBlock ports_;
  int port_ = ports_.first();
  int attempt_ = 1;
};

inline std::string hash_of_one_rank(std::uint32_t steps) {
  const Training training(steps);
  const auto rank = training.start(0, 1);
  EXPECT_EQ(rank->end(), 0) << rank->text();
  return training.hash();
}

inline std::string step_line(std::uint64_t step, std::uint32_t steps) {
  char text[64];
  (void)std::snprintf(text, sizeof text, "step %5llu/%u", static_cast<unsigned long long>(step),
                      steps);
  return text;
}

}  // namespace orrery
