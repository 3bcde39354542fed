// inference/request/continued_stream.hpp - what lets another replica go on with a stream that broke
// off.
//
// Marks are lines of comments, ": continue TEXT", one before the data of each event, where the
// header `x-orrery-continue` of a request asks for them. The texts of the marks of all events that
// arrived, joined, are the value of "continue" in a request that asks for the rest: the same body
// with that one key more. To a gateway they are opaque. Joined they are
//
//   1.ID.CREATED.SEED.TOKENIZER.   the stream's id and time, the seed, which tokens are meant
//   AAAAAB..                       each token so far, three digits of base 64
//   $                              the event with the usage
//
// Plain values and pure functions. Invariant: a replica of the same model and tokenizer generates
// what follows exactly as the first would have. Cost: three bytes a token.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/engine/generation.hpp"
#include "inference/server/api_error.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

/// The header that asks for marks, and that tells of them.
inline constexpr std::string_view kContinueHeader = "x-orrery-continue";

struct ContinuedStream {
  std::string id;
  std::int64_t created = 0;  ///< seconds since 1970
  std::uint64_t seed = 0;
  std::string tokenizer;             ///< mark_of(Tokenizer)
  std::vector<std::int32_t> tokens;  ///< those of the events that arrived
  enum class Usage : std::uint8_t { kMissing, kSent } usage = Usage::kMissing;
};

/// Whether tokens of this tokenizer fit into marks.
[[nodiscard]] bool has_marks(const Tokenizer& tokenizer);
/// Hexadecimal digits that tell tokenizers apart.
[[nodiscard]] std::string mark_of(const Tokenizer& tokenizer);
/// The line of the first event: names the stream, without tokens and line end.
[[nodiscard]] std::string first_mark(const ContinuedStream& stream);
/// The line of an event that brings tokens. Precondition: has_marks().
[[nodiscard]] std::string token_mark(std::span<const std::int32_t> tokens);
/// The line of the event that brings the usage.
[[nodiscard]] std::string usage_mark();

/// Reads joined texts. Error: they are malformed.
[[nodiscard]] ApiResult<ContinuedStream> read_marks(std::string_view joined);

/// Whether a request's continued tokens end the text, so that none follows. `limit`: tokens that
/// may be generated in all. O(tokens).
[[nodiscard]] bool is_over(const GenerationRequest& request, const Tokenizer& tokenizer,
                           std::size_t limit);

}  // namespace orrery
