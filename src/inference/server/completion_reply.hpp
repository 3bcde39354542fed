// inference/server/completion_reply.hpp - the JSON of a completion: whole, or as the events of a
// stream.
//
// One per request, used by the loop's thread. Fed with what the engine generates. Cost: one small
// JSON object for each event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inference/engine/generation.hpp"
#include "inference/request/completion_request.hpp"

namespace orrery {

/// What names a completion.
struct CompletionIdentity {
  std::string id;
  std::string model;
  std::int64_t created = 0;  ///< seconds since 1970
};

/// How a stream can go on elsewhere.
struct CompletionMarks {
  enum class Wanted : std::uint8_t { kNo, kYes } wanted = Wanted::kNo;
  ContinuedStream origin;  ///< without tokens
};

class CompletionReply {
 public:
  /// Keeps of the request what the form of the answer depends on. The answer to a request that
  /// continues a stream begins behind the events that arrived.
  CompletionReply(CompletionIdentity identity, const CompletionRequest& request,
                  CompletionMarks marks);

  /// Takes a delta; returns the events of a stream that it makes, which may be none. The last delta
  /// makes the last event and the end mark.
  [[nodiscard]] std::string take(const GenerationDelta& delta);
  /// Returns the answer without a stream. Precondition: the last delta was taken.
  [[nodiscard]] std::string whole() const;
  /// Returns what follows the last event with text. `last`: the counts of the whole text.
  [[nodiscard]] std::string rest(const GenerationDelta& last) const;

 private:
  [[nodiscard]] std::string events_of(const GenerationDelta& delta);
  [[nodiscard]] std::string take_marks();

  CompletionIdentity identity_;
  CompletionKind kind_;
  bool stream_;
  bool include_usage_;
  bool return_token_ids_;
  std::string text_;                  ///< so far, unless streamed
  std::vector<std::int32_t> tokens_;  ///< so far, or since the last event
  CompletionMarks marks_;
  std::vector<std::int32_t> unmarked_;  ///< since the last event
  GenerationDelta last_;
  enum class Phase : std::uint8_t { kNew, kBegun } phase_ = Phase::kNew;
};

}  // namespace orrery
