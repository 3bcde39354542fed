#include "workload/slurm/sbatch_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

std::optional<std::uint64_t> natural(std::string_view text, std::uint64_t max) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = failed == std::errc() && end == text.data() + text.size();
  return whole && number <= max ? std::optional(number) : std::nullopt;
}

tl::unexpected<Error> expected(std::string_view text, std::string_view what) {
  return input_error({}, fmt::format("\"{}\": expected {}", printable(text, 60), what));
}

/// Fields between separators, at most four.
std::vector<std::string_view> fields_of(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  fields.reserve(4);
  for (std::size_t begin = 0; fields.size() < 4;) {
    const std::size_t end = text.find(separator, begin);
    fields.push_back(text.substr(begin, end - begin));
    if (end == text.npos) break;
    begin = end + 1;
  }
  return fields;
}

constexpr std::uint64_t kCountMax = 1u << 20;

/// One part of an array: "7", "3-5", "8-16:4".
Status add_numbers(std::string_view part, std::set<std::uint32_t>& seen, SbatchArray& array) {
  constexpr std::uint64_t kNumberMax = 4'000'000;  // of Slurm
  constexpr std::size_t kNumbersMax = 100'000;
  const std::size_t mark = part.find(':');
  const std::string_view range = part.substr(0, mark);
  const std::size_t dash = range.find('-');
  const auto first = natural(range.substr(0, dash), kNumberMax);
  const auto last = dash == range.npos ? first : natural(range.substr(dash + 1), kNumberMax);
  const auto step = mark == part.npos ? std::optional<std::uint64_t>(1)
                                      : natural(part.substr(mark + 1), kNumberMax);
  const bool well = first && last && *first <= *last && step && *step > 0 &&
                    (dash != range.npos || mark == part.npos);
  if (!well) return expected(part, "numbers like 1,3-5,8-16:4");
  array.step = static_cast<std::uint32_t>(*step);
  if ((*last - *first) / *step + seen.size() >= kNumbersMax) {
    return expected(part, "at most 100,000 numbers");
  }
  for (std::uint64_t number = *first; number <= *last; number += *step) {
    const auto each = static_cast<std::uint32_t>(number);
    if (!seen.insert(each).second) return expected(part, fmt::format("{} once", each));
    array.numbers.push_back(each);
  }
  return {};
}

}  // namespace

Result<std::uint32_t> sbatch_count(std::string_view text) {
  const auto count = natural(text, kCountMax);
  if (count && *count > 0) return static_cast<std::uint32_t>(*count);
  return expected(text, "a whole number from 1 to 1,048,576");
}

Result<std::optional<Seconds>> sbatch_time(std::string_view text) {
  constexpr std::uint64_t kFieldMax = 100'000'000;
  const auto wrong = [&] { return expected(text, "a time like 90, 1:30:00 or 2-12:00:00"); };
  const std::string word = lower_case(text);
  if (word == "infinite" || word == "unlimited") return std::nullopt;
  const std::size_t dash = text.find('-');
  const auto days = dash == text.npos ? std::optional<std::uint64_t>(0)
                                      : natural(text.substr(0, dash), kFieldMax);
  const auto fields = fields_of(dash == text.npos ? text : text.substr(dash + 1), ':');
  if (!days || fields.size() > 3) return wrong();
  std::vector<std::uint64_t> numbers;
  numbers.reserve(fields.size());
  for (const std::string_view field : fields) {
    const auto number = natural(field, kFieldMax);
    if (!number) return wrong();
    numbers.push_back(*number);
  }
  // With days the fields count from the hours down, without from the seconds up, except a single
  // one.
  std::uint64_t seconds = *days * 86'400;
  const bool from_hours = dash != text.npos || numbers.size() == 3;
  std::uint64_t unit = from_hours ? 3600 : 60;
  for (const std::uint64_t number : numbers) {
    seconds += number * unit;
    unit /= 60;
  }
  if (seconds == 0) return std::nullopt;
  return Seconds(static_cast<double>(seconds));
}

Result<Bytes> sbatch_memory(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const auto wrong = [&] { return expected(text, "a size like 4000 (MiB), 64G or 1T"); };
  std::string_view digits = text;
  if (digits.ends_with('B') || digits.ends_with('b')) digits.remove_suffix(1);
  std::size_t unit = 1;
  if (!digits.empty() && (digits.back() < '0' || digits.back() > '9')) {
    unit = kUnits.find(static_cast<char>(digits.back() & ~0x20));
    if (unit == kUnits.npos) return wrong();
    digits.remove_suffix(1);
  } else if (digits.size() != text.size()) {
    return wrong();
  }
  const auto number = natural(digits, std::uint64_t{1} << 40);
  if (!number) return wrong();
  const auto scale = static_cast<double>(std::uint64_t{1024} << (10 * unit));
  return Bytes(static_cast<double>(*number) * scale);
}

Result<SbatchNodes> sbatch_nodes(std::string_view text) {
  const std::size_t dash = text.find('-');
  const Result<std::uint32_t> min = sbatch_count(text.substr(0, dash));
  const Result<std::uint32_t> max = dash == text.npos ? min : sbatch_count(text.substr(dash + 1));
  if (!min || !max || *min > *max) return expected(text, "nodes like 2 or 2-4");
  return SbatchNodes{*min, *max};
}

Result<SbatchGpus> sbatch_gpus(std::string_view text) {
  const auto fields = fields_of(text, ':');
  const auto last = natural(fields.back(), kCountMax);
  const bool type_alone = fields.size() == 1 && !last && !text.empty();
  if (type_alone && text.find(',') == text.npos) return SbatchGpus{std::string(text), 1};
  const bool typed = fields.size() == 2 && !fields[0].empty();
  if (!last || *last == 0 || !(fields.size() == 1 || typed)) {
    return expected(text, "GPUs of one type like 4, a100:4 or a100");
  }
  return SbatchGpus{typed ? std::string(fields[0]) : "", static_cast<std::uint32_t>(*last)};
}

Result<SbatchArray> sbatch_array(std::string_view text) {
  SbatchArray array;
  if (const std::size_t limit = text.find('%'); limit != text.npos) {
    const Result<std::uint32_t> parallel = sbatch_count(text.substr(limit + 1));
    if (!parallel) return tl::unexpected(parallel.error());
    array.parallel = *parallel;
    text = text.substr(0, limit);
  }
  std::set<std::uint32_t> seen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (Status added = add_numbers(text.substr(begin, end - begin), seen, array); !added) {
      return forward_error(added);
    }
    begin = end + 1;
  }
  return array;
}

}  // namespace orrery
