#include "node/machine/openblas_core.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>

namespace orrery {
namespace {

constexpr std::string_view kBlank = " \t";

/// Returns the text after "key :" in the first line of that key.
std::string_view value_of(std::string_view cpuinfo, std::string_view key) {
  while (!cpuinfo.empty()) {
    const std::size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string_view name = line.substr(0, colon);
    if (name.substr(0, name.find_last_not_of(kBlank) + 1) != key) continue;
    const std::string_view value = line.substr(colon + 1);
    return value.substr(std::min(value.find_first_not_of(kBlank), value.size()));
  }
  return "";
}

std::uint32_t number_of(std::string_view cpuinfo, std::string_view key) {
  const std::string_view text = value_of(cpuinfo, key);
  std::uint32_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool has_word(std::string_view words, std::string_view wanted) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == wanted) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// Release 0.3.21 knows the models of family 6 up to 0xaf, and no family from 15 on.
bool is_unknown(std::string_view cpuinfo) {
  constexpr std::uint32_t kModelMax = 0xaf;
  if (value_of(cpuinfo, "vendor_id") != "GenuineIntel") return false;
  const std::uint32_t family = number_of(cpuinfo, "cpu family");
  return family == 6 ? number_of(cpuinfo, "model") > kModelMax : family > 15;
}

}  // namespace

std::string_view openblas_core_type(std::string_view cpuinfo) {
  if (!is_unknown(cpuinfo)) return "";
  const std::string_view flags = value_of(cpuinfo, "flags");
  const auto has_all = [&](std::initializer_list<std::string_view> wanted) {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](std::string_view flag) { return has_word(flags, flag); });
  };
  if (has_all({"avx512f", "avx512bw", "avx512dq", "avx512vl"})) {
    return has_all({"avx512_bf16"}) ? "COOPERLAKE" : "SKYLAKEX";
  }
  return has_all({"avx2", "fma"}) ? "HASWELL" : "";
}

}  // namespace orrery
