// workload/slurm/output_pattern.hpp - names of files for the output of ranks, with the patterns of
// Slurm.
//
// %j number of the job, %x its name, %A number of its array's first job (or its own), %a place in
// the array, %t rank, %N node, %u user, %% a percent sign. Digits behind the percent sign pad a
// number with zeros: %4t. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace orrery {

/// What is wrong with a pattern; empty: nothing.
[[nodiscard]] std::string output_pattern_complaint(std::string_view pattern);

/// Whether the pattern names another file for each rank.
[[nodiscard]] bool names_each_rank(std::string_view pattern);

struct PatternValue {
  char letter = 0;
  std::string value;
};

/// Replaces the letters that have a value and leaves the others as they are, for a later call with
/// their values. Precondition: output_pattern_complaint() had none.
[[nodiscard]] std::string with_pattern_values(std::string_view pattern,
                                              std::span<const PatternValue> values);

/// The file's name: replaces the last letters, and %% by %. What is still unknown becomes empty.
[[nodiscard]] std::string output_file_name(std::string_view pattern,
                                           std::span<const PatternValue> values);

}  // namespace orrery
