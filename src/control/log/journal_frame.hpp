// control/log/journal_frame.hpp - the frames of a journal: typed, versioned, each with a checksum
// that covers everything before it. control/log/journal.hpp defines their content.
//
//   head     magic (8 bytes), format (1), length (4), payload, checksum (8) of all of it
//   frame    type (varint), version (1), length of the payload (4), check of these (4), payload,
//            checksum (8) of all of it, chained over the checksum of the frame before
//
// Checksums are XXH3 (base/format/xxh3.hpp); a journal of format 1 has those of
// base/format/checksum.hpp. The chain begins with the head's `before` and uses nothing else of the
// head, so that the same records have the same history hash, whichever program wrote them. The
// check of a frame's first fields distinguishes a damaged length from a frame that the end of the
// file cuts off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "control/codec/encoder.hpp"

namespace orrery {

enum class JournalContent : std::uint8_t { kEvents, kInputs };

inline std::array<EnumWord<JournalContent>, 2> enum_words(JournalContent) {
  return {{{"events", JournalContent::kEvents}, {"inputs", JournalContent::kInputs}}};
}

struct JournalHead {
  JournalContent content = JournalContent::kEvents;
  std::uint64_t before = 0;  ///< history hash of the journal that this one continues; 0: none
  std::string writer;        ///< name and version of the program: "orrery 0.1.0"
  std::string setup;         ///< digest of the facts behind its records
};

template <class Codec, SameStruct<JournalHead> S>
void code(Codec& codec, S& head) {
  auto& [content, before, writer, setup] = head;
  codec(content, before, writer, setup);
}

/// Takes the bytes of a journal in order: a file, a string, a follower.
class JournalSink {
 public:
  virtual ~JournalSink() = default;
  /// Takes a whole head or frame. The bytes live until the call returns.
  virtual void write(std::string_view bytes) = 0;
};

struct FrameType {
  std::uint32_t id = 0;
  std::uint8_t version = 1;
};

inline constexpr std::size_t kPayloadMax = std::size_t{1} << 28;

/// Whether the bytes begin with a journal's first bytes; no frame begins with them.
[[nodiscard]] bool begins_journal(std::string_view bytes);

/// Writes one journal. The sink outlives it; without a sink only the hash is kept.
class FrameWriter {
 public:
  /// Writes the head.
  FrameWriter(const JournalHead& head, JournalSink* sink);

  /// Begins a frame; the caller adds the payload to the returned encoder. O(1).
  [[nodiscard]] Encoder& begin(FrameType type);
  /// Ends the frame with one write to the sink. Precondition: begin() was called; the payload has
  /// at most kPayloadMax bytes.
  void finish();

  [[nodiscard]] std::uint64_t history_hash() const { return chain_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  JournalSink* sink_;
  Encoder frame_;
  std::size_t length_at_ = 0;  ///< position of the length in the open frame
  std::uint64_t chain_ = 0;
  std::uint64_t frames_ = 0;
};

struct Frame {
  FrameType type;
  std::string_view payload;
  std::uint64_t payload_at = 0;  ///< offset in the journal
};

/// Reads frames in order and verifies the chain. The bytes must outlive the reader and its frames.
class FrameReader {
 public:
  /// Errors: not a journal, a journal of another format or content, a head that is cut or damaged.
  /// `name` is that of the file, for messages.
  [[nodiscard]] static Result<FrameReader> open(std::string_view bytes, std::string name,
                                                JournalContent content);

  /// Returns the next frame; none at the end, whether whole or torn. Error: damage that is not a
  /// torn tail, with its offset and both checksums; a repeated call returns it again. O(frame).
  [[nodiscard]] Result<std::optional<Frame>> next();

  /// Continues in the next piece of a journal that is kept in pieces of whole frames. Offsets count
  /// from the begin of the piece. Precondition: next() returned none for the previous piece, and it
  /// was not torn.
  void go_on(std::string_view bytes, std::string name);

  [[nodiscard]] const JournalHead& head() const { return head_; }
  /// The number of bytes read so far, all of them good.
  [[nodiscard]] std::uint64_t good_bytes() const { return at_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  [[nodiscard]] std::uint64_t history_hash() const { return chain_; }
  /// Whether the end that next() found lies inside a frame: a write that a crash cut short. Either
  /// the bytes end there, or only zeros follow from one of its sectors on, as when a file system
  /// had allocated space and not yet written it.
  [[nodiscard]] bool torn() const { return torn_; }

  /// Returns the error "name: byte N: what", for other faults of the journal.
  [[nodiscard]] tl::unexpected<Error> error_at(std::uint64_t offset, std::string_view what) const;

 private:
  FrameReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  [[nodiscard]] Status read_head(JournalContent content);
  /// Returns the result for a frame whose bytes up to `end` are not what was written.
  [[nodiscard]] Result<std::optional<Frame>> damaged(std::size_t end, std::string_view what);
  [[nodiscard]] bool lost_to_zeros(std::size_t end) const;

  std::string_view bytes_;
  std::string name_;
  std::uint8_t format_ = 0;
  JournalHead head_;
  std::size_t at_ = 0;
  std::uint64_t chain_ = 0;
  std::uint64_t frames_ = 0;
  bool torn_ = false;
};

}  // namespace orrery
