// gateway/apart/prompt_bodies.hpp - the bodies of the two calls of a request whose prompt is
// computed elsewhere, as vLLM takes them.
//
// vLLM's KV connectors name a cache by "kv_transfer_params": the first call asks for one token and
// that the cache is kept ("do_remote_decode"); its answer says where it is, and the second call
// hands that on ("do_remote_prefill"). Keys are added behind the client's own: of equal keys, the
// last one counts for vLLM. Pure. Cost: a copy of the body; a JSON parse of the first answer.
#pragma once

#include <string>
#include <string_view>

#include "gateway/request_facts.hpp"
#include "serving/routing/router.hpp"

namespace orrery {

/// Where the prompt of a request may be computed: elsewhere for one text or one chat with one
/// answer that shows nothing of its prompt.
[[nodiscard]] PromptPlaces prompt_places_of(std::string_view path, std::string_view body,
                                            const RequestFacts& facts);

/// The body for the replica that computes the prompt alone. Its one token ends the answer by its
/// length, as vLLM keeps no cache of answers that end otherwise. Precondition: `body` is a JSON
/// object with a key.
[[nodiscard]] std::string prompt_body(std::string_view path, std::string_view body);

/// What the answer to that body says of the cache, as JSON; empty: it is no answer of that kind.
[[nodiscard]] std::string cache_place(std::string_view answer);

/// The body for the replica that answers. Precondition: that of prompt_body().
[[nodiscard]] std::string answer_body(std::string_view body, std::string_view cache_place);

}  // namespace orrery
