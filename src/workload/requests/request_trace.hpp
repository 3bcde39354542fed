// workload/requests/request_trace.hpp - requests to a model as they arrived: when, how long their
// prompts and answers are, and which prompts begin alike.
//
// Made by request_reader.hpp or request_generator.hpp; read by the twin and by load tools. A prompt
// is a chain of blocks of kTraceBlockTokens tokens, the last of which may be shorter; a block has
// the same number in two chains exactly if both prompts are alike from their beginning to its end.
// Plain values. Invariants: requests are in the order of arrival, the first at zero or later; block
// numbers are below `blocks`; a chain covers its prompt or is empty (nothing is known).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/time.hpp"

namespace orrery {

/// Tokens of a block of a chain, as in the traces of Mooncake.
inline constexpr std::uint32_t kTraceBlockTokens = 512;

/// The longest trace: what is modelled counts picoseconds in 64 bits, which are 106 days.
inline constexpr Duration kTraceSpanMax = Duration::hours(24) * 90;

enum class RequestClass : std::uint8_t { kInteractive, kBatch };

inline std::array<EnumWord<RequestClass>, 2> enum_words(RequestClass) {
  return {{{"interactive", RequestClass::kInteractive}, {"batch", RequestClass::kBatch}}};
}

struct TraceRequest {
  Duration arrival;  ///< since the beginning of the trace
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  std::uint32_t chain_begin = 0;  ///< position in RequestTrace::chains
  std::uint32_t chain_size = 0;   ///< 0: which prompts begin alike is not known
  std::uint32_t tenant = 0;       ///< position in RequestTrace::tenants
  RequestClass request_class = RequestClass::kInteractive;

  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

struct RequestTrace {
  std::vector<TraceRequest> requests;
  std::vector<std::uint32_t> chains;  ///< numbers of blocks, chain after chain
  std::uint32_t blocks = 0;           ///< different ones
  std::vector<std::string> tenants = {""};
  Duration span;                   ///< over which the requests arrive
  std::vector<std::string> notes;  ///< what was drawn or assumed, for reports

  [[nodiscard]] std::span<const std::uint32_t> chain_of(const TraceRequest& request) const {
    return std::span(chains).subspan(request.chain_begin, request.chain_size);
  }
};

/// Returns the blocks of a prompt of so many tokens.
[[nodiscard]] constexpr std::uint32_t trace_blocks_of(std::uint32_t tokens) {
  return tokens / kTraceBlockTokens + (tokens % kTraceBlockTokens == 0 ? 0 : 1);
}

enum class TraceHalf : std::uint8_t { kFirst, kSecond };

inline std::array<EnumWord<TraceHalf>, 2> enum_words(TraceHalf) {
  return {{{"first", TraceHalf::kFirst}, {"second", TraceHalf::kSecond}}};
}

/// Keeps one half of the requests, by number; the second then begins at zero.
void keep_half(RequestTrace& trace, TraceHalf half);

/// Lets everything arrive so many times as fast. Precondition: factor > 0.
void speed_up(RequestTrace& trace, double factor);

/// Returns a line of JSON for each request, as Mooncake's traces have them: `timestamp` in
/// milliseconds, `input_length`, `output_length`, `hash_ids`; and `tenant` and `class` where they
/// are not the default ones. read_requests() reads it back to the same requests.
[[nodiscard]] std::string write_requests(const RequestTrace& trace);

}  // namespace orrery
