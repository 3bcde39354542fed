#include "gateway/apart/prompt_hop.hpp"

#include <algorithm>
#include <utility>

#include "gateway/apart/prompt_bodies.hpp"
#include "gateway/stream/token_usage.hpp"

namespace orrery {
namespace {

/// The answer has one token, and the numbers of the cache's blocks.
constexpr std::size_t kAnswerMax = std::size_t{4} << 20;

}  // namespace

PromptHop::PromptHop(GatewayCore& core, const PromptHopTerms& terms, const RemotePrompt& remote,
                     Done done)
    : core_(core),
      service_(terms.service),
      done_(std::move(done)),
      prompt_tokens_(terms.prompt.tokens),
      request_(terms.request),
      body_(prompt_body(terms.target, terms.body)),
      charge_(core.router().charge(remote.slot, remote.load, terms.prompt.blocks, core.now())),
      call_(core.client().start(
          core.router().replica(remote.slot).endpoint,
          {.method = "POST", .target = terms.target, .headers = terms.headers, .body = body_},
          *this)) {}

PromptHop::~PromptHop() {
  if (charge_) core_.router().credit(*charge_, {}, core_.now());
}

void PromptHop::on_body(std::string_view bytes) {
  if (received_.size() + bytes.size() > kAnswerMax) return fail("its answer is too long");
  received_.append(bytes);
}

void PromptHop::on_end() {
  if (status_ != 200) return fail(fmt::format("it answered {}", status_));
  const std::string place = cache_place(received_);
  if (place.empty()) return fail("its answer does not say where the cache is");
  RouterState& router = core_.router();
  router.note_success(charge_->slot);
  router.begin(*charge_, core_.now());
  const TokenUsage used = find_usage(received_);
  if (used.cached) router.note_cached(*charge_, *used.cached);
  const std::uint64_t prompt = used.known == TokenUsage::Known::kYes ? used.prompt : prompt_tokens_;
  ++service_.detours.prompts;
  end({.tokens = prompt - std::min(used.cached.value_or(0), prompt) + 1}, place);
}

void PromptHop::fail(std::string_view why) {
  const RouterReplica& replica = core_.router().replica(charge_->slot);
  core_.log().warning(core_.now_wall(), "replica did not compute a prompt",
                      {{"service", service_.name},
                       {"job", replica.key.job},
                       {"attempt", replica.key.attempt},
                       {"endpoint", replica.endpoint},
                       {"request", request_},
                       {"why", why}});
  ++service_.detours.prompts_failed;
  // A request that is refused for what it asks is none of the replica's failures.
  const bool refused = status_ >= 400 && status_ < 500;
  if (!refused) core_.router().note_failure(charge_->slot, core_.now());
  end({}, "");
}

void PromptHop::end(const RouteDone& shown, const std::string& place) {
  call_.cancel();
  core_.router().credit(*charge_, shown, core_.now());
  charge_.reset();
  const Done done = std::move(done_);
  done(place);
}

}  // namespace orrery
