// Golden scenarios of the scheduler: each YAML file of this directory is played, and its log must
// be, line by line, the one beside it. With --update the logs are written anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/scenarios/scenario.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

enum class Logs { kCompared, kWritten };

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class GoldenScenario : public testing::Test {
 public:
  GoldenScenario(fs::path path, Logs logs) : path_(std::move(path)), logs_(logs) {}

  void TestBody() override {
    const Result<ScenarioSpec> spec = load_scenario(path_.string());
    ASSERT_TRUE(spec) << spec.error().text();
    const Result<ScenarioOutcome> outcome = play(*spec, ORRERY_SOURCE_DIR);
    ASSERT_TRUE(outcome) << outcome.error().text();
    for (const std::string& what : outcome->broken) ADD_FAILURE() << "broken: " << what;
    fs::path log = path_;
    log.replace_extension(".log");
    if (logs_ == Logs::kWritten) {
      std::ofstream(log, std::ios::binary) << outcome->log;
      return;
    }
    compare(lines_of(contents(log)), lines_of(outcome->log));
  }

 private:
  static void compare(const std::vector<std::string>& expected,
                      const std::vector<std::string>& found) {
    for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
      const std::string want = i < expected.size() ? expected[i] : "(the end)";
      const std::string have = i < found.size() ? found[i] : "(the end)";
      ASSERT_EQ(want, have) << "line " << i + 1 << " of the log";
    }
  }

  fs::path path_;
  Logs logs_;
};

/// Names of files are names of tests.
void register_scenarios(Logs logs) {
  std::vector<fs::path> paths;
  for (const auto& entry :
       fs::directory_iterator(std::string(ORRERY_SOURCE_DIR) + "/tests/scenarios")) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    const auto make = [path, logs]() -> testing::Test* {
      return std::make_unique<GoldenScenario>(path, logs).release();  // GoogleTest owns it
    };
    testing::RegisterTest("Scenario", path.stem().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          make);
  }
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const bool update = argc > 1 && std::string_view(argv[1]) == "--update";
  orrery::register_scenarios(update ? orrery::Logs::kWritten : orrery::Logs::kCompared);
  return RUN_ALL_TESTS();
}
