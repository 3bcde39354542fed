// verbs/local/program_log.hpp - the output of a program that was started in the background.
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

/// Returns the size of a file in bytes; 0: there is none.
[[nodiscard]] std::uint64_t file_size(const std::string& path);

/// Returns the log from byte `size` on, to show why a program ended: first its last message about
/// itself ("orreryd: .."), then the lines before.
[[nodiscard]] std::string log_since(const std::string& path, std::uint64_t size);

}  // namespace orrery
