// bench/command_output.hpp - what a command prints, for benches.
#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <string>

namespace orrery {

/// Returns the output of a shell command; none: it failed.
inline std::optional<std::string> command_output(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string all;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    all.append(part.data(), got);
  }
  if (::pclose(pipe) != 0) return std::nullopt;
  return all;
}

}  // namespace orrery
