// gateway/prompt/routed_prompt.hpp - a request's prompt as the router sees it: about how many
// tokens, and a chain of blocks by which replicas are found that have its beginning in their
// caches.
//
// Each call has one. Where the service has a tokenizer that reads the prompt, the chain is that of
// its tokens, as engines tell of them (kv_events/kv_event.hpp). Else it is made of the text as it
// stands in the body: the messages, or the prompt, in blocks of 256 bytes, without what closes it,
// so that the next request of a session begins with the blocks of the last. Its salt has the
// service, the tools and what the client wants not to be shared ("cache_salt"). Engines share their
// caches between tenants, so the chain does. Pure. Cost: 0.1 us a KB of text, or that of the
// tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "gateway/prompt/prompt_tokenizer.hpp"
#include "gateway/request_facts.hpp"
#include "serving/routing/router_state.hpp"

namespace orrery {

/// Tokens for each byte of the bodies of a service's requests, as its engines count them.
class TokenDensity {
 public:
  void add(std::size_t bytes, std::uint64_t tokens);
  /// Between a sixteenth and one; a quarter before anything is known.
  [[nodiscard]] double tokens_per_byte() const;

 private:
  double bytes_ = 4096;
  double tokens_ = 1024;
};

/// What the requests of a service have shown of their tokens; newer ones weigh more.
struct ServiceTokens {
  double output_mean = 64;  ///< of a request
  TokenDensity density;
  std::shared_ptr<const PromptTokenizer> tokenizer;  ///< null: there is none
};

/// The tokens of a request that went well, as its engine counts them.
struct ShownTokens {
  std::size_t body_bytes = 0;
  std::uint64_t prompt = 0;
  std::uint64_t cached = 0;  ///< of the prompt's
  std::uint64_t output = 0;
  double tpot_s = 0;  ///< seconds between those of the output; 0: not measured
};

/// Has a service learn from a request; returns what a replica learns that computed it alone.
RouteDone learn(ServiceTokens& tokens, const ShownTokens& shown);

struct RoutedPrompt {
  std::uint64_t tokens = 0;           ///< estimated, unless the service has a tokenizer
  double block_tokens = 0;            ///< of each block, the same
  std::vector<std::uint64_t> blocks;  ///< of its first half megabyte, or 131,072 tokens
};

/// What a body is read for.
struct PromptTerms {
  std::uint64_t service = 0;
  const ServiceTokens& tokens;  ///< of the service
  Instant now;                  ///< the time of day, which some chat templates show
};

/// The prompt in the body of a request to a service.
[[nodiscard]] RoutedPrompt routed_prompt(std::string_view body, const RequestFacts& facts,
                                         const PromptTerms& terms);

}  // namespace orrery
