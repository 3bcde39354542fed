#include "node/progress_stream.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "serving/routing/route_table.hpp"

namespace orrery {
namespace {

template <class Number>
bool read_natural(const nlohmann::json& object, const char* key, std::optional<Number>& out) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_number_unsigned() ||
      found->template get<std::uint64_t>() > std::numeric_limits<Number>::max()) {
    return false;
  }
  out = found->template get<Number>();
  return true;
}

bool read_seconds(const nlohmann::json& object, const char* key, std::optional<double>& out) {
  constexpr double kSecondsMax = 1e9;
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_number()) return false;
  out = found->get<double>();
  return *out >= 0 && *out <= kSecondsMax;
}

bool read_text(const nlohmann::json& object, const char* key, std::optional<std::string>& out) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_string()) return false;
  out = found->get<std::string>();
  return true;
}

/// Takes a number that is not negative; absent: it stays.
bool read_pace(const nlohmann::json& object, const char* key, double& out) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_number()) return false;
  out = found->get<double>();
  return out >= 0 && out <= std::numeric_limits<float>::max();
}

std::optional<ReplicaReport> replica_of(const nlohmann::json& object) {
  ReplicaReport report;
  std::optional<std::string> phase;
  std::optional<std::string> endpoint;
  std::optional<std::uint64_t> pid;
  std::optional<std::uint32_t> slots;
  std::optional<std::uint64_t> kv_tokens;
  std::optional<std::string> kv_events;
  if (!object.is_object() || !read_text(object, "phase", phase) || !phase ||
      !read_text(object, "endpoint", endpoint) || !read_natural(object, "pid", pid) ||
      !read_natural(object, "slots", slots) || !read_natural(object, "kv_tokens", kv_tokens) ||
      !read_text(object, "kv_events", kv_events) ||
      (kv_events && !kv_events->empty() && !has_port(*kv_events)) ||
      !read_pace(object, "prefill_tokens_s", report.pace.prefill_tokens_s) ||
      !read_pace(object, "step_s", report.pace.step_s) ||
      !read_pace(object, "step_full_s", report.pace.step_full_s)) {
    return std::nullopt;
  }
  const auto words = enum_words(ReplicaPhase());
  const auto* const word = std::ranges::find(words, *phase, &EnumWord<ReplicaPhase>::word);
  if (word == words.end() || (word->value == ReplicaPhase::kReady && !endpoint)) {
    return std::nullopt;
  }
  report.phase = word->value;
  report.endpoint = endpoint.value_or("");
  report.pid = pid.value_or(0);
  report.slots = slots.value_or(0);
  report.kv_tokens = kv_tokens.value_or(0);
  report.kv_events = kv_events.value_or("");
  return report;
}

std::optional<ProgressLine> parse(std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  ProgressLine line;
  if (!read_seconds(object, "compute", line.compute) ||
      !read_seconds(object, "quiet", line.quiet)) {
    return std::nullopt;
  }
  if (!read_natural(object, "step", line.step) || !read_natural(object, "tokens", line.tokens) ||
      !read_natural(object, "epoch", line.epoch) || !read_natural(object, "rank", line.rank)) {
    return std::nullopt;
  }
  if (const auto loss = object.find("loss"); loss != object.end()) {
    if (!loss->is_number()) return std::nullopt;
    line.loss = loss->get<double>();
  }
  if (!read_text(object, "checkpoint", line.checkpoint) ||
      !read_text(object, "wrong", line.wrong)) {
    return std::nullopt;
  }
  if (const auto replica = object.find("replica"); replica != object.end()) {
    line.replica = replica_of(*replica);
    if (!line.replica) return std::nullopt;
  }
  return line;
}

}  // namespace

void ProgressParser::feed(std::string_view bytes,
                          const std::function<void(const ProgressLine&)>& take) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t room = kLineBytesMax + 1 - line_.size();
    line_ += bytes.substr(0, std::min(end, room));
    if (end == bytes.npos) return;
    bytes.remove_prefix(end + 1);
    if (!line_.empty()) {
      const std::optional<ProgressLine> line =
          line_.size() > kLineBytesMax ? std::nullopt : parse(line_);
      line ? take(*line) : static_cast<void>(++bad_);
    }
    line_.clear();
  }
}

Result<std::unique_ptr<ProgressStream>> ProgressStream::open(RealLoop& loop,
                                                             const std::string& path, Take take) {
  const auto failed = [&](const char* what) {
    return environment_error(
        fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(errno)));
  };
  (void)::unlink(path.c_str());
  if (::mkfifo(path.c_str(), 0600) != 0) return failed("make a named pipe");
  // Opened for writing, too: so it never reads an end, and ranks that open it never wait.
  FileDescriptor pipe(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!pipe.valid()) return failed("open the named pipe");
  const int fd = pipe.get();
  auto stream = std::make_unique<ProgressStream>(loop, std::move(pipe), std::move(take));
  const Result<WatchId> watch = loop.watch(fd, EPOLLIN, *stream);
  if (!watch) return tl::unexpected(watch.error());
  stream->watch_ = *watch;
  return stream;
}

ProgressStream::ProgressStream(RealLoop& loop, FileDescriptor pipe, Take take)
    : loop_(loop), pipe_(std::move(pipe)), take_(std::move(take)) {}

ProgressStream::~ProgressStream() {
  if (watch_ != WatchId::kNone) loop_.unwatch(watch_);
}

void ProgressStream::on_ready(std::uint32_t) { drain(); }

void ProgressStream::drain() {
  // Reads as much as a pipe holds at once; more waits for the next round of the loop.
  std::array<char, std::size_t{64} << 10> chunk;
  const ssize_t got = ::read(pipe_.get(), chunk.data(), chunk.size());
  if (got > 0) parser_.feed({chunk.data(), static_cast<std::size_t>(got)}, take_);
}

}  // namespace orrery
