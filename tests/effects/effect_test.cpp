// What keys and options change: each line of tests/effects/*.txt is played twice, with and without
// its text, and the output must differ. effects.txt tells how a line is written.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace orrery {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = text.find_first_not_of(' ', begin);
    if (end > begin && first < end) parts.push_back(text.substr(first, end - first));
    begin = end + separator.size();
  }
  return parts;
}

/// One line of a file of effects.
struct EffectLine {
  std::string name;     ///< of the key or option
  std::string stage;    ///< file of commands and files with slots, STAGE.stage
  std::string slot;     ///< "job" fills "$@job"
  std::string with;     ///< what fills it; " ; " stands for a new line
  std::string without;  ///< what fills it the other time
};

/// Fills the slots of a stage. "$@NAME" inside a line is replaced. A line "$@NAME|DEFAULT" stands
/// for as many lines as its value has, at the same depth; without a value, for DEFAULT or nothing.
std::string filled(const std::string& text, const std::string& slot, const std::string& value) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    const std::size_t mark = line.find("$@");
    if (mark == std::string::npos) {
      out += line + "\n";
      continue;
    }
    const std::size_t end = std::min(line.find_first_of(" ]}|", mark), line.size());
    const std::string before = line.substr(0, mark);
    const bool mine = line.substr(mark + 2, end - mark - 2) == slot;
    const bool whole = end == line.size() || line[end] == '|';
    if (!whole || before.find_first_not_of(' ') != std::string::npos) {
      out += before + (mine ? value : "") + line.substr(end) + "\n";
      continue;
    }
    const std::string given = mine ? value : "";
    const std::string rest = end < line.size() ? line.substr(end + 1) : "";
    for (const std::string& each : split(given.empty() ? rest : given, " ; ")) {
      out += before + each + "\n";
    }
  }
  return out;
}

struct Outcome {
  int code = 0;
  std::string output;
};

/// Runs a command in a directory, with the programs of the build in its PATH; $source is this
/// source tree, $shared what the stage's plays share. One that hangs is ended.
Outcome run_in(const fs::path& directory, const std::string& shared, const std::string& command) {
  constexpr int kSecondsMax = 120;
  std::ofstream(directory / ".command", std::ios::binary) << command << '\n';
  const std::string line = fmt::format(
      "cd {0} && export PATH={1}:$PATH source={2} shared={3} && timeout -k 5 {4} sh .command "
      ">.out 2>&1 </dev/null",
      directory.string(), fs::path(ORRERY_PROGRAM).parent_path().string(), ORRERY_SOURCE_DIR,
      shared, kSecondsMax);
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(directory / ".out")};
}

/// What all plays of a stage share, such as a cluster: STAGE.setup is run before the first play and
/// STAGE.teardown after the last, in a directory of their own.
class SharedStages {
 public:
  SharedStages() = default;
  SharedStages(const SharedStages&) = delete;
  SharedStages& operator=(const SharedStages&) = delete;
  ~SharedStages() {
    for (const auto& [stage, directory] : directories_) {
      (void)run_in(directory, directory.string(), ". " + script(stage, "teardown").string());
      fs::remove_all(directory);
    }
  }

  /// The directory; "/nonexistent" for a stage that shares nothing.
  fs::path directory_of(const std::string& stage) {
    if (!fs::exists(script(stage, "setup"))) return "/nonexistent";
    const auto [at, is_new] = directories_.try_emplace(
        stage, fs::temp_directory_path() / fmt::format("effects-{}-{}", stage, getpid()));
    if (is_new) {
      fs::remove_all(at->second);
      fs::create_directory(at->second);
      const Outcome set_up =
          run_in(at->second, at->second.string(), ". " + script(stage, "setup").string());
      EXPECT_EQ(set_up.code, 0) << stage << ".setup: " << set_up.output;
    }
    return at->second;
  }

 private:
  [[nodiscard]] static fs::path script(const std::string& stage, std::string_view suffix) {
    return fmt::format("{}/tests/effects/{}.{}", ORRERY_SOURCE_DIR, stage, suffix);
  }

  std::map<std::string, fs::path> directories_;
};

SharedStages& shared_stages() {
  static SharedStages stages;
  return stages;
}

/// A line, played.
class Effect : public testing::TestWithParam<EffectLine> {
 protected:
  /// Runs the stage's command, its first line, in a directory with the stage's files.
  [[nodiscard]] Outcome play(const std::string& value) const {
    const EffectLine& effect = GetParam();
    const fs::path directory = fs::temp_directory_path() / fmt::format("effect-{}", getpid());
    fs::remove_all(directory);
    fs::create_directory(directory);
    const std::string stage =
        contents(fmt::format("{}/tests/effects/{}.stage", ORRERY_SOURCE_DIR, effect.stage));
    const std::vector<std::string> parts = split(filled(stage, effect.slot, value), "--- ");
    EXPECT_FALSE(parts.empty()) << effect.stage << ".stage is empty or missing";
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::size_t end = parts[i].find('\n');
      const fs::path file = directory / parts[i].substr(0, end);
      fs::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << parts[i].substr(end + 1);
    }
    const std::string command = parts.empty() ? "false" : parts[0].substr(0, parts[0].find('\n'));
    const Outcome outcome =
        run_in(directory, shared_stages().directory_of(effect.stage).string(), command);
    fs::remove_all(directory);
    return outcome;
  }
};

/// "orrery plan --top" as a name that gtest takes: "orrery_plan___top"; "orrery-serve --model" as
/// "orreryserve___model", beside "orrery serve --model".
std::string test_name(std::string name) {
  if (name.starts_with("orrery-")) name.erase(name.find('-'), 1);
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
}

std::vector<EffectLine> read_effects() {
  std::vector<fs::path> files;
  for (const fs::directory_entry& each : fs::directory_iterator(ORRERY_SOURCE_DIR "/tests/effects"))
    if (each.path().extension() == ".txt") files.push_back(each.path());
  std::sort(files.begin(), files.end());
  std::vector<EffectLine> effects;
  for (const fs::path& file : files) {
    std::istringstream lines(contents(file));
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.front() == '#') continue;
      std::vector<std::string> parts = split(line, "  ");
      parts.resize(5);
      effects.push_back({parts[0], parts[1], parts[2], parts[3], parts[4]});
    }
  }
  return effects;
}

TEST_P(Effect, Of) {
  const Outcome with = play(GetParam().with);
  const Outcome without = play(GetParam().without);
  EXPECT_NE(with.code, 2) << GetParam().with << " is refused as input:\n" << with.output;
  const bool same = with.code == without.code && with.output == without.output;
  EXPECT_FALSE(same) << GetParam().name << " changes nothing:\n" << with.output.substr(0, 2000);
}

INSTANTIATE_TEST_SUITE_P(, Effect, testing::ValuesIn(read_effects()),
                         [](const auto& line) { return test_name(line.param.name); });

}  // namespace
}  // namespace orrery
