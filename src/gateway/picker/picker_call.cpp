#include "gateway/picker/picker_call.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "gateway/gateway_pages.hpp"

namespace orrery {
namespace {

ErrorAnswer picker_error(int status, std::string message, std::string_view code,
                         std::string_view param = {}) {
  std::string_view type = status < 500 ? "invalid_request_error" : "server_error";
  if (status == 429) type = "rate_limit_error";
  return {status, std::move(message), type, param, code};
}

/// A client's id of its request, where it may stand in a header and a log.
bool is_usable_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c <= '~'; });
}

int status_of(const ext_proc::HttpHeaders& headers) {
  const std::string_view text = header_of(headers, ":status").value_or("");
  int status = 0;
  std::from_chars(text.data(), text.data() + text.size(), status);
  return status;
}

std::optional<std::uint32_t> slot_of(const RouterState& router, const ReplicaKey& key) {
  const auto replicas = router.replicas();
  const auto found = std::ranges::find_if(replicas, [&](const RouterReplica& each) {
    return each.presence == RouterReplica::Presence::kRouted && each.key == key;
  });
  if (found == replicas.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - replicas.begin());
}

/// The key that a request shows, or what stands for one.
std::optional<RoutedKey> key_of(const ext_proc::HttpHeaders& headers, const GatewayCore& core) {
  const std::optional<std::string>& tenant = core.options().picker.tenant;
  if (tenant) return RoutedKey{.sha256 = {}, .name = {}, .tenant = *tenant};
  const auto shown = header_of(headers, "authorization");
  const RoutedKey* const key = shown ? core.keys().find(*shown) : nullptr;
  if (key == nullptr) return std::nullopt;
  return *key;
}

/// Passes a request's body on, and trailers behind one that they end.
void give_back(std::string_view body, BodyEnd end, RpcStream& stream) {
  for (ext_proc::StreamedBodyResponse& piece : pieces_of(body, end)) {
    ext_proc::ProcessingResponse answer;
    ext_proc::CommonResponse& common = *answer.mutable_request_body()->mutable_response();
    *common.mutable_body_mutation()->mutable_streamed_response() = std::move(piece);
    stream.send(answer);
  }
  if (end == BodyEnd::kEnded) return;
  ext_proc::ProcessingResponse trailers;
  trailers.mutable_request_trailers();
  stream.send(trailers);
}

}  // namespace

PickerCall::PickerCall(PickerDesk& desk, std::shared_ptr<RpcStream> stream)
    : desk_(desk), stream_(std::move(stream)), arrived_(desk.core.now()) {}

PickerCall::~PickerCall() {
  settle(RequestEnd::kCancelled);
  drop_body();
}

void PickerCall::take(const ext_proc::ProcessingRequest& message) {
  // Where Envoy only lets a processor watch, it is not asked.
  const bool asked = phase_ != Phase::kOver && !message.observability_mode();
  switch (asked ? message.request_case() : ext_proc::ProcessingRequest::REQUEST_NOT_SET) {
    case ext_proc::ProcessingRequest::kRequestHeaders:
      on_headers(message);
      break;
    case ext_proc::ProcessingRequest::kRequestBody:
      on_body(message.request_body());
      break;
    case ext_proc::ProcessingRequest::kRequestTrailers:
      on_trailers();
      break;
    case ext_proc::ProcessingRequest::kResponseHeaders:
      on_answer_headers(message);
      break;
    case ext_proc::ProcessingRequest::kResponseBody:
      on_answer_body(message.response_body());
      break;
    case ext_proc::ProcessingRequest::kResponseTrailers:
      on_answer_trailers();
      break;
    case ext_proc::ProcessingRequest::REQUEST_NOT_SET:
      break;
  }
  stream_->read();
}

void PickerCall::close() {
  // A stream that its client has broken off is not told apart from one that Envoy has closed.
  const bool without_body = modes_.known ? modes_.answer == ext_proc::NONE : !answer_.has_body();
  const bool whole = phase_ == Phase::kAnswering && without_body;
  settle(whole ? answer_.whole_end() : RequestEnd::kCancelled);
  phase_ = Phase::kOver;
  stream_->finish(grpc::Status::OK);
}

void PickerCall::refuse_order() {
  settle(RequestEnd::kFailed);
  phase_ = Phase::kOver;
  stream_->finish({grpc::StatusCode::INVALID_ARGUMENT, "a message that does not follow the last"});
}

void PickerCall::on_headers(const ext_proc::ProcessingRequest& message) {
  if (phase_ != Phase::kHeaders) return refuse_order();
  phase_ = Phase::kBody;
  const ext_proc::HttpHeaders& headers = message.request_headers();
  if (message.has_protocol_config()) {
    modes_ = {true, message.protocol_config().request_body_mode(),
              message.protocol_config().response_body_mode()};
  }
  const std::string_view own = header_of(headers, "x-request-id").value_or("");
  request_.id = is_usable_id(own) ? std::string(own) : desk_.core.make_request_id();
  request_.subset = subset_of(message);
  request_.key = key_of(headers, desk_.core);
  if (!request_.key) {
    answer_now(
        picker_error(401, "A valid key is needed: Authorization: Bearer KEY.", "invalid_api_key"),
        RequestEnd::kFailed);
  } else if (headers.end_of_stream()) {
    on_request_without_body(headers);
  } else if (modes_.request == ext_proc::BUFFERED) {
    // Envoy sends the body once its headers are answered.
    ext_proc::ProcessingResponse answer;
    answer.mutable_request_headers();
    stream_->send(answer);
  } else if (modes_.request != ext_proc::FULL_DUPLEX_STREAMED) {
    answer_now(picker_error(500,
                            "The endpoint picker needs the request_body_mode FULL_DUPLEX_STREAMED "
                            "or BUFFERED.",
                            "body_mode"),
               RequestEnd::kFailed);
  }
}

void PickerCall::on_request_without_body(const ext_proc::HttpHeaders& headers) {
  const std::string_view method = header_of(headers, ":method").value_or("");
  std::string_view path = header_of(headers, ":path").value_or("");
  path = path.substr(0, path.find('?'));
  if (method != "GET" || path != "/v1/models") {
    return answer_now(
        picker_error(404, fmt::format("Unknown request: {} {} without a body", method, path),
                     "unknown_url"),
        RequestEnd::kFailed);
  }
  const std::array<WebHeader, 1> type{{{"content-type", "application/json"}}};
  stream_->send(immediate_answer(200, type, models_json(desk_.core, *request_.key)));
  stream_->finish(grpc::Status::OK);
  phase_ = Phase::kOver;
}

void PickerCall::on_body(const ext_proc::HttpBody& body) {
  if (phase_ != Phase::kBody) return refuse_order();
  const PickerOptions& options = desk_.core.options().picker;
  request_.body.append(body.body());
  desk_.held_bytes += body.body().size();
  if (request_.body.size() > options.body_bytes_max) {
    answer_now(picker_error(413,
                            fmt::format("The body of the request has more than {} bytes.",
                                        options.body_bytes_max),
                            "body_too_large"),
               RequestEnd::kFailed);
  } else if (desk_.held_bytes > options.held_bytes_max) {
    answer_now(
        picker_error(429, "The gateway holds too many requests. Try again later.", "overloaded"),
        RequestEnd::kShed);
  } else if (body.end_of_stream() || modes_.request == ext_proc::BUFFERED) {
    pick();
  }
}

void PickerCall::on_trailers() {
  if (phase_ == Phase::kBody) {
    request_.end = BodyEnd::kOpen;
    pick();
  } else if (phase_ == Phase::kAsked && modes_.request == ext_proc::BUFFERED) {
    ext_proc::ProcessingResponse answer;
    answer.mutable_request_trailers();
    stream_->send(answer);
  } else {
    refuse_order();
  }
}

void PickerCall::pick() {
  auto facts = desk_.reader.read(request_.body);
  if (!facts) {
    return answer_now(bad_request(std::move(facts.error().message), facts.error().param),
                      RequestEnd::kFailed);
  }
  service_ = desk_.core.find_service(facts->model, *request_.key);
  if (service_ == nullptr) {
    return answer_now(
        picker_error(
            404,
            fmt::format("The model '{}' does not exist, or the key may not use it.", facts->model),
            "model_not_found", "model"),
        RequestEnd::kFailed);
  }
  const auto mean = static_cast<std::uint64_t>(service_->tokens.output_mean);
  const std::uint64_t limit = facts->output_tokens_max;
  request_.body_bytes = request_.body.size();
  request_.prompt =
      routed_prompt(request_.body, *facts, {service_->id, service_->tokens, desk_.core.now_wall()});
  target_.output_tokens = limit == 0 ? mean : std::min(limit, mean);
  target_.tokens = request_.prompt.tokens + target_.output_tokens;
  target_.draw = desk_.core.draws().uniform();
  const Instant now = desk_.core.now();
  admission_.emplace(*service_, service_->tenants.of(*request_.key, now), facts->service_class);
  if (admission_->reserve(target_.tokens, now)) return dispatch();
  retry_after_ = std::stoi(admission_->retry_after(now));
  answer_now(admission_->quota_error(), RequestEnd::kShed);
}

PickedEndpoints PickerCall::choose_now(std::size_t waiting) const {
  if (!service_->index) return {};
  return pick_endpoints(desk_.core.router(),
                        {.service = *service_->index,
                         .prompt_tokens = request_.prompt.tokens,
                         .output_tokens = target_.output_tokens,
                         .blocks = request_.prompt.blocks,
                         .block_tokens = request_.prompt.block_tokens,
                         .excluded = {},
                         .waiting = waiting,
                         .draw = target_.draw,
                         .now = desk_.core.now()},
                        request_.subset);
}

void PickerCall::dispatch() {
  const std::size_t waiting = service_->queue.size() + service_->queue.picks();
  PickedEndpoints picked = choose_now(waiting);
  if (picked.decision.outcome == RouteOutcome::kReplica) {
    return answer_route(std::move(picked));
  }
  if (admission_->sheds(desk_.core, picked.decision)) {
    picked.decision.outcome = RouteOutcome::kShed;
    return refuse_waiting(picked);
  }
  // Envoy names other endpoints with another request alone.
  const bool hopeless = request_.subset && !picked.any_eligible;
  if (hopeless || waiting >= desk_.core.options().router.queue_max) {
    refuse_waiting(picked);
  } else {
    record(std::move(picked.decision));
    wait();
  }
}

void PickerCall::record(RouteDecision decision) {
  desk_.core.history().add(request_.id, {.request = {},
                                         .service = service_->id,
                                         .epoch = desk_.core.table().epoch,
                                         .tokens = target_.tokens,
                                         .prompt_tokens = request_.prompt.tokens,
                                         .time = desk_.core.now_wall(),
                                         .decision = std::move(decision)});
}

void PickerCall::wait() {
  phase_ = Phase::kWaiting;
  place_ = desk_.waiting.insert(desk_.waiting.end(), this);
  service_->queue.add_pick();
  desk_.look_later();
  if (modes_.request != ext_proc::BUFFERED) return;
  // Envoy takes it where its max_message_timeout allows; else its own message_timeout holds.
  ext_proc::ProcessingResponse more_time;
  const Duration limit = std::max(desk_.core.options().queue_wait, service_->waits.wakes_in);
  more_time.mutable_override_message_timeout()->set_seconds(limit.count_ns() / 1'000'000'000 + 1);
  stream_->send(more_time);
}

void PickerCall::leave_queue() {
  if (!place_) return;
  desk_.waiting.erase(*std::exchange(place_, std::nullopt));
  service_->queue.remove_pick();
}

RouteOutcome PickerCall::try_again() {
  // Proxied requests that wait come first.
  if (!service_->queue.empty()) return RouteOutcome::kWait;
  PickedEndpoints picked = choose_now(0);
  const RouteOutcome outcome = picked.decision.outcome;
  if (outcome == RouteOutcome::kReplica) {
    leave_queue();
    answer_route(std::move(picked));
  }
  return outcome;
}

void PickerCall::check_time(Instant now, RouteOutcome outcome) {
  const GatewayOptions& options = desk_.core.options();
  const Duration limit = admission_->patience(
      outcome == RouteOutcome::kNone ? replica_wait(*service_, options) : options.queue_wait);
  if (now >= arrived_ + limit) refuse_waiting(choose_now(0));
}

void PickerCall::charge(std::uint32_t slot, const RouteLoad& load) {
  target_.charge = desk_.core.router().charge(slot, load, request_.prompt.blocks, desk_.core.now());
}

void PickerCall::answer_route(PickedEndpoints picked) {
  phase_ = Phase::kAsked;
  admission_->serve();
  charge(picked.decision.slot, picked.decision.load);
  const bool has_key = !desk_.core.options().picker.tenant;
  const PickedRoute route{.endpoints = picked.text(),
                          .request_id = request_.id,
                          // The key is one of the cluster: no replica gets to see it.
                          .authorization = has_key ? PickedRoute::Authorization::kRemoved
                                                   : PickedRoute::Authorization::kStays};
  record(std::move(picked.decision));
  target_.endpoints = std::move(picked.endpoints);
  ext_proc::ProcessingResponse answer;
  if (modes_.request == ext_proc::BUFFERED) {
    set_route(route, answer, *answer.mutable_request_body()->mutable_response());
    stream_->send(answer);
  } else {
    set_route(route, answer, *answer.mutable_request_headers()->mutable_response());
    stream_->send(answer);
    give_back(request_.body, request_.end, *stream_);
  }
  drop_body();
}

void PickerCall::on_answer_headers(const ext_proc::ProcessingRequest& message) {
  if (phase_ == Phase::kHeaders || phase_ == Phase::kAnswering) return refuse_order();
  // Envoy has answered by itself, where it waits for no route any more.
  if (phase_ != Phase::kAsked) settle(RequestEnd::kCancelled);
  drop_body();
  phase_ = Phase::kAnswering;
  const ext_proc::HttpHeaders& headers = message.response_headers();
  answer_.begin(status_of(headers), header_of(headers, "content-type").value_or(""));
  if (target_.charge) note_served(served_of(message));
  ext_proc::ProcessingResponse answer;
  set_header(*answer.mutable_response_headers()->mutable_response()->mutable_header_mutation(),
             "x-request-id", request_.id);
  stream_->send(answer);
  if (headers.end_of_stream()) settle(answer_.whole_end());
}

void PickerCall::note_served(std::string_view endpoint) {
  RouterState& router = desk_.core.router();
  const auto served = std::ranges::find(target_.endpoints, endpoint, &PickedEndpoint::address);
  if (served != target_.endpoints.end() && served != target_.endpoints.begin()) {
    // Envoy has tried those before it in vain.
    for (auto each = target_.endpoints.begin(); each != served; ++each) {
      if (const auto slot = slot_of(router, each->key)) {
        router.note_failure(*slot, desk_.core.now());
        service_->canary.add_failure(router.replica(*slot).revision);
      }
    }
    router.credit(*std::exchange(target_.charge, std::nullopt), {}, desk_.core.now());
    const RequestWork work{request_.prompt.tokens, target_.output_tokens};
    if (const auto slot = slot_of(router, served->key)) charge(*slot, {.work = work});
  }
  if (!target_.charge) return;
  if (answer_.status() == 503) {
    router.note_failure(target_.charge->slot, desk_.core.now());
  } else {
    router.note_success(target_.charge->slot);
  }
}

void PickerCall::on_answer_body(const ext_proc::HttpBody& body) {
  if (phase_ != Phase::kAnswering) return refuse_order();
  answer_.add(body.body(), desk_.core.now());
  if (target_.charge && answer_.is_events() && !body.body().empty()) {
    desk_.core.router().begin(*target_.charge, desk_.core.now());
  }
  ext_proc::ProcessingResponse answer;
  ext_proc::BodyResponse& passed = *answer.mutable_response_body();
  if (modes_.answer != ext_proc::FULL_DUPLEX_STREAMED) {
    stream_->send(answer);
  } else {
    const BodyEnd end = body.end_of_stream() ? BodyEnd::kEnded : BodyEnd::kOpen;
    for (ext_proc::StreamedBodyResponse& piece : pieces_of(body.body(), end)) {
      *passed.mutable_response()->mutable_body_mutation()->mutable_streamed_response() =
          std::move(piece);
      stream_->send(answer);
    }
  }
  if (body.end_of_stream() || modes_.answer == ext_proc::BUFFERED) settle(answer_.whole_end());
}

void PickerCall::on_answer_trailers() {
  if (phase_ != Phase::kAnswering) return refuse_order();
  ext_proc::ProcessingResponse answer;
  answer.mutable_response_trailers();
  stream_->send(answer);
  settle(answer_.whole_end());
}

void PickerCall::refuse_waiting(const PickedEndpoints& picked) {
  const std::string& model = service_->model;
  record(picked.decision);
  if (picked.decision.outcome != RouteOutcome::kNone) {
    double wait_s = 0;
    for (const RouteCandidate& each : picked.decision.candidates) {
      wait_s = std::max(wait_s, each.expected.wait_s);
    }
    retry_after_ = static_cast<int>(std::clamp(wait_s + 1, 1.0, 60.0));
    return answer_now(
        picker_error(429,
                     fmt::format("The replicas of model '{}' are full. Try again later.", model),
                     "overloaded"),
        RequestEnd::kShed);
  }
  std::string why = fmt::format("Model '{}' has no replica that is ready.", model);
  if (!picked.any_eligible && !picked.decision.candidates.empty()) {
    why = fmt::format("Model '{}' has no replica {}.", model,
                      request_.subset ? "among the endpoints that the request is limited to"
                                      : "whose endpoint is an address in numbers");
  }
  answer_now(picker_error(503, std::move(why), "no_replica"), RequestEnd::kFailed);
}

void PickerCall::answer_now(const ErrorAnswer& error, RequestEnd end) {
  const std::string seconds = fmt::to_string(retry_after_);
  std::vector<WebHeader> headers = {{"content-type", "application/json"},
                                    {"x-request-id", request_.id}};
  if (error.status == 429 || error.status == 503) headers.push_back({"retry-after", seconds});
  ext_proc::ProcessingResponse answer = immediate_answer(error.status, headers, error_json(error));
  answer.mutable_immediate_response()->set_details(std::string(error.code));
  stream_->send(answer);
  stream_->finish(grpc::Status::OK);
  settle(end);
  drop_body();
  phase_ = Phase::kOver;
}

void PickerCall::settle(RequestEnd end) {
  leave_queue();
  if (service_ == nullptr) return;
  GatewayService& service = *std::exchange(service_, nullptr);
  GatewayCore& core = desk_.core;
  EndedRequest ended = answer_.ended(end, arrived_, request_.prompt.tokens);
  ended.over_limit = admission_ && admission_->refused();
  service.stats.add(ended, core.now());
  admission_->count(ended);
  // The tenant is charged the tokens used, where Envoy shows them.
  double used = 0;
  if (answer_.knows_tokens()) {
    used = static_cast<double>(ended.prompt_tokens + ended.output_tokens);
  } else if (end == RequestEnd::kCompleted) {
    used = static_cast<double>(target_.tokens);
  } else if (end == RequestEnd::kCancelled && target_.charge) {
    used = static_cast<double>(request_.prompt.tokens);
  }
  admission_->settle(used, core.now());
  RouteDone done;
  const std::optional<std::uint64_t> cached = answer_.cached_tokens();
  if (end == RequestEnd::kCompleted && answer_.knows_tokens()) {
    done = learn(service.tokens, {.body_bytes = request_.body_bytes,
                                  .prompt = ended.prompt_tokens,
                                  .cached = cached.value_or(0),
                                  .output = ended.output_tokens,
                                  .tpot_s = ended.tpot.count_seconds()});
    if (target_.charge && cached) core.router().note_cached(*target_.charge, *cached);
  }
  if (const auto charge = std::exchange(target_.charge, std::nullopt)) {
    EndedRequest of_replica = ended;
    if (answer_.status() >= 400) of_replica.end = RequestEnd::kFailed;
    service.canary.add(core.router().replica(charge->slot).revision, of_replica);
    core.router().credit(*charge, done, core.now());
  }
  core.pump(service);
  desk_.look_soon();
}

void PickerCall::drop_body() {
  desk_.held_bytes -= request_.body.size();
  request_.body = {};
}

}  // namespace orrery
