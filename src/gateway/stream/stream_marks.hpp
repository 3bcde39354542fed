// gateway/stream/stream_marks.hpp - what a gateway keeps of a stream, so that another replica can
// go on with it.
//
// An inference engine that can continue its streams puts lines of comments, ": continue TEXT",
// before the data of each event, where the header kContinueHeader of a request asks for them; its
// answer has the same header. A call owns a StreamMarks: it takes the marks out of the events that
// pass, keeps their texts, and gives them back to any replica as "continue" in the request's body
// (docs/design/014-serving.md). It does not read them.
// Invariant: the texts are those of all events that were taken, or possible() is false. Memory: at
// most kMarksMax; a stream that has more cannot be continued. Cost: one copy of the events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

inline constexpr std::string_view kContinueHeader = "x-orrery-continue";

class StreamMarks {
 public:
  /// 5,400 tokens of orrery-serve.
  static constexpr std::size_t kMarksMax = std::size_t{16} << 10;

  /// Takes events that are whole; returns them without marks.
  [[nodiscard]] std::string take(std::string_view events);
  /// From now on the stream cannot be continued.
  void give_up();
  /// Whether the rest can be asked for: there are marks, and none is missing.
  [[nodiscard]] bool possible() const { return !texts_.empty(); }
  /// Returns the body that asks for the rest of the answer to `body`, a JSON object with a field.
  [[nodiscard]] std::string rest_of(std::string_view body) const;

 private:
  void keep(std::string_view text);

  std::string texts_;
  enum class Phase : std::uint8_t { kKept, kGivenUp } phase_ = Phase::kKept;
};

}  // namespace orrery
