// gateway/stream/event_scanner.hpp - follows a stream of server-sent events that passes through
// unparsed.
//
// A call owns one for its answer. It finds where events end, counts those with data, and reads
// those that hold usage or an error. Bytes come in any pieces. Cost: one search for line ends of
// all bytes, and one for each of two words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gateway/stream/token_usage.hpp"

namespace orrery {

class EventScanner {
 public:
  /// Takes in the next bytes. Returns how many of them belong to events that are complete; the rest
  /// begins an event whose end is yet to come.
  std::size_t scan(std::string_view bytes);
  /// Forgets the event whose end has not come: the next bytes begin another.
  void drop_rest();

  /// Lines of data so far, but for "[DONE]".
  [[nodiscard]] std::uint64_t chunks() const { return chunks_; }
  /// Whether "[DONE]" has come.
  [[nodiscard]] bool done() const { return done_; }
  /// Whether an event told of an error.
  [[nodiscard]] bool failed() const { return failed_; }
  /// The usage of the newest event that holds some.
  [[nodiscard]] const TokenUsage& usage() const { return usage_; }

 private:
  void read_line(std::string_view line);

  std::string line_;  ///< the beginning of a line whose end is yet to come
  std::uint64_t chunks_ = 0;
  bool after_return_ = false;  ///< the byte before was a CR, to which an LF belongs
  bool done_ = false;
  bool failed_ = false;
  TokenUsage usage_;
};

}  // namespace orrery
