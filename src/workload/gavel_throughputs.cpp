#include "workload/gavel_throughputs.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/format/gzip.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

// "('ResNet-18 (batch size 16)', 2)": a tuple as Python prints it.
std::optional<GavelThroughputs::Work> parse_key(std::string_view key) {
  constexpr std::string_view kOpen = "('";
  constexpr std::string_view kBetween = "', ";
  const std::size_t between = key.rfind(kBetween);
  if (!key.starts_with(kOpen) || !key.ends_with(')') || between == key.npos ||
      between <= kOpen.size()) {
    return std::nullopt;
  }
  GavelThroughputs::Work work{key.substr(kOpen.size(), between - kOpen.size())};
  const char* const begin = key.data() + between + kBetween.size();
  const char* const end = key.data() + key.size() - 1;
  const auto [stop, code] = std::from_chars(begin, end, work.scale);
  if (code != std::errc() || stop != end || work.scale == 0) return std::nullopt;
  return work;
}

Result<double> read_alone(const DocumentNode& node) {
  Result<double> value = read_number(node);
  if (!value) return value;
  if (std::isfinite(*value) && *value >= 0) return value;
  return input_error(node.position(),
                     fmt::format("{} steps/s, expected a number from 0", node.shown()));
}

}  // namespace

Result<GavelThroughputs> GavelThroughputs::read(std::string_view bytes, const std::string& file) {
  std::string inflated;
  if (is_gzip(bytes)) {
    Result<std::string> text = gunzip(bytes, Document::kSizeMax);
    if (!text) return input_error({file, 0, 0}, std::move(text.error().message));
    inflated = std::move(*text);
    bytes = inflated;
  }
  const Result<Document> document = Document::parse(bytes, file);
  if (!document) return tl::unexpected<Error>(document.error());
  const DocumentNode root = document->root();
  if (root.kind() != NodeKind::kMapping) {
    return input_error(root.position(), "expected a mapping of accelerators to throughputs");
  }
  GavelThroughputs throughputs;
  for (const auto& [accelerator, types] : root.entries()) {
    ByType& by_type = throughputs.by_accelerator_[std::string(accelerator.text())];
    for (const auto& [key, measured] : types.entries()) {
      const std::optional<Work> work = parse_key(key.text());
      if (!work) {
        return input_error(key.position(),
                           fmt::format("\"{}\" is not a job type, expected \"('TYPE', SCALE)\"",
                                       printable(key.text(), 60)));
      }
      for (const auto& [beside, value] : measured.entries()) {
        if (beside.text() != "null") continue;
        Result<double> alone = read_alone(value);
        if (!alone) return forward_error(alone);
        by_type[{std::string(work->type), work->scale}] = *alone;
      }
    }
  }
  return throughputs;
}

Result<GavelThroughputs> GavelThroughputs::load(const std::string& path) {
  Result<std::string> bytes = read_file(path, Document::kSizeMax);
  if (!bytes) return forward_error(bytes);
  return read(*bytes, path == "-" ? "<stdin>" : path);
}

std::optional<double> GavelThroughputs::steps_per_second(std::string_view accelerator,
                                                         const Work& work) const {
  const auto by_type = by_accelerator_.find(accelerator);
  if (by_type == by_accelerator_.end()) return std::nullopt;
  const auto found = by_type->second.find(std::pair(work.type, work.scale));
  if (found == by_type->second.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> GavelThroughputs::accelerators() const {
  std::vector<std::string> names;
  names.reserve(by_accelerator_.size());
  for (const auto& [accelerator, types] : by_accelerator_) names.push_back(accelerator);
  return names;
}

std::optional<Duration> GavelThroughputs::run_time(std::string_view accelerator,
                                                   const TraceJob& job) const {
  const std::optional<double> rate =
      steps_per_second(accelerator, {.type = job.model, .scale = job.accelerators});
  if (!rate || *rate <= 0) return std::nullopt;
  return Duration::from_seconds(static_cast<double>(job.steps) / *rate);
}

}  // namespace orrery
