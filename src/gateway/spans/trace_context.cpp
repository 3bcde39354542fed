#include "gateway/spans/trace_context.hpp"

namespace orrery {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kSpanDigits = 16;
constexpr std::size_t kLength = 2 + 1 + kTraceDigits + 1 + kSpanDigits + 1 + 2;

bool is_hex(std::string_view text) {
  return text.find_first_not_of(kDigits) == std::string_view::npos;
}

bool is_id(std::string_view text) {
  return is_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kLength) return std::nullopt;
  const std::string_view version = text.substr(0, 2);
  const std::string_view trace = text.substr(3, kTraceDigits);
  const std::string_view span = text.substr(4 + kTraceDigits, kSpanDigits);
  const std::string_view flags = text.substr(kLength - 2, 2);
  const bool dashes = text[2] == '-' && text[3 + kTraceDigits] == '-' && text[kLength - 3] == '-';
  const bool longer = text.size() > kLength;
  if (!dashes || !is_hex(version) || version == "ff" || !is_id(trace) || !is_id(span)) {
    return std::nullopt;
  }
  if (!is_hex(flags) || (longer && (version == "00" || text[kLength] != '-'))) return std::nullopt;
  const bool sampled = kDigits.find(flags[1]) % 2 == 1;
  return TraceContext{std::string(trace), std::string(span), sampled};
}

std::string traceparent_text(const TraceContext& context) {
  std::string text = "00-";
  text.reserve(kLength);
  text.append(context.trace).append("-").append(context.span);
  text.append(context.sampled ? "-01" : "-00");
  return text;
}

std::string hex_text(std::uint64_t number) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; number >>= 4) text[i] = kDigits[number & 15];
  return text;
}

}  // namespace orrery
