#include "adapter/prometheus_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace orrery {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }

bool in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

/// One line, read from its beginning.
class SampleReader {
 public:
  explicit SampleReader(std::string_view line) : rest_(line) {}

  std::optional<MetricSample> read() {
    MetricSample sample;
    sample.name = name();
    skip_spaces();
    if (sample.name.empty() || !read_labels(sample)) return std::nullopt;
    skip_spaces();
    const std::optional<double> value = number();
    if (!value) return std::nullopt;
    sample.value = *value;
    return sample;
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view name() {
    std::size_t size = 0;
    while (size < rest_.size() && in_name(rest_[size])) ++size;
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }

  bool read_labels(MetricSample& sample) {
    if (!take('{')) return true;
    skip_spaces();
    while (!take('}')) {
      const std::string_view key = name();
      skip_spaces();
      if (key.empty() || !take('=')) return false;
      skip_spaces();
      std::optional<std::string> value = quoted();
      if (!value) return false;
      sample.labels.emplace_back(key, *std::move(value));
      skip_spaces();
      if (!take(',') && (rest_.empty() || rest_.front() != '}')) return false;
      skip_spaces();
    }
    return true;
  }

  std::optional<std::string> quoted() {
    if (!take('"')) return std::nullopt;
    std::string text;
    while (!rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return text;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (rest_.empty()) return std::nullopt;
      text += rest_.front() == 'n' ? '\n' : rest_.front();
      rest_.remove_prefix(1);
    }
    return std::nullopt;
  }

  /// A number that a space or the end follows.
  std::optional<double> number() {
    const std::size_t end = std::min(rest_.find_first_of(" \t"), rest_.size());
    std::string_view text = rest_.substr(0, end);
    if (text.starts_with('+')) text.remove_prefix(1);
    double value = 0;
    const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = failed == std::errc() && stop == text.data() + text.size();
    if (text.empty() || !whole || std::isnan(value)) return std::nullopt;
    return value;
  }

  std::string_view rest_;
};

}  // namespace

std::string_view MetricSample::label(std::string_view wanted) const {
  const auto found = std::ranges::find(labels, wanted, [](const auto& each) { return each.first; });
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

std::uint64_t read_prometheus(std::string_view text,
                              const std::function<void(const MetricSample&)>& take) {
  std::uint64_t bad = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    if (line.empty() || line.front() == '#') continue;
    if (const std::optional<MetricSample> sample = SampleReader(line).read()) {
      take(*sample);
    } else {
      ++bad;
    }
  }
  return bad;
}

}  // namespace orrery
