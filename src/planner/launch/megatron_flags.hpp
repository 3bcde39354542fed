// planner/launch/megatron_flags.hpp - a plan and its model as the command of Megatron-LM's
// pretrain_gpt.py.
//
// Argument names, choices and rules are those of NVIDIA/Megatron-LM at commit d98e8a6 (22 August
// 2026); tests/launchers/megatron.yaml lists them, and every emitted command is checked against it.
// Pure.
#pragma once

#include <string>

#include "base/error.hpp"
#include "planner/launch/launch_flags.hpp"

namespace orrery {

/// A shell script of one command, which every node runs. What is not part of a plan (data,
/// tokenizer, address of the first node) is a variable that the shell requires. Errors
/// (infeasible): a plan, a task or an architecture for which pretrain_gpt.py has no option.
[[nodiscard]] Result<std::string> megatron_command(const Launch& launch);

}  // namespace orrery
