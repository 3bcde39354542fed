// executor/lab_test.hpp - the cluster of controller tests: two nodes of eight H100, the built-in
// facts, a log without output.
#pragma once

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

}  // namespace orrery
