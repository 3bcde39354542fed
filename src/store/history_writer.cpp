// store/history_writer.cpp - writes events into batches, and states into snapshots.
#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "base/format/xxh3.hpp"
#include "control/state/snapshot.hpp"
#include "store/history.hpp"

namespace orrery {
namespace {

// Built like the magic of a journal (control/log/journal_frame.cpp): "OSNX" has an XXH3 checksum;
// "OSNP", of earlier versions, is only read, never written.
constexpr std::string_view kMagic{"\x89OSNX\r\n\x1a", 8};
constexpr std::string_view kMagicOfOwnChecksum{"\x89OSNP\r\n\x1a", 8};
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kStateAt = kMagic.size() + kWord;

void add_word(std::string& bytes, std::uint64_t word) {
  bytes.resize(bytes.size() + kWord);
  store_little_endian(word, bytes.data() + bytes.size() - kWord);
}

}  // namespace

HistoryWriter::HistoryWriter(HistoryWriterOptions options)
    : options_(std::move(options)), sink_(std::make_unique<Sink>()) {
  journal_ = std::make_unique<Journal>(JournalOptions{.writer = options_.writer,
                                                      .setup = options_.setup,
                                                      .before = options_.before,
                                                      .sink = sink_.get()});
}

void HistoryWriter::append(Instant at, std::span<const Event> events) {
  for (const Event& event : events) journal_->append(at, event);
}

std::string HistoryWriter::take() { return std::exchange(sink_->bytes, {}); }

std::string HistoryWriter::snapshot(const State& state) const {
  ORRERY_ASSERT(sink_->bytes.empty(), "a snapshot covers whole batches");
  return seal_snapshot(history_hash(), snapshot_of(state));
}

void HistoryWriter::begin_segment() {
  journal_ = std::make_unique<Journal>(JournalOptions{.writer = options_.writer,
                                                      .setup = options_.setup,
                                                      .before = history_hash(),
                                                      .sink = sink_.get()});
}

std::string seal_snapshot(std::uint64_t history_hash, std::string_view state) {
  std::string bytes(kMagic);
  bytes.reserve(kStateAt + state.size() + kWord);
  add_word(bytes, history_hash);
  bytes += state;
  add_word(bytes, xxh3(bytes));
  return bytes;
}

Result<OpenedSnapshot> open_snapshot(std::string_view bytes) {
  const bool own = bytes.starts_with(kMagicOfOwnChecksum);
  if ((!own && !bytes.starts_with(kMagic)) || bytes.size() < kStateAt + kWord) {
    return environment_error("expected the head of a snapshot");
  }
  const std::string_view sealed = bytes.substr(0, bytes.size() - kWord);
  const auto found = load_little_endian<std::uint64_t>(sealed.data() + sealed.size());
  if (const std::uint64_t expected = own ? checksum(sealed, 0) : xxh3(sealed); found != expected) {
    return environment_error(
        fmt::format("it is damaged: expected checksum {:016x}, found {:016x}", expected, found));
  }
  return OpenedSnapshot{load_little_endian<std::uint64_t>(bytes.data() + kMagic.size()),
                        sealed.substr(kStateAt)};
}

}  // namespace orrery
