#include "twin/serving/service_run.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/assert.hpp"
#include "twin/gateways/modelled_gateways.hpp"
#include "twin/serving/replica_fleet.hpp"
#include "twin/world/event_queue.hpp"

namespace orrery {
namespace {

constexpr Picoseconds kPsPerNs = 1000;

Picoseconds ps_of(Instant at) { return at.ns() * kPsPerNs; }
/// The whole nanosecond that a time lies in.
Instant instant_of(Picoseconds at) { return Instant::from_ns(at / kPsPerNs); }

enum class RunEventKind : std::uint8_t { kCrash, kTick, kReady, kPatience, kTell, kReceived };

struct RunEvent {
  RunEventKind kind = RunEventKind::kTick;
  std::uint32_t subject = 0;  ///< a crash, a replica or a request
};

/// A request between the replica that computes its prompt and the one that answers.
struct SentPrompt {
  ModelledWay way;
  std::uint32_t attempt = 0;  ///< of the replica that answers
};

class ServiceRun {
 public:
  ServiceRun(const RequestTrace& trace, const ServiceSetup& setup)
      : trace_(trace),
        setup_(setup),
        fleet_(setup_, trace.blocks),
        gateways_(trace, setup_),
        book_(trace, setup.targets) {
    if (!setup.crashes.empty()) elsewhere_.generated.resize(trace.requests.size());
  }

  ServiceFigures play() {
    for (std::uint32_t i = 0; i < setup_.crashes.size(); ++i) {
      agenda_.push(Instant() + setup_.crashes[i].at, 0, {RunEventKind::kCrash, i});
    }
    if (setup_.scaler) agenda_.push(Instant() + setup_.tick, 0, {RunEventKind::kTick, 0});
    if (setup_.gateways > 1 && setup_.tell > Duration()) tell_later();
    routes_changed();
    while (book_.open() > 0) {
      const Picoseconds arrival =
          next_ < trace_.requests.size() ? book_.arrival_of(next_) : kNeverPs;
      const Picoseconds event = agenda_.empty() ? kNeverPs : ps_of(agenda_.next());
      const Picoseconds engine = fleet_.next();
      now_ = std::min({arrival, event, engine});
      if (now_ > kLastPs) break;
      if (now_ == arrival) {
        arrive(next_++);
      } else if (now_ == event) {
        happen(agenda_.pop());
      } else {
        end_steps(fleet_.due());
      }
    }
    refuse_rest();
    book_.report(figures_);
    fleet_.report(figures_, now_ > kLastPs ? last_ : now_);
    return figures_;
  }

  [[nodiscard]] const RequestBook& book() const { return book_; }

 private:
  /// What replicas have computed of requests that others answer, or go on with.
  struct Elsewhere {
    std::vector<std::uint32_t> generated;  ///< tokens of answers that moved, by request
    std::unordered_map<std::uint32_t, SentPrompt> prompts;   ///< by request
    std::unordered_map<std::uint32_t, Instant> sends_until;  ///< by replica of duty prefill
  };

  void arrive(std::uint32_t request) {
    last_ = now_;
    const TraceRequest& asked = trace_.requests[request];
    ++window_.arrived;
    if (!fleet_.fits_any(asked.prompt_tokens, asked.output_tokens)) {
      refuse(request, RequestFate::kFailed);
      return;
    }
    offer(request, ModelledGateway::Coming::kNew);
  }

  void refuse(std::uint32_t request, RequestFate fate) {
    ++window_.refused;
    book_.refuse(request, fate);
  }

  void offer(std::uint32_t request, ModelledGateway::Coming coming) {
    const auto dispatch = gateways_.offer(request, coming, instant_of(now_));
    if (dispatch.displaced) refuse(*dispatch.displaced, RequestFate::kShed);
    switch (dispatch.answer) {
      case ModelledGateway::Answer::kSent:
        send(request, dispatch.way);
        break;
      case ModelledGateway::Answer::kWaits: {
        ++figures_.detours.waited;
        const bool batch = trace_.requests[request].request_class == RequestClass::kBatch;
        const Duration wait = batch ? setup_.batch_wait : setup_.queue_wait;
        agenda_.push(instant_of(now_) + wait, 0, {RunEventKind::kPatience, request});
        break;
      }
      case ModelledGateway::Answer::kRefused:
        refuse(request, RequestFate::kShed);
        break;
    }
  }

  void send(std::uint32_t request, const ModelledWay& way) {
    if (!way.prompt) return compute(request, way.replica, EngineRequest::Prompt::kComputed);
    ++figures_.detours.apart;
    const TraceRequest& asked = trace_.requests[request];
    EngineModel& engine = fleet_.engine(*way.prompt);
    if (!engine.fits(asked.prompt_tokens, 1)) {
      gateways_.keep_together(request, instant_of(now_));
      return compute(request, way.replica, EngineRequest::Prompt::kComputed);
    }
    elsewhere_.prompts[request] = {way, fleet_.attempt_of(way.replica)};
    engine.submit({.id = request,
                   .prompt_tokens = asked.prompt_tokens,
                   .output_tokens = 1,
                   .chain = trace_.chain_of(asked)},
                  now_);
    fleet_.touch(*way.prompt);
  }

  void compute(std::uint32_t request, std::uint32_t replica, EngineRequest::Prompt prompt) {
    const TraceRequest& asked = trace_.requests[request];
    EngineModel& engine = fleet_.engine(replica);
    if (!engine.fits(asked.prompt_tokens, asked.output_tokens)) {
      // The engine refuses what its context does not hold.
      gateways_.end({.request = request}, instant_of(now_));
      refuse(request, RequestFate::kFailed);
      return;
    }
    engine.submit({.id = request,
                   .prompt_tokens = asked.prompt_tokens,
                   .output_tokens = asked.output_tokens,
                   .generated = elsewhere_.generated.empty() ? 0 : elsewhere_.generated[request],
                   .chain = trace_.chain_of(asked),
                   .prompt = prompt},
                  now_);
    fleet_.touch(replica);
  }

  /// A replica that computes prompts alone has begun or ended one, which it then sends on; those
  /// before it go first.
  void send_on(const EngineEvent& event) {
    if (event.kind == EngineEventKind::kFirst) {
      gateways_.send_on(event.id, event.cached_tokens, instant_of(now_));
      return;
    }
    const ModelledWay& way = elsewhere_.prompts.at(event.id).way;
    Instant& sends_until = elsewhere_.sends_until[*way.prompt];
    sends_until = std::max(sends_until, instant_of(now_)) + Duration::from_seconds(way.transfer_s);
    agenda_.push(sends_until, 0, {RunEventKind::kReceived, event.id});
  }

  /// Whether the replica that is to answer runs on since the request was sent.
  [[nodiscard]] bool is_there(const SentPrompt& sent) const {
    const ModelledPhase phase = fleet_.phase_of(sent.way.replica);
    const bool runs = phase == ModelledPhase::kReady || phase == ModelledPhase::kDraining;
    return runs && fleet_.attempt_of(sent.way.replica) == sent.attempt;
  }

  void answer(std::uint32_t request, EngineRequest::Prompt prompt) {
    const SentPrompt sent = elsewhere_.prompts.extract(request).mapped();
    if (is_there(sent)) return compute(request, sent.way.replica, prompt);
    gateways_.lose(request, instant_of(now_));
    ++figures_.detours.retried;
    offer(request, ModelledGateway::Coming::kAgain);
  }

  void end_steps(std::uint32_t replica) {
    EngineModel& engine = fleet_.engine(replica);
    bool ended = false;
    const bool prompts_alone = fleet_.group_of(replica).duty == ReplicaDuty::kPrefill;
    for (const EngineEvent& event : engine.complete()) {
      if (prompts_alone) {
        send_on(event);
        ended = true;
        continue;
      }
      const Picoseconds seen = event.time + picoseconds(fleet_.group_of(replica).request_s);
      if (event.kind == EngineEventKind::kFirst) {
        gateways_.begin(event.id, event.cached_tokens, instant_of(now_));
        book_.begin(event.id, seen);
        continue;
      }
      const std::uint32_t tokens = trace_.requests[event.id].output_tokens;
      book_.complete(event.id, seen);
      count_answer(event.id);
      // Other replicas computed parts of an answer that moved: it does not show this one's pace.
      const bool moved = !elsewhere_.generated.empty() && elsewhere_.generated[event.id] > 0;
      gateways_.end({.request = event.id,
                     .output_tokens = tokens,
                     .tpot_s = moved ? 0 : book_.tpot_s(event.id)},
                    instant_of(now_));
      last_ = std::max(last_, seen);
      ended = true;
    }
    fleet_.touch(replica);
    if (!ended) return;
    (void)fleet_.retire(replica, now_);
    serve_waiting();
  }

  void count_answer(std::uint32_t request) {
    AnsweredRequests& answered = window_.answered;
    ++answered.requests;
    answered.prompt_tokens += trace_.requests[request].prompt_tokens;
    answered.output_tokens += trace_.requests[request].output_tokens;
    answered.ttft_s += book_.ttft_s(request);
    answered.tpot_s += book_.tpot_s(request);
    if (!book_.is_within(request)) ++answered.late;
  }

  void serve_waiting() {
    while (const auto sent = gateways_.next(instant_of(now_))) send(sent->request, sent->way);
  }

  void routes_changed() {
    gateways_.set_replicas(fleet_.ready());
    std::uint32_t there = 0;
    for (std::uint32_t i = 0; i < fleet_.size(); ++i) {
      if (fleet_.phase_of(i) != ModelledPhase::kGone) ++there;
    }
    figures_.replicas.most = std::max(figures_.replicas.most, there);
  }

  void happen(const RunEvent& event) {
    switch (event.kind) {
      case RunEventKind::kCrash:
        crash(setup_.crashes[event.subject].replica);
        break;
      case RunEventKind::kTick:
        tick();
        break;
      case RunEventKind::kReady:
        if (fleet_.phase_of(event.subject) == ModelledPhase::kStarting) {
          fleet_.set_ready(event.subject);
          routes_changed();
          serve_waiting();
        }
        break;
      case RunEventKind::kTell:
        if (gateways_.tell()) serve_waiting();
        tell_later();
        break;
      case RunEventKind::kReceived:
        answer(event.subject, EngineRequest::Prompt::kReceived);
        break;
      case RunEventKind::kPatience:
        if (gateways_.expire(event.subject)) refuse(event.subject, RequestFate::kShed);
        break;
    }
  }

  void tell_later() { agenda_.push(instant_of(now_) + setup_.tell, 0, {RunEventKind::kTell, 0}); }

  void crash(std::uint32_t wanted) {
    const std::vector<ReadyReplica> ready = fleet_.ready();
    if (ready.empty()) return;
    const std::uint32_t replica = ready[wanted % ready.size()].number;
    const std::vector<EngineRequest> lost = fleet_.crash(replica, now_);
    start(replica);
    for (const EngineRequest& each : lost) {
      if (elsewhere_.prompts.contains(each.id)) {
        gateways_.keep_together(each.id, instant_of(now_));
      } else {
        gateways_.lose(each.id, instant_of(now_));
      }
    }
    routes_changed();
    for (const EngineRequest& each : lost) {
      if (elsewhere_.prompts.contains(each.id)) {
        answer(each.id, EngineRequest::Prompt::kComputed);
        continue;
      }
      // Only tokens that the client has seen are part of the answer.
      const bool begun = book_.has_begun(each.id);
      const std::uint32_t last = trace_.requests[each.id].output_tokens - 1;
      elsewhere_.generated[each.id] = begun ? std::min(each.generated, last) : 0;
      ++(begun ? figures_.detours.moved : figures_.detours.retried);
      offer(each.id, ModelledGateway::Coming::kAgain);
    }
  }

  void start(std::uint32_t replica) {
    agenda_.push(instant_of(now_) + fleet_.group_of(replica).cold_start, 0,
                 {RunEventKind::kReady, replica});
  }

  void tick() {
    window_.length = setup_.tick;
    window_.begin = (instant_of(now_) - Instant()) - setup_.tick;
    window_.waiting = gateways_.waiting();
    window_.in_flight = gateways_.in_flight();
    for (std::size_t group = 0; group < setup_.groups.size(); ++group) {
      window_.ready.push_back(fleet_.count(group, ModelledPhase::kReady));
      window_.starting.push_back(fleet_.count(group, ModelledPhase::kStarting));
    }
    const std::vector<std::uint32_t> wanted = setup_.scaler(window_);
    ORRERY_ASSERT(wanted.size() == setup_.groups.size(), "a number for each group");
    for (std::size_t group = 0; group < wanted.size(); ++group) scale(group, wanted[group]);
    window_ = {};
    agenda_.push(instant_of(now_) + setup_.tick, 0, {RunEventKind::kTick, 0});
  }

  void scale(std::size_t group, std::uint32_t wanted) {
    std::uint32_t there =
        fleet_.count(group, ModelledPhase::kReady) + fleet_.count(group, ModelledPhase::kStarting);
    if (there == wanted) return;
    ++figures_.replicas.orders;
    for (; there < wanted; ++there) {
      start(fleet_.order(group, ModelledPhase::kStarting, now_));
    }
    // The newest go first: those that still start, then those with the coldest caches.
    for (std::uint32_t i = fleet_.size(); i > 0 && there > wanted; --i) {
      const std::uint32_t replica = i - 1;
      const ModelledPhase phase = fleet_.phase_of(replica);
      const bool may = phase == ModelledPhase::kReady || phase == ModelledPhase::kStarting;
      if (!may || &fleet_.group_of(replica) != &setup_.groups[group]) continue;
      fleet_.drain(replica, now_);
      --there;
    }
    routes_changed();
  }

  /// No replica will come for these.
  void refuse_rest() {
    for (std::uint32_t i = 0; i < trace_.requests.size() && book_.open() > 0; ++i) {
      if (book_.fate_of(i) == RequestFate::kOpen) book_.refuse(i, RequestFate::kShed);
    }
  }

  const RequestTrace& trace_;
  ServiceSetup setup_;  ///< a copy, as its scaler has a state
  ReplicaFleet fleet_;
  ModelledGateways gateways_;
  RequestBook book_;
  EventQueue<RunEvent> agenda_;
  Elsewhere elsewhere_;
  ServiceWindow window_;
  ServiceFigures figures_;
  Picoseconds now_ = 0;
  Picoseconds last_ = 0;  ///< arrival or end
  std::uint32_t next_ = 0;
};

}  // namespace

ServiceFigures run_service(const RequestTrace& trace, const ServiceSetup& setup) {
  return ServiceRun(trace, setup).play();
}

ServiceFigures run_service(const RequestTrace& trace, const ServiceSetup& setup,
                           const std::function<void(const RequestBook&)>& show) {
  ServiceRun run(trace, setup);
  const ServiceFigures figures = run.play();
  show(run.book());
  return figures;
}

}  // namespace orrery
