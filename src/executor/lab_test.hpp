// executor/lab_test.hpp - the cluster of controller tests: two nodes of eight H100, the built-in
// facts, and logs for tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "control/control_facts.hpp"
#include "perf/facts.hpp"
#include "store/setup_texts.hpp"

namespace orrery {

/// The nodes are "node0" and "node1".
inline constexpr const char* kLabFleet = R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: here
  halls:
  - name: hall
    pods:
    - name: pod
      racks:
      - nodes: [{type: dgx-h100, count: 2, names: "node[0-1]"}]
)";

inline SetupTexts lab_setup(const std::string& tenants = "") {
  return {.fleet = kLabFleet,
          .tenants = tenants,
          .policy = "apiVersion: orrery/v1\nkind: Policy\nname: hardware-aware\n",
          .begin = {},
          .writer = "test"};
}

/// The built-in facts, read once.
inline const Facts& lab_facts() {
  static const Facts kFacts = Facts::load({}).value();
  return kFacts;
}

class SilentLog final : public LogSink {
 public:
  void write_line(std::string_view) override {}
};

/// Keeps the lines of a log.
class CollectedLog final : public LogSink {
 public:
  void write_line(std::string_view line) override { lines.emplace_back(line); }
  /// Returns how often `part` is in the lines.
  [[nodiscard]] std::size_t count(std::string_view part) const {
    std::size_t found = 0;
    for (const std::string& line : lines) {
      for (std::size_t at = 0; (at = line.find(part, at)) != line.npos; ++at) ++found;
    }
    return found;
  }
  /// Returns all lines, for the message of a failure.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  }

  std::vector<std::string> lines;
};

}  // namespace orrery
