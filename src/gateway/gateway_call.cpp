#include "gateway/gateway_call.hpp"

#include <algorithm>
#include <utility>

#include "gateway/apart/prompt_bodies.hpp"
#include "gateway/passed_headers.hpp"

namespace orrery {
namespace {

/// What of a whole answer is kept until its end, to be sent with its length.
constexpr std::size_t kWholeMax = std::size_t{256} << 10;
/// The longest event that is sent only once it is complete.
constexpr std::size_t kEventMax = std::size_t{1} << 20;
/// How many times as long the rest of a stream waits for a replica: a restart takes its time.
constexpr std::int64_t kRestWaits = 3;
/// Where the client does not keep up, reading pauses at the first and goes on at the second.
constexpr std::size_t kBufferedMax = std::size_t{1} << 20;
constexpr std::size_t kDrained = std::size_t{256} << 10;
/// Moves of a stream at most: a request that crashes its replicas must not crash all of them.
constexpr std::uint32_t kMovesMax = 8;
/// What is kept of an answer that is compared. A longer one counts as incomplete.
constexpr std::size_t kComparedMax = std::size_t{1} << 20;

/// The event that ends a stream whose rest is lost.
std::string lost_event() {
  const ErrorAnswer lost{
      .status = 502, .message = "The replica failed while it answered.", .code = "replica_lost"};
  return "data: " + error_json(lost) + "\n\n";
}

/// The seconds in which the replicas finish what they and the queue have.
std::string retry_after(const RouteDecision& decision, double queued_tokens) {
  double wait_s = 0;
  double pace = 0;
  for (const RouteCandidate& each : decision.candidates) {
    wait_s += each.expected.wait_s;
    pace = std::max(pace, each.seconds_per_token);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(decision.candidates.size(), 1));
  const double seconds = (wait_s + queued_tokens * pace) / count;
  return fmt::to_string(static_cast<int>(std::clamp(seconds + 1, 1.0, 60.0)));
}

/// Why the smaller or the larger model answers; empty: there is one model.
std::string_view tier_text(const ChosenTier& tier) {
  return tier.reason ? name_of(*tier.reason) : std::string_view();
}

}  // namespace

GatewayCall::GatewayCall(GatewayCore& core, GatewayRequest request, WebExchange exchange)
    : core_(core),
      request_(std::move(request)),
      exchange_(std::move(exchange)),
      admission_(request_.service, request_.tenant, request_.facts.service_class) {}

void GatewayCall::start() {
  times_.arrived = request_.arrived.value_or(core_.now());
  target_.draw = core_.draws().uniform();
  times_.asked = core_.now();
  exchange_.on_gone([this] { finish(RequestEnd::kCancelled); });
  const auto mean = static_cast<std::uint64_t>(request_.service.tokens.output_mean);
  const std::uint64_t limit = request_.facts.output_tokens_max;
  const std::string& body = exchange_.request().body;
  const GatewayService& service = request_.service;
  request_.prompt =
      routed_prompt(body, request_.facts, {service.id, service.tokens, core_.now_wall()});
  target_.output_tokens = limit == 0 ? mean : std::min(limit, mean);
  target_.tokens = request_.prompt.tokens + target_.output_tokens;
  if (admission_.reserve(target_.tokens, times_.arrived)) {
    dispatch(Queueing::kBehind);
  } else {
    answer_error(admission_.quota_error(), RequestEnd::kShed);
  }
}

void GatewayCall::dispatch(Queueing queueing) {
  GatewayService& service = request_.service;
  const std::size_t waiting = queueing == Queueing::kBehind ? service.queue.size() : 0;
  RouteDecision decision = decide(waiting);
  const RouteOutcome outcome = decision.outcome;
  const std::uint32_t slot = decision.slot;
  const RouteLoad load = decision.load;
  target_.remote = decision.remote;
  const bool fresh = queueing == Queueing::kBehind && !answer_.begun;
  const bool late = fresh && admission_.sheds(core_, decision);
  if (late) decision.outcome = RouteOutcome::kShed;
  record(std::move(decision));
  const bool taken = outcome == RouteOutcome::kReplica && !late;
  if (!taken && request_.tier.is_small() && !answer_.begun) {
    return hand_over(TierDesk::Ending::kLeft);
  }
  if (late) return shed();
  bool full = service.queue.size() >= core_.options().router.queue_max;
  if (outcome != RouteOutcome::kReplica && full && queueing == Queueing::kBehind) {
    if (GatewayCall* const last = admission_.last_but_this()) {
      last->shed();
      full = false;
    }
  }
  if (outcome == RouteOutcome::kReplica) {
    call_replica(slot, load);
  } else if (full && (outcome == RouteOutcome::kShed || outcome == RouteOutcome::kWait)) {
    answer_error(overloaded(service.model), RequestEnd::kShed);
  } else if (full) {
    answer_error(target_.failures > 0 ? all_failed(service.model) : without_replica(service.model),
                 RequestEnd::kFailed);
  } else {
    phase_ = Phase::kWaiting;
    // Every replica may be tried again: the wait is for one that comes back.
    tried_.clear();
    admission_.wait(*this, times_.arrived + admission_.patience(core_.options().queue_wait));
    core_.watch_queues();
  }
}

RouteDecision GatewayCall::decide(std::size_t waiting) const {
  if (!request_.service.index) return {};
  const RouterState& router = core_.router();
  std::vector<ReplicaKey> excluded = tried_;
  for (const std::uint32_t slot : router.slots_of(*request_.service.index)) {
    const RouterReplica& replica = router.replica(slot);
    if (target_.revision.value_or(replica.revision) != replica.revision) {
      excluded.push_back(replica.key);
    }
  }
  const WebRequest& received = exchange_.request();
  const PromptPlaces places =
      answer_.begun ? PromptPlaces::kAnswering
                    : prompt_places_of(received.path(), received.body, request_.facts);
  return choose(core_.router(), {.service = *request_.service.index,
                                 .prompt_tokens = request_.prompt.tokens,
                                 .output_tokens = target_.output_tokens,
                                 .blocks = request_.prompt.blocks,
                                 .block_tokens = request_.prompt.block_tokens,
                                 .excluded = excluded,
                                 .waiting = waiting,
                                 .draw = target_.draw,
                                 .now = core_.now(),
                                 .prompt_places = places});
}

void GatewayCall::record(RouteDecision decision) {
  core_.history().add(request_.id, {.service = request_.service.id,
                                    .epoch = core_.table().epoch,
                                    .tokens = target_.tokens,
                                    .prompt_tokens = request_.prompt.tokens,
                                    .continues = answer_.begun,
                                    .tier = tier_text(request_.tier),
                                    .time = core_.now_wall(),
                                    .decision = std::move(decision)});
}

bool GatewayCall::try_again() {
  RouteDecision decision = decide(0);
  if (decision.outcome != RouteOutcome::kReplica) return false;
  const std::uint32_t slot = decision.slot;
  const RouteLoad load = decision.load;
  target_.remote = decision.remote;
  record(std::move(decision));
  call_replica(slot, load);
  return true;
}

void GatewayCall::shed() { answer_error(overloaded(request_.service.model), RequestEnd::kShed); }

void GatewayCall::check_time(Instant now) {
  const Duration wait = replica_wait(request_.service, core_.options());
  const Duration patience = admission_.patience(wait * (answer_.begun ? kRestWaits : 1));
  if (phase_ != Phase::kWaiting || now < times_.asked + patience) return;
  const RouteOutcome outcome = decide(0).outcome;
  GatewayService& service = request_.service;
  const bool is_next = service.queue.front() == this;
  if (outcome == RouteOutcome::kReplica && is_next) return;  // its turn comes at once
  if (outcome == RouteOutcome::kNone) {
    answer_error(target_.failures > 0 ? all_failed(service.model) : without_replica(service.model),
                 RequestEnd::kFailed);
  } else if (now >= times_.asked + admission_.patience(core_.options().queue_wait)) {
    shed();
  }
}

void GatewayCall::call_replica(std::uint32_t slot, const RouteLoad& load) {
  phase_ = Phase::kAsking;
  if (answer_.begun) {
    // What a replica began and did not end, the next one sends whole.
    answer_.held.clear();
    answer_.events.drop_rest();
  } else {
    answer_ = {};
  }
  admission_.serve();
  RouterState& router = core_.router();
  target_.charge = router.charge(slot, load, request_.prompt.blocks, core_.now());
  target_.slot = slot;
  target_.answered = false;
  if (request_.tier.is_small()) {
    body_ = request_.tier.ticket->body.for_model(request_.service.model);
  }
  const std::optional<RemotePrompt> remote = std::exchange(target_.remote, std::nullopt);
  if (!remote) return ask("");
  const WebRequest& received = exchange_.request();
  std::vector<WebHeader> headers = headers_upstream(received.headers, request_.id);
  request_.trace.put(headers);
  const PromptHopTerms terms{.service = request_.service,
                             .prompt = request_.prompt,
                             .target = received.target,
                             .request = request_.id,
                             .headers = headers,
                             .body = request_.tier.is_small() ? body_ : received.body};
  const auto answer = [this, otherwise = remote->otherwise](const std::string& cache_place) {
    const std::unique_ptr<PromptHop> ended = std::move(target_.hop);
    RouterState& charged = core_.router();
    const Instant at = core_.now();
    if (cache_place.empty()) {
      // A slot without a charge may become that of another replica.
      const RouteCharge again = charged.charge(target_.slot, otherwise, {}, at);
      release({});
      target_.charge = again;
    }
    target_.charge->since = at;
    ask(cache_place);
  };
  target_.hop = std::make_unique<PromptHop>(core_, terms, *remote, answer);
}

void GatewayCall::ask(const std::string& cache_place) {
  const WebRequest& received = exchange_.request();
  std::vector<WebHeader> headers = headers_upstream(received.headers, request_.id);
  if (request_.facts.form == AnswerForm::kStream) headers.push_back({kContinueHeader, "marks"});
  const bool small = request_.tier.is_small();
  if (answer_.begun) body_ = marks_.rest_of(small ? body_ : received.body);
  if (!cache_place.empty()) body_ = answer_body(small ? body_ : received.body, cache_place);
  const bool changed = small || answer_.begun || !cache_place.empty();
  request_.trace.put(headers);
  upstream_ = core_.client().start(core_.router().replica(target_.slot).endpoint,
                                   {.method = received.method,
                                    .target = received.target,
                                    .headers = headers,
                                    .body = changed ? body_ : received.body},
                                   *this);
}

void GatewayCall::retry_elsewhere(std::string_view why) {
  const RouterReplica& replica = core_.router().replica(target_.slot);
  core_.log().warning(core_.now_wall(), "replica failed",
                      {{"service", request_.service.name},
                       {"job", replica.key.job},
                       {"attempt", replica.key.attempt},
                       {"endpoint", replica.endpoint},
                       {"request", request_.id},
                       {"why", why}});
  ++target_.failures;
  tried_.push_back(replica.key);
  core_.router().note_failure(target_.slot, core_.now());
  release({});
  upstream_.cancel();
  const Duration wait = replica_wait(request_.service, core_.options());
  const Duration patience = admission_.patience(wait * (answer_.begun ? kRestWaits : 1));
  if (core_.now() >= times_.asked + patience && decide(0).outcome == RouteOutcome::kNone) {
    answer_error(all_failed(request_.service.model), RequestEnd::kFailed);
  } else {
    dispatch(Queueing::kFirst);
  }
}

/// The service that was asked answers with its own model what the smaller one cannot.
void GatewayCall::hand_over(TierDesk::Ending ending) {
  GatewayCore& core = core_;
  GatewayService& small = request_.service;
  upstream_.cancel();
  release({});
  admission_.leave();
  admission_.settle(0, core.now());
  core.tiers().finish(request_.tier, ending, {});
  GatewayRequest again{.id = std::move(request_.id),
                       .service = core.services().at(request_.tier.asked),
                       .tenant = request_.tenant,
                       .facts = std::move(request_.facts),
                       .trace = std::move(request_.trace),
                       .tier = {.reason = TierReason::kUnfit, .asked = request_.tier.asked},
                       .arrived = times_.arrived};
  auto made = std::make_unique<GatewayCall>(core, std::move(again), std::move(exchange_));
  GatewayCall& call = *made;
  core.add(std::move(made));
  core.remove(*this);
  call.start();
  core.pump(small);
}

void GatewayCall::on_head(const WebResponseHead& head) {
  if (request_.tier.is_small() && !answer_.begun && head.status >= 400 && head.status != 503) {
    return hand_over(TierDesk::Ending::kFailed);
  }
  if (head.status == 503) {
    retry_elsewhere("it answered 503");
    return;
  }
  const auto type = head.headers.find("content-type");
  const bool is_events = type && type->starts_with("text/event-stream");
  const bool is_marked = head.headers.find(kContinueHeader).has_value();
  if (answer_.begun) {
    body_ = {};
    if (head.status == 429) return retry_elsewhere("it answered 429");
    if (head.status != 200 || !is_events || !is_marked) return refuse_rest();
    ++target_.moves;
    ++request_.service.detours.moved;
    return;
  }
  answer_.status = head.status;
  answer_.headers = head.headers;
  answer_.is_events = is_events;
  answer_.is_marked = is_events && is_marked;
}

void GatewayCall::on_body(std::string_view bytes) {
  times_.last = core_.now();
  if (!std::exchange(target_.answered, true)) {
    core_.router().note_success(target_.slot);
    // The first event shows that the prompt is computed; a whole answer comes at its end.
    if (answer_.is_events) core_.router().begin(*target_.charge, times_.last);
  }
  if (std::exchange(answer_.first_missing, false)) times_.first = times_.last;
  if (answer_.is_events) {
    pass_events(bytes);
    return;
  }
  answer_.held.append(bytes);
  if (answer_.held.size() <= kWholeMax) return;
  answer_.usage = find_usage(answer_.held);
  send(std::exchange(answer_.held, {}));
}

void GatewayCall::pass_events(std::string_view bytes) {
  const auto pass_whole = [this](std::string_view events) {
    if (answer_.is_marked) {
      send(marks_.take(events));
    } else {
      send(events);
    }
  };
  std::size_t whole = answer_.events.scan(bytes);
  if (answer_.held.size() + bytes.size() - whole > kEventMax) {
    whole = bytes.size();
    marks_.give_up();  // a part of an event reaches the client
  }
  if (whole == 0) {
    answer_.held.append(bytes);
    return;
  }
  if (answer_.held.empty()) {
    pass_whole(bytes.substr(0, whole));
  } else {
    answer_.held.append(bytes.substr(0, whole));
    pass_whole(std::exchange(answer_.held, {}));
  }
  answer_.held.assign(bytes.substr(whole));
}

std::vector<WebHeader> GatewayCall::headers_for_client() {
  std::vector<WebHeader> headers = headers_downstream(answer_.headers, request_.id);
  if (const std::uint32_t revision = core_.router().replica(target_.slot).revision; revision > 0) {
    target_.revision_text = fmt::to_string(revision);
    headers.push_back({"x-orrery-revision", target_.revision_text});
  }
  if (request_.tier.is_small()) {
    headers.push_back({"x-orrery-tier", "small"});
  }
  admission_.add_limit_headers(headers, core_.now());
  return headers;
}

void GatewayCall::send(std::string_view bytes) {
  phase_ = Phase::kPassing;
  if (!std::exchange(answer_.begun, true)) {
    target_.revision = core_.router().replica(target_.slot).revision;
    exchange_.begin(answer_.status, headers_for_client());
  }
  exchange_.send(bytes);
  if (request_.tier.is_compared() && answer_.copy.size() < kComparedMax) answer_.copy.append(bytes);
  if (exchange_.buffered() < kBufferedMax) return;
  upstream_.pause();
  exchange_.on_drained(kDrained, [this] { upstream_.resume(); });
}

void GatewayCall::on_end() {
  if (!target_.answered) core_.router().note_success(target_.slot);
  if (answer_.begun && answer_.is_marked && !answer_.events.done()) {
    return break_off("it ended the stream before its last event");
  }
  if (answer_.usage.known == TokenUsage::Known::kNo && !answer_.is_events) {
    answer_.usage = find_usage(answer_.held);
  }
  if (!answer_.begun) {
    exchange_.respond(answer_.status, headers_for_client(), answer_.held);
    if (request_.tier.is_compared()) answer_.copy = answer_.held;
  } else {
    exchange_.send(answer_.held);
    if (request_.tier.is_compared()) answer_.copy.append(answer_.held);
    exchange_.end();
  }
  const bool failed = answer_.status >= 500 || answer_.events.failed();
  finish(failed ? RequestEnd::kFailed : RequestEnd::kCompleted);
}

void GatewayCall::on_error(const WebCallFailure& failure) {
  if (phase_ == Phase::kAsking) {
    request_.service.canary.add_failure(core_.router().replica(target_.slot).revision);
    retry_elsewhere(failure.error.message);
    return;
  }
  break_off(failure.error.message);
}

void GatewayCall::break_off(std::string_view why) {
  core_.log().warning(core_.now_wall(), "answer broke off",
                      {{"service", request_.service.name}, {"request", request_.id}, {"why", why}});
  if (answer_.is_marked && answer_.events.done()) {
    // Nothing but the end of the connection, or of the last event, is missing.
    if (!answer_.held.empty()) send("data: [DONE]\n\n");
    exchange_.end();
    finish(RequestEnd::kCompleted);
  } else if (marks_.possible() && !answer_.events.failed() && target_.moves < kMovesMax) {
    times_.asked = core_.now();
    request_.service.canary.add_failure(core_.router().replica(target_.slot).revision);
    retry_elsewhere(why);
  } else {
    core_.router().note_failure(target_.slot, core_.now());
    lose();
  }
}

/// A replica that cannot go on with the stream, such as one of another model, is no failure.
void GatewayCall::refuse_rest() {
  tried_.push_back(core_.router().replica(target_.slot).key);
  release({});
  upstream_.cancel();
  if (decide(0).outcome == RouteOutcome::kReplica) {
    dispatch(Queueing::kFirst);
  } else {
    lose();
  }
}

void GatewayCall::lose() {
  if (answer_.is_events) {
    ++request_.service.detours.lost;
    exchange_.send(lost_event());
    exchange_.end();
  } else {
    exchange_.abort();
  }
  finish(RequestEnd::kFailed);
}

void GatewayCall::answer_error(const ErrorAnswer& error, RequestEnd end) {
  if (answer_.begun) return lose();
  if (request_.tier.is_small() && !admission_.refused()) {
    return hand_over(TierDesk::Ending::kLeft);
  }
  std::vector<WebHeader> headers = {{"Content-Type", "application/json"},
                                    {"x-request-id", request_.id}};
  answer_.status = error.status;
  std::string seconds = "1";
  if (admission_.refused()) {
    seconds = admission_.retry_after(core_.now());
  } else if (end == RequestEnd::kShed) {
    const auto queued = static_cast<double>(request_.service.queue.size());
    seconds = retry_after(decide(0), queued * static_cast<double>(target_.tokens));
  }
  if (error.status != 502) headers.push_back({"Retry-After", seconds});
  admission_.add_limit_headers(headers, core_.now());
  exchange_.respond(error.status, headers, error_json(error));
  finish(end);
}

TokenUsage GatewayCall::usage() const {
  if (!answer_.is_events) return answer_.usage;
  if (answer_.events.usage().known == TokenUsage::Known::kYes) return answer_.events.usage();
  if (answer_.events.chunks() == 0) return {};
  return {TokenUsage::Known::kYes, request_.prompt.tokens, answer_.events.chunks(), {}};
}

void GatewayCall::release(const RouteDone& done) {
  if (const auto charge = std::exchange(target_.charge, std::nullopt)) {
    core_.router().credit(*charge, done, core_.now());
  }
}

void GatewayCall::export_span(const EndedRequest& ended) {
  const Instant end = core_.now_wall();
  CallSpan span{.own = request_.trace.own(),
                .parent = request_.trace.parent(),
                .start = end - (core_.now() - times_.arrived),
                .end = end};
  span.asked = {.operation = std::string(operation_of(exchange_.request().path())),
                .model = request_.facts.model,
                .service = request_.service.name,
                .tenant = request_.tenant.terms.name,
                .request = request_.id,
                .max_tokens = request_.facts.output_tokens_max};
  span.answered = {.outcome = name_of(ended.end),
                   .status = answer_.status,
                   .input_tokens = ended.prompt_tokens,
                   .output_tokens = ended.output_tokens,
                   .ttft_s = ended.ttft.count_seconds(),
                   .failures = target_.failures};
  if (phase_ != Phase::kWaiting) {
    span.answered.endpoint = core_.router().replica(target_.slot).endpoint;
  }
  core_.spans()->add(std::move(span));
}

/// Tokens of the request as its tenant is charged for them: those used, where they are known.
double GatewayCall::tokens_charged(RequestEnd end) const {
  const TokenUsage used = usage();
  if (used.known == TokenUsage::Known::kYes) return static_cast<double>(used.prompt + used.output);
  if (end == RequestEnd::kCompleted && answer_.status < 300) {
    return static_cast<double>(target_.tokens);
  }
  // What a client breaks off has cost its prompt, once a replica had it.
  const bool computed = end == RequestEnd::kCancelled && phase_ != Phase::kWaiting;
  return computed ? static_cast<double>(request_.prompt.tokens) : 0;
}

void GatewayCall::finish(RequestEnd end) {
  admission_.leave();
  GatewayService& service = request_.service;
  const TokenUsage used = usage();
  EndedRequest ended{.end = end,
                     .over_limit = admission_.refused(),
                     .prompt_tokens = used.prompt,
                     .output_tokens = used.output};
  if (answer_.is_events && !answer_.first_missing) {
    ended.ttft = times_.first - times_.arrived;
    if (used.output > 1) {
      const auto gaps = static_cast<std::int64_t>(used.output - 1);
      ended.tpot = Duration::nanoseconds((times_.last - times_.first).count_ns() / gaps);
    }
  }
  service.stats.add(ended, core_.now());
  if (target_.charge) {
    EndedRequest of_replica = ended;
    if (end == RequestEnd::kCompleted && answer_.status >= 400)
      of_replica.end = RequestEnd::kFailed;
    // These times include those at other replicas.
    if (target_.failures > 0 || target_.moves > 0) of_replica.ttft = of_replica.tpot = Duration();
    service.canary.add(core_.router().replica(target_.slot).revision, of_replica);
  }
  if (request_.tier.reason) {
    const bool asked = end != RequestEnd::kCancelled && end != RequestEnd::kShed;
    const bool whole = end == RequestEnd::kCompleted && answer_.status == 200;
    core_.tiers().finish(request_.tier,
                         whole   ? TierDesk::Ending::kAnswered
                         : asked ? TierDesk::Ending::kFailed
                                 : TierDesk::Ending::kLeft,
                         answer_.copy);
  }
  admission_.count(ended);
  admission_.settle(tokens_charged(end), core_.now());
  if (request_.trace.exported()) export_span(ended);
  RouteDone done;
  if (end == RequestEnd::kCompleted && answer_.status < 300 &&
      used.known == TokenUsage::Known::kYes) {
    done = learn(service.tokens, {.body_bytes = exchange_.request().body.size(),
                                  .prompt = used.prompt,
                                  .cached = used.cached.value_or(0),
                                  .output = used.output,
                                  .tpot_s = ended.tpot.count_seconds()});
    const bool received = target_.charge && target_.charge->load.prompt != RouteLoad::Prompt::kHere;
    if (received) done.tokens = used.output;
    // Other replicas computed parts of a stream that moved: it does not show this one's pace.
    if (target_.moves > 0) done = {};
    const bool tells = target_.charge && target_.moves == 0 && used.cached;
    if (tells) core_.router().note_cached(*target_.charge, *used.cached);
  }
  release(done);
  GatewayCore& core = core_;
  core.remove(*this);
  core.pump(service);
}

}  // namespace orrery
