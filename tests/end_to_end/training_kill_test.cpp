// orrery-train as gangs of real processes that die: whatever happens to them, the weights end with
// the same bits. ORRERY_TRAINING_KILLS (10) is the number of kills.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
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
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/real_clock.hpp"
#include "base/rng.hpp"

namespace orrery {
namespace {

constexpr int kPatienceMs = 120'000;

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The value of `"name": "..."` in the last line that has it.
std::string last_text(const std::string& text, const std::string& name) {
  const std::size_t at = text.rfind('"' + name + "\": \"");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 5;
  return text.substr(begin, text.find('"', begin) - begin);
}

/// A rank: its process, and what it prints.
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
    EXPECT_EQ(::posix_spawn(&pid_, ORRERY_TRAIN, &actions, nullptr, argv.data(), envp.data()), 0);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    kill();
    (void)end();
  }

  /// Reads on until `words` were printed, or it ended.
  bool says(const std::string& words) {
    while (text_.find(words) == std::string::npos) {
      if (!read()) return false;
    }
    return true;
  }

  void kill(int signal = SIGKILL) {
    if (pid_ > 0) (void)::kill(pid_, signal);
  }

  /// Its exit status; 128 + the signal.
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

/// A training of its own directory and ports.
class Training {
 public:
  /// `layout`: lines of the spec, or none; `model`: more keys of it.
  explicit Training(std::uint32_t steps, int port = free_port(), const std::string& layout = "",
                    std::string model = "")
      : model_(std::move(model)), port_(port) {
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

  /// From the next rank on.
  void lay_out(const std::string& layout) const {
    std::ofstream(directory_ / "spec.yaml")
        << "apiVersion: orrery/v1\nkind: Training\nname: kills\n"
           "model: {family: gpt, layers: 2, width: 32, heads: 2, sequence: 32"
        << model_ << "}\ndata: {paths: [" << path("text") << "]" << data_
        << "}\nbatch: {sequences: 8, shards: 4, micro: 2}\nsteps: " << steps_ << "\n"
        << layout << "\ncheckpoint: {directory: " << path("saved")
        << ", every: 8}\noutput: " << path("out") << "\n";
  }

  /// From the next rank on, tokens of a model that is made of its text.
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
    // One a rank: another may be reading its own.
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
  [[nodiscard]] static int any_port() { return free_port(); }

  /// Of the routers' column of loss.csv, step by step; none without it.
  [[nodiscard]] std::vector<double> router_losses() const {
    std::vector<double> losses;
    std::ifstream file(path("out/loss.csv"));
    std::string line;
    std::getline(file, line);
    if (!line.ends_with(",router_loss")) return losses;
    while (std::getline(file, line)) losses.push_back(std::stod(line.substr(line.rfind(',') + 1)));
    return losses;
  }

  /// Of loss.csv, step by step.
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
  /// The first of 16 in a row that nobody listened at a moment ago, below those that the kernel
  /// gives to whoever asks for any.
  [[nodiscard]] static int free_port() {
    Rng draw(static_cast<std::uint64_t>(RealClock().now_monotonic().ns()));
    for (;;) {
      const int port = 20'000 + static_cast<int>(draw.below(700)) * 16;
      const FileDescriptor any(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!any.valid()) return port;
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_port = htons(static_cast<std::uint16_t>(port));
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (::bind(any.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return port;
    }
  }

  std::filesystem::path directory_;
  std::string model_;
  std::string data_;
  std::uint32_t steps_ = 0;
  int port_;
  int attempt_ = 1;
};

std::string hash_of_one_rank(std::uint32_t steps) {
  const Training training(steps);
  const auto rank = training.start(0, 1);
  EXPECT_EQ(rank->end(), 0) << rank->text();
  return training.hash();
}

std::string step_line(std::uint64_t step, std::uint32_t steps) {
  char text[64];
  (void)std::snprintf(text, sizeof text, "step %5llu/%u", static_cast<unsigned long long>(step),
                      steps);
  return text;
}

TEST(TrainingKills, AtRandomMomentsLeaveTheSameBits) {
  constexpr std::uint32_t kSteps = 24;
  const char* wanted = std::getenv("ORRERY_TRAINING_KILLS");
  const int kills = wanted == nullptr ? 10 : std::atoi(wanted);
  const std::string whole = hash_of_one_rank(kSteps);
  ASSERT_EQ(whole.size(), 64u);
  Rng rng(static_cast<std::uint64_t>(::getpid()));
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    const Training training(kSteps);
    const std::uint64_t victim = rng.below(4);
    const std::uint64_t step = 1 + rng.below(kSteps - 4);
    const auto later = static_cast<int>(rng.below(8));
    SCOPED_TRACE(testing::Message()
                 << "rank " << victim << " after step " << step << " and " << later << " ms");
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
    ASSERT_TRUE(ranks[0]->says(step_line(step, kSteps))) << ranks[0]->text();
    (void)::poll(nullptr, 0, later);
    ranks[victim]->kill();
    // On a quick machine it may have been done before.
    const int end = ranks[victim]->end();
    EXPECT_TRUE(end == 128 + SIGKILL || end == 0) << end;
    if (end != 0) ++killed;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      if (rank == victim) continue;
      ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
    }
    ASSERT_EQ(training.hash(), whole);
  }
  std::printf("%d of %d ranks were killed before they were done\n", killed, kills);
  EXPECT_GT(2 * killed, kills);
}

TEST(TrainingKills, OfOneJobDoNotDisturbAnotherOfThisMachine) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  const auto shared_memory = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
      if (entry.path().filename().string().find("orrery") != std::string::npos) {
        names.insert(entry.path());
      }
    }
    return names;
  };
  const std::set<std::string> before = shared_memory();
  const Training one(kSteps);
  const Training other(kSteps, one.port() + 3);  // one past the ports of the first
  const std::vector<std::unique_ptr<Rank>> dying = one.start_all(3);
  const std::vector<std::unique_ptr<Rank>> living = other.start_all(3);
  ASSERT_TRUE(dying[0]->says(step_line(2, kSteps))) << dying[0]->text();
  for (const auto& rank : dying) rank->kill();
  for (const auto& rank : living) {
    ASSERT_EQ(rank->end(), 0) << rank->text();
    EXPECT_EQ(rank->text().find("regrouped"), std::string::npos) << rank->text();
  }
  EXPECT_EQ(other.hash(), whole);
  EXPECT_EQ(shared_memory(), before) << "nothing is left of who was killed";
}

TEST(TrainingKills, WhoComputesAWrongGradientIsNamedAndLeftOut) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  const Training training(kSteps);
  std::vector<std::unique_ptr<Rank>> ranks;
  ranks.reserve(4);
  // Step 14, counted from 0, is the third that is checked: shard 2, of rank 2.
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks.push_back(training.start(rank, 4, 0, rank == 2 ? "ORRERY_REHEARSE_FLIP=14" : "NOTHING="));
  }
  for (const std::uint32_t rank : {0u, 1u, 3u}) {
    ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
  }
  EXPECT_EQ(ranks[2]->end(), 1);
  EXPECT_NE(ranks[2]->text().find("this machine computed in step 15"), std::string::npos)
      << ranks[2]->text();
  EXPECT_NE(slurp(training.path("out/events.jsonl")).find(R"("shard": 2, "ranks": [2])"),
            std::string::npos);
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingKills, ANewcomerTakesThePlaceOfTheDead) {
  constexpr std::uint32_t kSteps = 80;
  const std::string whole = hash_of_one_rank(kSteps);
  const Training training(kSteps);
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
  ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
  ranks[1]->kill();
  ASSERT_TRUE(ranks[0]->says("regrouped")) << ranks[0]->text();
  const auto newcomer = training.start(1, 4, 1);
  for (const std::uint32_t rank : {0u, 2u, 3u}) {
    ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
  }
  EXPECT_EQ(newcomer->end(), 0) << newcomer->text();
  EXPECT_NE(ranks[0]->text().find("\"generation\": 3, \"ranks\": 4"), std::string::npos)
      << ranks[0]->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingKills, OfRanksThatShareTheirTokensLeaveTheSameBits) {
  constexpr std::uint32_t kSteps = 24;
  Training alone(kSteps);
  alone.take_pieces("300");
  const auto rank = alone.start(0, 1);
  ASSERT_EQ(rank->end(), 0) << rank->text();
  Training training(kSteps);
  training.take_pieces("300");
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
  ASSERT_TRUE(ranks[0]->says(step_line(5, kSteps))) << ranks[0]->text();
  ranks[1]->kill();
  // What the killed one said of its tokens may be lost with it.
  int found = 0;
  for (const auto* each : {&ranks[0], &ranks[2]}) {
    EXPECT_EQ((*each)->end(), 0) << (*each)->text();
    const std::string& text = (*each)->text();
    found += text.find("(300 kinds; found on this node)") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(found, 1) << "one of three made them";
  EXPECT_EQ(training.hash(), alone.hash());
}

TEST(TrainingKills, WhoComesWhenAllIsDoneHasNothingToDo) {
  const Training training(8);
  EXPECT_EQ(training.start(0, 1)->end(), 0);
  const auto late = training.start(1, 2, 1);
  EXPECT_EQ(late->end(), 0) << late->text();
}

TEST(TrainingKills, OfAllRanksGoOnFromTheNewestCheckpoint) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = hash_of_one_rank(kSteps);
  Training training(kSteps);
  {
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
    ASSERT_TRUE(ranks[0]->says("\"event\": \"checkpoint\"")) << ranks[0]->text();
    for (auto& rank : ranks) rank->kill();
  }
  training.next_attempt();
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(2);
  for (auto& rank : ranks) ASSERT_EQ(rank->end(), 0) << rank->text();
  EXPECT_NE(ranks[0]->text().find("goes on from step"), std::string::npos) << ranks[0]->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(Training, AskedToEndSavesWhatItHasDone) {
  constexpr std::uint32_t kSteps = 40;
  const std::string whole = hash_of_one_rank(kSteps);
  Training training(kSteps);
  {
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(3);
    ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
    for (auto& rank : ranks) rank->kill(SIGTERM);
    for (auto& rank : ranks) EXPECT_EQ(rank->end(), 128 + SIGTERM) << rank->text();
    EXPECT_NE(ranks[0]->text().find("\"event\": \"checkpoint\""), std::string::npos)
        << ranks[0]->text();
  }
  training.next_attempt();
  const auto rank = training.start(0, 1);
  EXPECT_EQ(rank->end(), 0) << rank->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(Training, SaysWhatIsWrongBeforeItMeetsAnybody) {
  const Training training(8);
  std::filesystem::remove(training.path("text"));
  const auto missing = training.start(1, 2);
  EXPECT_EQ(missing->end(), 2);
  EXPECT_NE(missing->text().find(training.path("text")), std::string::npos) << missing->text();
  std::ofstream(training.path("text")) << "short";
  const auto small = training.start(1, 2);
  EXPECT_EQ(small->end(), 2) << small->text();
  std::ofstream(training.path("text")) << std::string(10'000, 'x');
  const auto many = training.start(4, 5);
  EXPECT_EQ(many->end(), 2);
  EXPECT_NE(many->text().find("batch.shards"), std::string::npos) << many->text();
}

// --- Layouts in which nobody has the whole state ------------------------------------------------

/// What ranks of a layout end with that nothing happens to.
struct Unbroken {
  std::string hash;
  std::vector<double> losses;
};

Unbroken unbroken(const std::string& layout, std::uint32_t world, std::uint32_t steps,
                  const std::string& model = "") {
  const Training training(steps, Training::any_port(), layout, model);
  for (const auto& rank : training.start_all(world)) EXPECT_EQ(rank->end(), 0) << rank->text();
  return {training.hash(), training.losses()};
}

constexpr auto kHalves = "layout: {tp: 2}";
constexpr auto kZero = "layout: {zero: 1}";
constexpr auto kBoth = "layout: {tp: 2, zero: 1}";
constexpr auto kStages = "layout: {pp: 2}";
constexpr auto kAll = "layout: {tp: 2, pp: 2, zero: 1}";

struct Cut {
  std::string layout;
  std::uint32_t ranks;
};

/// Of a model with these keys more, each cut has the losses of one rank and bits of its own.
void expect_bits_of_cuts(const std::vector<Cut>& cuts, const std::string& model) {
  constexpr std::uint32_t kSteps = 24;
  const Unbroken one = unbroken("verify_every: 0", 1, kSteps, model);
  ASSERT_EQ(one.losses.size(), kSteps);
  EXPECT_LT(one.losses.back(), one.losses.front() - 0.3) << "it learns";
  EXPECT_EQ(unbroken(kZero, 3, kSteps, model).hash, one.hash);
  for (const Cut& cut : cuts) {
    SCOPED_TRACE(cut.layout);
    const std::string layout = "layout: {" + cut.layout + "}";
    const Unbroken parts = unbroken(layout, cut.ranks, kSteps, model);
    ASSERT_EQ(parts.losses.size(), kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(parts.losses[step], one.losses[step], 1e-4) << step;
    }
    EXPECT_NE(parts.hash, one.hash) << "sums in another order";
    EXPECT_EQ(unbroken(layout, 2 * cut.ranks, kSteps, model).hash, parts.hash);
    const std::string zero = "layout: {" + cut.layout + ", zero: 1}";
    EXPECT_EQ(unbroken(zero, 2 * cut.ranks, kSteps, model).hash, parts.hash);
  }
}

TEST(TrainingLayouts, HaveTheLossesOfOneRankAndTheBitsOfTheirCuts) {
  expect_bits_of_cuts({{"tp: 2", 2}, {"pp: 2", 2}, {"tp: 2, pp: 2", 4}}, "");
}

TEST(TrainingLayouts, OfExpertsHaveThemToo) {
  expect_bits_of_cuts({{"tp: 2, ep: 2", 2}}, ", experts: 4");
}

TEST(TrainingLayouts, OfExpertsTellHowBalancedTheyAre) {
  constexpr std::uint32_t kSteps = 6;
  const auto told = [](const std::string& layout, std::uint32_t world) {
    const Training training(kSteps, Training::any_port(), layout, ", experts: 4");
    for (const auto& rank : training.start_all(world)) EXPECT_EQ(rank->end(), 0) << rank->text();
    return training.router_losses();
  };
  const std::vector<double> one = told("verify_every: 2", 2);
  ASSERT_EQ(one.size(), kSteps);
  EXPECT_NEAR(one.front(), 1, 0.2) << "small weights make all experts nearly alike";
  const std::vector<double> parts = told("layout: {tp: 2, pp: 2, ep: 2}", 4);
  ASSERT_EQ(parts.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) EXPECT_NEAR(parts[step], one[step], 1e-3);
}

/// Kills `victim` of `world` ranks at a random moment, and everybody who is left ends well.
void kill_one(const std::string& layout, std::uint32_t world, Rng& rng) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = unbroken(layout, world, kSteps).hash;
  for (std::uint32_t victim = 0; victim < world; ++victim) {
    const Training training(kSteps, Training::any_port(), layout);
    const std::uint64_t step = 1 + rng.below(kSteps - 4);
    const auto later = static_cast<int>(rng.below(8));
    SCOPED_TRACE(testing::Message()
                 << "rank " << victim << " after step " << step << " and " << later << " ms");
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(world);
    ASSERT_TRUE(ranks[0]->says(step_line(step, kSteps))) << ranks[0]->text();
    (void)::poll(nullptr, 0, later);
    ranks[victim]->kill();
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank != victim) ASSERT_EQ(ranks[rank]->end(), 0) << rank << "\n" << ranks[rank]->text();
    }
    ASSERT_EQ(training.hash(), whole);
    const std::vector<double> losses = training.losses();
    EXPECT_EQ(losses.size(), kSteps) << "a line a step, however often it was done";
  }
}

TEST(TrainingLayoutKills, RanksThatAreLeftReadTheNewestCheckpointAndEndWithTheSameBits) {
  Rng rng(static_cast<std::uint64_t>(::getpid()));
  for (const auto* layout : {kZero, kHalves, kBoth, kStages}) kill_one(layout, 4, rng);
  kill_one(kAll, 8, rng);
}

TEST(TrainingLayoutKills, ANewcomerAndWhoWasLeftOverAreAnotherReplica) {
  constexpr std::uint32_t kSteps = 120;
  for (const auto* layout : {kHalves, kBoth, kStages}) {
    const std::string whole = unbroken(layout, 4, kSteps).hash;
    const Training training(kSteps, Training::any_port(), layout);
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(4);
    ASSERT_TRUE(ranks[0]->says(step_line(3, kSteps))) << ranks[0]->text();
    ranks[1]->kill();
    ASSERT_TRUE(ranks[0]->says("\"generation\": 2, \"ranks\": 2")) << ranks[0]->text();
    ASSERT_TRUE(ranks[3]->says("waits until there are enough")) << ranks[3]->text();
    const auto newcomer = training.start(1, 4, 1);
    for (const std::uint32_t rank : {0u, 2u, 3u}) {
      ASSERT_EQ(ranks[rank]->end(), 0) << ranks[rank]->text();
    }
    EXPECT_EQ(newcomer->end(), 0) << newcomer->text();
    EXPECT_NE(ranks[0]->text().find("\"generation\": 3, \"ranks\": 4"), std::string::npos)
        << ranks[0]->text();
    EXPECT_NE(ranks[0]->text().find("before ranks change"), std::string::npos) << ranks[0]->text();
    EXPECT_EQ(training.hash(), whole);
  }
}

TEST(TrainingLayoutKills, WithoutAWholeReplicaTheNextAttemptGoesOn) {
  constexpr std::uint32_t kSteps = 24;
  const std::string whole = unbroken(kHalves, 2, kSteps).hash;
  Training training(kSteps, Training::any_port(), kHalves);
  {
    const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(2);
    ASSERT_TRUE(ranks[0]->says("\"event\": \"checkpoint\"")) << ranks[0]->text();
    ranks[1]->kill();
    EXPECT_EQ(ranks[0]->end(), 1);
    EXPECT_NE(ranks[0]->text().find("1 of the 2 ranks of a replica are left"), std::string::npos)
        << ranks[0]->text();
  }
  training.next_attempt();
  const std::vector<std::unique_ptr<Rank>> ranks = training.start_all(2);
  for (const auto& rank : ranks) ASSERT_EQ(rank->end(), 0) << rank->text();
  EXPECT_NE(ranks[0]->text().find("goes on from step"), std::string::npos) << ranks[0]->text();
  EXPECT_EQ(training.hash(), whole);
}

TEST(TrainingLayouts, GoOnFromWhatAnotherLayoutSaved) {
  constexpr std::uint32_t kSteps = 40;
  const Unbroken one = unbroken("verify_every: 0", 1, kSteps);
  Training training(kSteps, Training::any_port(), "verify_every: 0");
  std::uint32_t world = 1;
  for (const auto* next : {kHalves, kStages, kBoth, kZero, kAll, "verify_every: 0"}) {
    const auto ranks = training.start_all(world);
    const std::uint64_t step = 5 * static_cast<std::uint64_t>(training.attempt());
    ASSERT_TRUE(ranks[0]->says(step_line(step, kSteps))) << ranks[0]->text();
    for (const auto& rank : ranks) rank->kill(SIGTERM);
    for (const auto& rank : ranks) ASSERT_EQ(rank->end(), 128 + SIGTERM) << rank->text();
    training.next_attempt();
    training.lay_out(next);
    world = next == kBoth || next == kAll ? 4 : 2;
  }
  const auto rank = training.start(0, 1);
  EXPECT_EQ(rank->end(), 0) << rank->text();
  const std::vector<double> losses = training.losses();
  ASSERT_EQ(losses.size(), kSteps);
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(losses[step], one.losses[step], 1e-4) << step;
  }
}

TEST(TrainingLayouts, SayWhatDoesNotFitBeforeAnybodyMeets) {
  const auto says = [](const std::string& layout, std::uint32_t world, const std::string& words) {
    const Training training(8, Training::any_port(), layout);
    const auto rank = training.start(0, world);
    EXPECT_EQ(rank->end(), 2) << rank->text();
    EXPECT_NE(rank->text().find(words), std::string::npos) << rank->text();
    EXPECT_NE(rank->text().find("spec.yaml:"), std::string::npos) << rank->text();
  };
  says("layout: {tp: 3}", 3, "layout.tp: 2 heads are not 3 equal parts");
  says("layout: {tp: 0}", 1, "layout.tp: at least 1");
  says("layout: {zero: 2}", 1, "layout.zero: expected 0 or 1, found 2");
  says("layout: {pp: 3}", 3, "layout.pp: 2 layers are not 3 equal stages");
  says("layout: {pp: 0}", 1, "layout.pp: at least 1");
  says("layout: {tp: 2, ep: 2}", 2, "layout.ep: expected 1, found 2: the model has no experts");
  says(kAll, 6, "layout: 6 ranks are no whole number of replicas of 4");
  says(kHalves, 3, "layout: 3 ranks are no whole number of replicas of 2");
  says(kHalves, 10, "batch.shards: 4 shards are too few for 5 replicas");
  says("layout: {tp: 2}\nverify_every: 5", 2, "verify_every: expected 0, found 5");
}

}  // namespace
}  // namespace orrery
