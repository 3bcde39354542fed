// control/journal_frame.hpp - the frames of a journal: typed, versioned, each with a checksum that
// covers all before it. What is in them is for control/journal.hpp.
//
//   head     magic (8 bytes), format (1), length (4), payload, checksum (8) of all of it
//   frame    type (varint), version (1), length of the payload (4), check of these (4), payload,
//            checksum (8) of all of it, chained over the checksum of the frame before
//
// Checksums are XXH3 (base/xxh3.hpp); a journal of format 1 has those of base/checksum.hpp.
// The chain begins at the head's `before` and knows nothing else of the head, so that the same
// records have the same history hash whoever wrote them. The check of a frame's first fields tells
// a length that was damaged from a frame that the end cuts off.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "control/encoder.hpp"

namespace orrery {

enum class JournalContent : std::uint8_t { kEvents, kInputs };

inline std::array<EnumWord<JournalContent>, 2> enum_words(JournalContent) {
  return {{{"events", JournalContent::kEvents}, {"inputs", JournalContent::kInputs}}};
}

struct JournalHead {
  JournalContent content = JournalContent::kEvents;
  std::uint64_t before = 0;  ///< history hash of the journal that this one continues; 0: none
  std::string writer;        ///< name and version of the program: "orrery 0.1.0"
  std::string setup;         ///< digest of the facts its records rest on
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
  /// A whole head or frame. The bytes live until the call returns.
  virtual void write(std::string_view bytes) = 0;
};

struct FrameType {
  std::uint32_t id = 0;
  std::uint8_t version = 1;
};

inline constexpr std::size_t kPayloadMax = std::size_t{1} << 28;

/// Whether a journal begins here, as far as its first bytes tell; no frame begins with them.
[[nodiscard]] bool begins_journal(std::string_view bytes);

/// Made once a journal. The sink outlives it; none: the hash alone is kept.
class FrameWriter {
 public:
  /// Writes the head.
  FrameWriter(const JournalHead& head, JournalSink* sink);

  /// Begins a frame; its payload is added to what is returned. Cost: none.
  [[nodiscard]] Encoder& begin(FrameType type);
  /// Ends it: one write to the sink. Precondition: begun; the payload has at most kPayloadMax
  /// bytes.
  void finish();

  [[nodiscard]] std::uint64_t history_hash() const { return chain_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }

 private:
  JournalSink* sink_;
  Encoder frame_;
  std::size_t length_at_ = 0;  ///< in the frame that is begun
  std::uint64_t chain_ = 0;
  std::uint64_t frames_ = 0;
};

struct Frame {
  FrameType type;
  std::string_view payload;
  std::uint64_t payload_at = 0;  ///< offset in the journal
};

/// Reads frames in order and verifies the chain. The bytes outlive it and what it returns.
class FrameReader {
 public:
  /// Errors: no journal, one of another format or with other content, a head that is cut or
  /// damaged. `name`: of the file, for messages.
  [[nodiscard]] static Result<FrameReader> open(std::string_view bytes, std::string name,
                                                JournalContent content);

  /// The next frame; none at the end, be it whole or torn. Error: damage that is not a torn tail,
  /// with its offset and both checksums; asked again it says the same. O(frame).
  [[nodiscard]] Result<std::optional<Frame>> next();

  /// Reads on in the next piece of a journal that is kept in pieces of whole frames. Offsets count
  /// from its begin. Precondition: next() found the end of the piece before, and it was not torn.
  void go_on(std::string_view bytes, std::string name);

  [[nodiscard]] const JournalHead& head() const { return head_; }
  /// What was read so far, and is good.
  [[nodiscard]] std::uint64_t good_bytes() const { return at_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  [[nodiscard]] std::uint64_t history_hash() const { return chain_; }
  /// Whether the end that next() found lies inside a frame: a write that a crash cut short. Either
  /// the bytes end there, or from one of its sectors on there are nothing but zeros, as where a
  /// file system had made room and not yet written.
  [[nodiscard]] bool torn() const { return torn_; }

  /// "name: byte N: what", for what else is wrong with the journal.
  [[nodiscard]] tl::unexpected<Error> error_at(std::uint64_t offset, std::string_view what) const;

 private:
  FrameReader(std::string_view bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  [[nodiscard]] Status read_head(JournalContent content);
  /// A frame whose bytes up to `end` are not what was written.
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
