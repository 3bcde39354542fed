#include "inference/server/serving_replica.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/format/field_writer.hpp"
#include "inference/engine/model_files.hpp"

namespace orrery {

Result<std::unique_ptr<ServingReplica>> ServingReplica::start(RealLoop& loop, Env env,
                                                              Options options, Callback ended) {
  auto replica = std::make_unique<ServingReplica>(env, std::move(options), std::move(ended));
  Result<std::unique_ptr<WebServer>> web = WebServer::listen(
      loop, {.address = replica->options_.listen, .error_body = web_error_body}, replica->server_);
  if (!web) return forward_error(web);
  replica->web_ = std::move(*web);
  EngineThread::Options engine = std::exchange(replica->options_.engine, {});
  if (std::string& address = replica->options_.kv_events; !address.empty()) {
    Result<std::unique_ptr<KvEventPublisher>> events = KvEventPublisher::open(address);
    if (!events) return forward_error(events);
    address = replica->reached_at((*events)->address());
    engine.cache_events = *std::move(events);
  }
  replica->reports_.phase("loading");
  replica->engine_ = std::make_unique<EngineThread>(std::move(engine), env.inbox, *replica);
  return replica;
}

ServingReplica::ServingReplica(Env env, Options options, Callback ended)
    : options_(std::move(options)),
      ended_(std::move(ended)),
      reports_(options_.progress),
      server_(env, options_.server) {}

std::string ServingReplica::endpoint() const { return reached_at(web_->address()); }

std::string ServingReplica::reached_at(const std::string& address) const {
  const std::size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  if (host != "0.0.0.0" && host != "[::]") return address;
  const bool v6 = options_.host.find(':') != std::string::npos && options_.host.front() != '[';
  return (v6 ? "[" + options_.host + "]" : options_.host) + address.substr(colon);
}

void ServingReplica::on_loaded(const ServedModel&) { reports_.phase("warming"); }

void ServingReplica::on_ready(const ReadyEngine& engine) {
  server_.ready(engine, *engine_);
  reports_.ready({.address = endpoint(),
                  .slots = engine.limits.slots,
                  .kv_tokens = engine.limits.blocks * KvBlockPool::kTokens,
                  .kv_events = options_.kv_events,
                  .speed = engine.speed});
  if (!options_.announce) return;
  const std::string name =
      options_.server.model.empty() ? engine.model->name : options_.server.model;
  std::string line = fmt::format(
      "{} ({}, {} weights in {}) at http://{}/v1: {} slots of {} tokens, {} may wait, {} KV "
      "blocks; "
      "prompts "
      "{:.0f} tokens/s, "
      "a step {:.2g} ms, with all slots {:.2g} ms",
      name, engine.model->origin, engine.model->model.weights(),
      word_of(engine.model->model.format()), endpoint(), engine.limits.slots,
      engine.model->model.config().sequence, options_.server.waiting_max, engine.limits.blocks,
      engine.speed.prefill_tokens_s, 1e3 * engine.speed.step_s, 1e3 * engine.speed.step_full_s);
  if (!options_.kv_events.empty()) line += "; KV events at " + options_.kv_events;
  for (const std::string& why : engine.model->passed_over) line += "\npassed over: " + why;
  options_.announce(line);
}

void ServingReplica::on_failed(const Error& error) {
  failure_ = error;
  ended_();
}

void ServingReplica::on_step(const std::vector<GenerationDelta>& deltas,
                             const EngineStatus& status) {
  server_.take(deltas, status);
}

void ServingReplica::drain() {
  reports_.phase("draining");
  server_.drain([this] { web_->stop([this] { ended_(); }); });
}

}  // namespace orrery
