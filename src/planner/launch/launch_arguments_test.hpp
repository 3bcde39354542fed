// planner/launch/launch_arguments_test.hpp - what the launchers accept, for tests: the lists of
// tests/launchers, a reader of emitted commands, and the rules of Megatron-LM's argument checks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// A list of tests/launchers.
struct LauncherArguments {
  std::set<std::string> switches;
  std::set<std::string> integers;
  std::set<std::string> numbers;
  std::set<std::string> texts;
  std::map<std::string, std::set<std::string>> words;
  std::set<std::string> keys;  ///< of a configuration, dotted
};

[[nodiscard]] LauncherArguments launcher_arguments(const std::string& name);

/// A command of torchrun as the shell would split it, variables left as they stand.
struct TorchrunCall {
  std::map<std::string, std::string> options;  ///< of torchrun itself
  std::map<std::string, std::string> flags;    ///< of the program; "" for a switch
  std::vector<std::string> wrong;              ///< what could not be read

  [[nodiscard]] bool has(const std::string& name) const { return flags.contains(name); }
  [[nodiscard]] const std::string& text(const std::string& name) const;
  /// 0 where it is absent, or no number.
  [[nodiscard]] double number(const std::string& name, double otherwise = 0) const;
};

[[nodiscard]] TorchrunCall read_torchrun(const std::string& script);

/// Unknown arguments and values of a wrong type or choice, one sentence each.
[[nodiscard]] std::vector<std::string> wrong_arguments(const TorchrunCall& call,
                                                       const LauncherArguments& known);

/// Broken rules of Megatron-LM, one sentence each: megatron/training/arguments.py (validate_args)
/// and TransformerConfig.__post_init__ at the commit that tests/launchers/megatron.yaml names.
[[nodiscard]] std::vector<std::string> broken_megatron_rules(const TorchrunCall& call);

/// Parameters of the architecture the flags describe, without norms and biases.
[[nodiscard]] double megatron_parameters(const TorchrunCall& call);

/// The switches of "[0]*3+[1]*58".
[[nodiscard]] std::vector<int> megatron_pattern(const std::string& text);

/// Layers of each virtual stage, chunk by chunk over the pipeline ranks; empty where the flags
/// describe no valid pipeline.
[[nodiscard]] std::vector<int> megatron_stages(const TorchrunCall& call);

}  // namespace orrery
