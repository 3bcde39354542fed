#include "api/log_reading.hpp"

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr Duration kAskAgain = Duration::milliseconds(200);

}  // namespace

void LogReading::begin(Controller& controller, const Env& env, const v1::ReadLogRequest& request,
                       std::shared_ptr<Call> call) {
  std::make_shared<LogReading>(controller, env, request, std::move(call))->step();
}

LogReading::LogReading(Controller& controller, const Env& env, v1::ReadLogRequest request,
                       std::shared_ptr<Call> call)
    : controller_(controller),
      env_(env),
      request_(std::move(request)),
      call_(std::move(call)),
      job_(JobId::at(request_.id())),
      attempt_(request_.attempt()),
      from_(request_.tail() ? kFromTail : request_.from()) {
  if (attempt_ == 0) attempt_ = request_.from_attempt();
  if (attempt_ == 0) attempt_ = controller_.state().job(job_).attempt;
}

bool LogReading::attempt_over() const {
  if (!controller_.state().has(job_)) return true;
  const Job& job = controller_.state().job(job_);
  return job.attempt > attempt_ || !holds_devices(job.phase);
}

void LogReading::later() {
  env_.timers.call_after(kAskAgain, [self = shared_from_this()] { self->step(); });
}

void LogReading::next_attempt() {
  if (!controller_.state().has(job_)) return call_->finish({});
  const Job& job = controller_.state().job(job_);
  const bool follows = request_.follow() && request_.attempt() == 0;
  if (!follows || (ended(job.phase) && job.attempt == attempt_)) return call_->finish({});
  if (job.attempt > attempt_) {
    from_ = 0;
    ++attempt_;
    v1::LogChunk chunk;
    chunk.set_note(fmt::format("attempt {} of job {}", attempt_, job_.value()));
    call_->send(chunk);
  }
  later();
}

void LogReading::step() {
  if (!call_->wanted()) return call_->finish({CallCode::kCancelled, ""});
  if (attempt_ == 0) return next_attempt();
  over_ = attempt_over();
  controller_.ask_log(
      {{job_, attempt_}, {request_.gang(), request_.rank(), from_}},
      [self = shared_from_this()](const AttemptLogPart& part) { self->on_part(part); });
}

void LogReading::on_part(const AttemptLogPart& part) {
  if (!part.found && over_ && !request_.follow()) {
    return call_->finish(
        {CallCode::kNotFound, fmt::format("nothing is kept of rank {} in attempt {} of job {}",
                                          request_.rank(), attempt_, job_.value())});
  }
  if (part.found && !part.part.bytes.empty()) {
    v1::LogChunk chunk;
    chunk.set_bytes(part.part.bytes);
    chunk.set_attempt(attempt_);
    chunk.set_from(part.part.from);
    if (from_ != kFromTail && part.part.from > from_) chunk.set_skipped(part.part.from - from_);
    call_->send(chunk);
    from_ = part.part.from + part.part.bytes.size();
    // There may be more at once.
    env_.post([self = shared_from_this()] { self->step(); });
    return;
  }
  if (over_) return next_attempt();
  if (!request_.follow()) return call_->finish({});
  later();
}

}  // namespace orrery
