// gateway/picker/followed_answer.hpp - what a picker learns of a replica's answer, as far as Envoy
// lets it see.
//
// A call of a picker owns one. Time is a value. Cost: as of gateway/stream/event_scanner.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "gateway/service_stats.hpp"
#include "gateway/stream/event_scanner.hpp"

namespace orrery {

class FollowedAnswer {
 public:
  /// Begins, with the answer's status and Content-Type.
  void begin(int status, std::string_view content_type);
  void add(std::string_view bytes, Instant now);

  [[nodiscard]] int status() const { return status_; }
  /// Whether something of the body, its end included, has come.
  [[nodiscard]] bool has_body() const { return has_body_; }
  [[nodiscard]] bool is_events() const { return events_.has_value(); }
  /// Tokens of the prompt that the engine had in its cache; none: it does not tell.
  [[nodiscard]] std::optional<std::uint64_t> cached_tokens() const { return usage(0).cached; }
  /// What is to be counted. `prompt_estimate`: tokens, where the replica tells of none.
  [[nodiscard]] EndedRequest ended(RequestEnd end, Instant arrived,
                                   std::uint64_t prompt_estimate) const;
  /// How a request ends whose answer has come whole.
  [[nodiscard]] RequestEnd whole_end() const;
  /// Whether the tokens of ended() say how fast a replica is.
  [[nodiscard]] bool knows_tokens() const;

 private:
  [[nodiscard]] TokenUsage usage(std::uint64_t prompt_estimate) const;

  int status_ = 0;
  bool has_body_ = false;
  std::optional<Instant> first_;  ///< byte of the body
  Instant last_;
  std::optional<EventScanner> events_;  ///< of an answer in events
  std::string tail_;                    ///< the last bytes of another
};

}  // namespace orrery
