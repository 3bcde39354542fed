#include "gateway/stream/event_scanner.hpp"

#include <algorithm>

namespace orrery {
namespace {

/// What is kept of a line; longer ones hold neither usage nor errors.
constexpr std::size_t kLineMax = std::size_t{1} << 20;

/// Where lines of some bytes end. Each byte is searched once for LF and once for CR.
class LineEnds {
 public:
  explicit LineEnds(std::string_view bytes)
      : bytes_(bytes), feed_(bytes.find('\n')), carriage_(bytes.find('\r')) {}

  /// The first LF or CR from a byte on; npos: none. Precondition: no call before had a later byte.
  std::size_t next(std::size_t from) {
    if (feed_ < from) feed_ = bytes_.find('\n', from);
    if (carriage_ < from) carriage_ = bytes_.find('\r', from);
    return std::min(feed_, carriage_);
  }

 private:
  std::string_view bytes_;
  std::size_t feed_;
  std::size_t carriage_;
};

}  // namespace

std::size_t EventScanner::scan(std::string_view bytes) {
  std::size_t whole = 0;
  std::size_t at = 0;
  if (after_return_ && !bytes.empty() && bytes.front() == '\n') {
    at = 1;
    whole = line_.empty() ? 1 : 0;
  }
  after_return_ = false;
  LineEnds ends(bytes);
  while (at < bytes.size()) {
    const std::size_t end = ends.next(at);
    if (end == bytes.npos) break;
    const std::string_view part = bytes.substr(at, end - at);
    at = end + 1;
    if (bytes[end] == '\r') {
      if (at < bytes.size() && bytes[at] == '\n') {
        ++at;
      } else {
        after_return_ = at == bytes.size();
      }
    }
    if (line_.empty() && part.empty()) {
      whole = at;
    } else if (line_.empty()) {
      read_line(part);
    } else {
      line_.append(part.substr(0, kLineMax - std::min(kLineMax, line_.size())));
      read_line(line_);
      line_.clear();
    }
  }
  const std::string_view rest = bytes.substr(std::min(at, bytes.size()));
  line_.append(rest.substr(0, kLineMax - std::min(kLineMax, line_.size())));
  return whole;
}

void EventScanner::drop_rest() {
  line_.clear();
  after_return_ = false;
}

void EventScanner::read_line(std::string_view line) {
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return;
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
    return;
  }
  ++chunks_;
  if (holds_error(line)) failed_ = true;
  const TokenUsage usage = find_usage(line);
  if (usage.known == TokenUsage::Known::kYes) usage_ = usage;
}

}  // namespace orrery
