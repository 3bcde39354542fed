// control/log/journal_frame.cpp - writes frames, and distinguishes good, torn and damaged ones.
#include "control/log/journal_frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"
#include "base/format/little_endian.hpp"
#include "base/format/xxh3.hpp"
#include "control/codec/decoder.hpp"

namespace orrery {
namespace {

// The magic begins with a byte that begins no text, and has line ends that a text transfer changes.
constexpr std::string_view kMagic{"\x89ORJL\r\n\x1a", 8};
/// Checksums are XXH3. Journals of format 1 have checksums of base/format/checksum.hpp; this
/// program reads them and does not write them.
constexpr std::uint8_t kFormat = 2;
constexpr std::uint8_t kFormatOfOwnChecksums = 1;
constexpr std::size_t kHeadFixed = kMagic.size() + 1 + 4;
constexpr std::size_t kChecksumSize = 8;
constexpr std::size_t kHeadPayloadMax = std::size_t{1} << 16;
/// A frame with a type of one byte and no payload. With a type of five bytes, the longest, the
/// first fields are still shorter: if kFrameMin bytes are left, the first fields are complete.
constexpr std::size_t kFrameMin = 1 + 1 + 4 + 4 + kChecksumSize;
constexpr std::size_t kSector = 512;

/// Returns the checksum of `bytes`, continued from `before`, the checksum of what precedes them.
std::uint64_t sum_of(std::uint8_t format, std::string_view bytes, std::uint64_t before) {
  return format == kFormatOfOwnChecksums ? checksum(bytes, before) : xxh3(bytes, before);
}

/// Returns the low half of the sum of a frame's first fields, which is their check.
std::uint32_t low_half(std::uint64_t sum) { return static_cast<std::uint32_t>(sum); }

std::uint64_t checksum_at(std::string_view bytes, std::size_t at) {
  return load_little_endian<std::uint64_t>(bytes.data() + at);
}

std::string print_checksums(std::uint64_t expected, std::uint64_t found) {
  return fmt::format("expected checksum {:016x}, found {:016x}", expected, found);
}

}  // namespace

bool begins_journal(std::string_view bytes) { return bytes.starts_with(kMagic); }

FrameWriter::FrameWriter(const JournalHead& head, JournalSink* sink)
    : sink_(sink), chain_(head.before) {
  if (sink_ == nullptr) return;
  Encoder payload;
  payload(head);
  ORRERY_ASSERT(payload.size() <= kHeadPayloadMax, "names and digests are short");
  frame_.raw(kMagic);
  frame_.fixed(kFormat);
  frame_.fixed(static_cast<std::uint32_t>(payload.size()));
  frame_.raw(payload.bytes());
  frame_.fixed(xxh3(frame_.bytes()));
  sink_->write(frame_.bytes());
}

Encoder& FrameWriter::begin(FrameType type) {
  frame_.clear();
  frame_.natural(type.id);
  frame_.fixed(type.version);
  length_at_ = frame_.size();
  frame_.fixed(std::uint32_t{0});
  frame_.fixed(std::uint32_t{0});
  return frame_;
}

void FrameWriter::finish() {
  const std::size_t check_at = length_at_ + sizeof(std::uint32_t);
  const std::size_t length = frame_.size() - check_at - sizeof(std::uint32_t);
  ORRERY_ASSERT(length <= kPayloadMax, "what control is handed is bounded where it comes in");
  frame_.overwrite(length_at_, static_cast<std::uint32_t>(length));
  frame_.overwrite(check_at, low_half(xxh3(frame_.bytes().substr(0, check_at), chain_)));
  chain_ = xxh3(frame_.bytes(), chain_);
  ++frames_;
  if (sink_ == nullptr) return;
  frame_.fixed(chain_);
  sink_->write(frame_.bytes());
}

Result<FrameReader> FrameReader::open(std::string_view bytes, std::string name,
                                      JournalContent content) {
  FrameReader reader(bytes, std::move(name));
  if (Status status = reader.read_head(content); !status) return forward_error(status);
  return reader;
}

Status FrameReader::read_head(JournalContent content) {
  if (!bytes_.starts_with(kMagic)) {
    return error_at(0, kMagic.starts_with(bytes_) ? "the journal ends inside its head"
                                                  : "expected the head of a journal");
  }
  Decoder fixed(bytes_.substr(kMagic.size()));
  format_ = fixed.fixed<std::uint8_t>();
  const auto length = fixed.fixed<std::uint32_t>();
  if (!fixed.good()) return error_at(kMagic.size(), "the journal ends inside its head");
  if (format_ < kFormatOfOwnChecksums || format_ > kFormat) {
    return error_at(kMagic.size(), fmt::format("expected format {} or {} of a journal, found {}",
                                               kFormatOfOwnChecksums, kFormat, format_));
  }
  const std::size_t end = kHeadFixed + length;
  if (length > kHeadPayloadMax || end + kChecksumSize > bytes_.size()) {
    return error_at(kMagic.size() + 1, "the journal ends inside its head");
  }
  const std::uint64_t expected = sum_of(format_, bytes_.substr(0, end), 0);
  const std::uint64_t found = checksum_at(bytes_, end);
  if (found != expected) {
    return error_at(0, "the head is damaged: " + print_checksums(expected, found));
  }
  Decoder payload(bytes_.substr(kHeadFixed, length));
  payload(head_);
  if (const auto fault = payload.finish()) {
    return error_at(kHeadFixed + fault->offset, "the head: " + fault->what);
  }
  if (head_.content != content) {
    const auto words = enum_words(content);
    return error_at(kHeadFixed, fmt::format("expected a journal of {}, found one of {}",
                                            words[static_cast<std::size_t>(content)].word,
                                            words[static_cast<std::size_t>(head_.content)].word));
  }
  chain_ = head_.before;
  at_ = end + kChecksumSize;
  return {};
}

void FrameReader::go_on(std::string_view bytes, std::string name) {
  ORRERY_ASSERT(at_ == bytes_.size() && !torn_, "pieces are read to their ends");
  bytes_ = bytes;
  name_ = std::move(name);
  at_ = 0;
}

Result<std::optional<Frame>> FrameReader::next() {
  const std::string_view rest = bytes_.substr(at_);
  if (rest.empty() || torn_) return std::nullopt;
  if (rest.size() < kFrameMin) {
    torn_ = true;
    return std::nullopt;
  }
  Decoder first(rest);
  Frame frame;
  frame.type.id = static_cast<std::uint32_t>(first.natural(0, ~std::uint32_t{0}));
  frame.type.version = first.fixed<std::uint8_t>();
  const auto length = first.fixed<std::uint32_t>();
  const std::size_t check_at = first.offset();
  const auto check = first.fixed<std::uint32_t>();
  if (!first.good()) return damaged(at_ + kFrameMin, "expected a type of at most 32 bits");
  if (const std::uint32_t expected = low_half(sum_of(format_, rest.substr(0, check_at), chain_));
      check != expected) {
    return damaged(
        at_ + first.offset(),
        fmt::format("expected check {:08x} of its type, version and length, found {:08x}", expected,
                    check));
  }
  if (length > kPayloadMax) return error_at(at_, "a record longer than any");
  const std::size_t end = first.offset() + length;
  if (end + kChecksumSize > rest.size()) {
    torn_ = true;
    return std::nullopt;
  }
  const std::uint64_t expected = sum_of(format_, rest.substr(0, end), chain_);
  if (const std::uint64_t found = checksum_at(rest, end); found != expected) {
    return damaged(at_ + end + kChecksumSize, print_checksums(expected, found));
  }
  frame.payload = rest.substr(first.offset(), length);
  frame.payload_at = at_ + first.offset();
  at_ += end + kChecksumSize;
  chain_ = expected;
  ++frames_;
  return frame;
}

Result<std::optional<Frame>> FrameReader::damaged(std::size_t end, std::string_view what) {
  if (!lost_to_zeros(end)) {
    return error_at(at_,
                    fmt::format("the record after {} good ones is damaged: {}", frames_, what));
  }
  torn_ = true;
  return std::nullopt;
}

bool FrameReader::lost_to_zeros(std::size_t end) const {
  const std::size_t last = bytes_.find_last_not_of('\0');
  const std::size_t zeros = last == std::string_view::npos ? 0 : last + 1;
  if (zeros <= at_) return true;
  const std::size_t sector = (zeros + kSector - 1) / kSector * kSector;
  return sector < std::min(end, bytes_.size());
}

tl::unexpected<Error> FrameReader::error_at(std::uint64_t offset, std::string_view what) const {
  std::string message = fmt::format("byte {}: {}", offset, what);
  if (!head_.writer.empty()) message += fmt::format(" (written by {})", head_.writer);
  return input_error({.file = name_}, std::move(message));
}

}  // namespace orrery
