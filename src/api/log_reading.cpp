#include "api/log_reading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/count_text.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr Duration kAskAgain = Duration::milliseconds(200);
/// A node that does not answer for longer, such as during a restart of its agent, is skipped.
constexpr int kMissesMax = 10;
/// A question from this position is answered with the size alone.
constexpr std::uint64_t kFromEnd = kFromTail - 1;
/// A part of a log has at least this many bytes, where the log has them.
constexpr std::uint64_t kScanBytes = std::uint64_t{64} << 10;

/// Reads a time such as "2026-11-24T10:00:00Z", or how long ago.
Result<std::optional<Instant>> since_of(const std::string& text, Instant now) {
  if (text.empty()) return std::nullopt;
  if (text.find('T') != text.npos) {
    const Result<Instant> instant = Instant::parse(text);
    if (instant) return *instant;
  } else if (const Result<Seconds> age = parse<Seconds>(text); age) {
    return now - Duration::from_seconds(age->value());
  }
  return input_error({},
                     fmt::format("since is \"{}\", expected a time (2026-11-24T10:00:00Z) or an "
                                 "age (90s, 10m, 1h30m)",
                                 printable(text, 60)));
}

}  // namespace

void LogReading::begin(Controller& controller, const Env& env, const v1::ReadLogRequest& request,
                       std::shared_ptr<Call> call) {
  const Result<std::optional<Instant>> since = since_of(request.since(), env.clock.now_wall());
  if (!since) return call->fail(since.error());
  const auto reading = std::make_shared<LogReading>(controller, env, request, std::move(call));
  reading->since_ = *since;
  reading->begin_attempt();
}

LogReading::LogReading(Controller& controller, const Env& env, v1::ReadLogRequest request,
                       std::shared_ptr<Call> call)
    : controller_(controller),
      env_(env),
      request_(std::move(request)),
      call_(std::move(call)),
      job_(JobId::at(request_.id())),
      attempt_(request_.attempt()) {
  if (attempt_ == 0) attempt_ = request_.from_attempt();
  if (attempt_ == 0) attempt_ = controller_.state().job(job_).attempt;
}

// --- What is asked ------------------------------------------------------------------------------

void LogReading::ask(std::uint64_t from, void (LogReading::*answered)(const Answer&)) {
  const RankLogs::Place& place = cursors_[at_].place;
  const bool probes = cursors_[at_].stage == Cursor::Stage::kUnknown;
  controller_.sessions().logs().ask(
      {{job_, attempt_}, {place.gang, place.rank, from}, probes ? since_ : std::nullopt},
      [self = shared_from_this(), answered](const Answer& answer) {
        // Posted, because an answer may come inside the question.
        self->env_.post([self, answered, answer] { ((*self).*answered)(answer); });
      });
}

void LogReading::soon(void (LogReading::*what)()) {
  env_.post([self = shared_from_this(), what] { ((*self).*what)(); });
}

void LogReading::later(void (LogReading::*what)()) {
  env_.timers.call_after(kAskAgain, [self = shared_from_this(), what] { ((*self).*what)(); });
}

bool LogReading::attempt_over() const {
  if (!controller_.state().has(job_)) return true;
  const Job& job = controller_.state().job(job_);
  return job.attempt > attempt_ || !holds_devices(job.phase);
}

bool LogReading::resumed() const {
  return request_.from_attempt() != 0 && request_.from_attempt() == attempt_;
}

void LogReading::note(const std::string& text) {
  v1::LogChunk chunk;
  chunk.set_note(text);
  call_->send(chunk);
}

// --- Which ranks there are ----------------------------------------------------------------------

void LogReading::begin_attempt() {
  if (!call_->wanted()) return call_->finish({CallCode::kCancelled, ""});
  cursors_.clear();
  at_ = 0;
  if (attempt_ == 0) return next_attempt();
  for (const RankLogs::Place& place : controller_.sessions().logs().places({job_, attempt_})) {
    const std::uint32_t gang = request_.has_gang() ? request_.gang() : place.gang;
    const bool first_gang = !request_.has_rank() || request_.has_gang() || place.gang == 0;
    if (gang != place.gang || !first_gang) continue;
    const Topology& topology = *controller_.state().setup().topology;
    Cursor cursor{.place = place, .node = topology.node_name(place.node)};
    if (!request_.node().empty() && cursor.node != request_.node()) continue;
    cursors_.push_back(cursor);
  }
  soon(&LogReading::probe);
}

/// Asks each rank for the size of its log; a node that failed to answer once is not asked again.
void LogReading::probe() {
  if (!call_->wanted()) return call_->finish({CallCode::kCancelled, ""});
  over_ = attempt_over();
  while (at_ < cursors_.size()) {
    const auto asked = cursors_.begin() + static_cast<std::ptrdiff_t>(at_);
    const bool silent = std::any_of(cursors_.begin(), asked, [&](const Cursor& other) {
      return other.node == asked->node && other.source == Source::kSilent;
    });
    if (!silent) break;
    cursors_[at_++].source = Source::kSilent;
  }
  if (at_ == cursors_.size()) return choose();
  ask(kFromEnd, &LogReading::on_probe);
}

void LogReading::on_probe(const Answer& answer) {
  Cursor& cursor = cursors_[at_];
  cursor.source = answer.source;
  if (answer.part.found) {
    begin_at(cursor, answer);
    if (cursor.stage == Cursor::Stage::kScanned) {
      const std::uint64_t block = cursor.scanned - std::min(cursor.scanned, kScanBytes);
      return ask(block, &LogReading::scan);
    }
  } else if (answer.source == Source::kNode) {
    cursor.stage = Cursor::Stage::kAbsent;
  }
  ++at_;
  soon(&LogReading::probe);
}

void LogReading::begin_at(Cursor& cursor, const Answer& answer) {
  cursor.stage = Cursor::Stage::kRead;
  cursor.size = answer.part.size;
  if (resumed()) {
    const auto position = std::find_if(
        request_.positions().begin(), request_.positions().end(), [&](const v1::LogPosition& each) {
          return each.gang() == cursor.place.gang && each.rank() == cursor.place.rank;
        });
    const bool named = request_.positions().empty() && cursor.place.gang == request_.gang() &&
                       cursor.place.rank == request_.rank();
    if (named) cursor.from = request_.from();
    if (position != request_.positions().end()) cursor.from = position->from();
    if (named || position != request_.positions().end()) return;
  }
  if (request_.last_block()) cursor.from = kFromTail;
  if (since_) {
    cursor.earliest = std::min(answer.part.since_from.value_or(0), cursor.size);
    cursor.from = cursor.earliest;
    if (!answer.part.since_from) {
      note(
          fmt::format("when rank {} wrote its lines is not known: its log is shown from the "
                      "beginning",
                      cursor.place.rank));
    }
  }
  if (!request_.has_tail()) return;
  cursor.from = cursor.scanned = cursor.size;
  cursor.lines_left = request_.tail();
  if (cursor.lines_left > 0 && cursor.size > cursor.earliest) {
    cursor.stage = Cursor::Stage::kScanned;
  }
}

/// Looks for the start of the last lines in the bytes before `scanned`.
void LogReading::scan(const Answer& answer) {
  Cursor& cursor = cursors_[at_];
  const LogPart& part = answer.part.part;
  const std::uint64_t asked = cursor.scanned - std::min(cursor.scanned, kScanBytes);
  const std::uint64_t block = std::max(asked, part.from);
  const bool whole = answer.part.found && part.from + part.bytes.size() >= cursor.scanned;
  bool found = !whole;
  for (std::uint64_t end = cursor.scanned; !found && end > block; --end) {
    if (part.bytes[end - 1 - part.from] != '\n' || end == cursor.size) continue;
    if (--cursor.lines_left > 0) continue;
    cursor.from = end;
    found = true;
  }
  if (!found) {
    cursor.scanned = block;
    cursor.from = part.from > asked ? 0 : block;  // 0: missing bytes are counted
    found = cursor.from <= cursor.earliest;
  }
  cursor.from = std::max(cursor.from, cursor.earliest);
  if (!found) {
    if (!call_->wanted()) return call_->finish({CallCode::kCancelled, ""});
    return ask(block - std::min(block, kScanBytes), &LogReading::scan);
  }
  cursor.stage = Cursor::Stage::kRead;
  ++at_;
  soon(&LogReading::probe);
}

/// Returns "ranks 0 to 3 and 8"; for several gangs "rank 0 of gang 1, ..".
std::string LogReading::ranks_text() const {
  std::vector<std::string> names;
  bool gangs = false;
  for (const Cursor& cursor : cursors_) gangs = gangs || cursor.place.gang > 0;
  constexpr std::size_t kShown = 20;
  for (const Cursor& cursor : cursors_) {
    if (cursor.stage != Cursor::Stage::kRead) continue;
    names.push_back(gangs ? fmt::format("{}.{}", cursor.place.gang, cursor.place.rank)
                          : fmt::format("{}", cursor.place.rank));
  }
  if (names.size() == 1) return "rank " + names[0];
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return fmt::format("ranks {}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// Keeps only the rank that is named. Returns false where there is none; the call was finished with
/// that error.
bool LogReading::choose_rank() {
  const auto named = std::find_if(cursors_.begin(), cursors_.end(), [&](const Cursor& cursor) {
    return cursor.place.rank == request_.rank();
  });
  const bool exists = named != cursors_.end() && named->stage != Cursor::Stage::kAbsent;
  const bool may_come = named != cursors_.end() && !over_;
  if (exists || may_come) {
    cursors_ = {*named};
    return true;
  }
  const bool any = std::any_of(cursors_.begin(), cursors_.end(), [](const Cursor& cursor) {
    return cursor.stage == Cursor::Stage::kRead;
  });
  call_->finish(
      {CallCode::kNotFound,
       fmt::format("attempt {} of job {} has no rank {}{}{}", attempt_, job_.value(),
                   request_.rank(), request_.node().empty() ? "" : " on " + request_.node(),
                   any ? "; it has " + ranks_text() : ", and no log of it is kept")});
  return false;
}

void LogReading::choose() {
  if (request_.has_rank() && !choose_rank()) return;
  if (over_) {
    std::erase_if(cursors_,
                  [](const Cursor& cursor) { return cursor.stage == Cursor::Stage::kAbsent; });
  }
  if (cursors_.empty() && !request_.follow()) {
    return call_->finish(
        {CallCode::kNotFound,
         fmt::format("no log is kept of attempt {} of job {}{}", attempt_, job_.value(),
                     request_.node().empty() ? "" : " on " + request_.node())});
  }
  if (over_ && !request_.has_rank()) {
    // Ranks without output, such as those that hold nodes for a script of Slurm, get no label
    // either.
    std::erase_if(cursors_, [](const Cursor& cursor) {
      return cursor.stage == Cursor::Stage::kRead && cursor.size == 0;
    });
  }
  ranks_ = static_cast<std::uint32_t>(cursors_.size());
  at_ = 0;
  soon(&LogReading::step);
}

// --- Reading in turn ----------------------------------------------------------------------------

void LogReading::step() {
  if (!call_->wanted()) return call_->finish({CallCode::kCancelled, ""});
  const auto left = [](const Cursor& cursor) {
    return cursor.stage != Cursor::Stage::kDone && cursor.idle == Cursor::Idle::kNo;
  };
  const auto next =
      std::find_if(cursors_.begin() + static_cast<std::ptrdiff_t>(at_), cursors_.end(), left);
  if (next == cursors_.end()) {
    at_ = 0;
    if (std::any_of(cursors_.begin(), cursors_.end(), left)) return soon(&LogReading::step);
    return end_of_round();
  }
  at_ = static_cast<std::size_t>(next - cursors_.begin());
  over_ = attempt_over();
  ask(next->from, &LogReading::on_part);
}

void LogReading::on_part(const Answer& answer) {
  Cursor& cursor = cursors_[at_++];
  const bool away = answer.source == Source::kSilent || answer.source == Source::kAbsent;
  const bool goes_on =
      answer.part.found && (cursor.from == kFromTail || answer.part.part.from <= cursor.from);
  if (away && !goes_on) {
    miss(cursor, answer.source);
    // As a last resort the end of the log is sent, which the controller keeps.
    const bool given_up = cursor.stage == Cursor::Stage::kDone;
    if (given_up && answer.part.found) send_part(cursor, answer);
    return soon(&LogReading::step);
  }
  cursor.source = answer.source;
  const bool known = cursor.stage == Cursor::Stage::kRead;
  if (answer.part.found && !answer.part.part.bytes.empty()) {
    send_part(cursor, answer);
    // Without `follow` a growing log is read up to its size at the start.
    const bool at_end = !over_ && cursor.from >= cursor.size;
    if (!request_.follow() && at_end) cursor.idle = Cursor::Idle::kYes;
    return call_->when_taken([self = shared_from_this()] { self->step(); });
  }
  const bool rest_unread = answer.part.found ? cursor.from < answer.part.size : known;
  if (rest_unread && cursor.from != kFromTail) {
    miss(cursor, answer.source);
  } else if (over_) {
    cursor.stage = Cursor::Stage::kDone;
  } else {
    cursor.idle = Cursor::Idle::kYes;
  }
  soon(&LogReading::step);
}

void LogReading::send_part(Cursor& cursor, const Answer& answer) {
  const LogPart& part = answer.part.part;
  v1::LogChunk chunk;
  chunk.set_bytes(part.bytes);
  chunk.set_attempt(attempt_);
  chunk.set_from(part.from);
  chunk.set_gang(cursor.place.gang);
  chunk.set_rank(cursor.place.rank);
  chunk.set_node(cursor.node);
  chunk.set_ranks(ranks_);
  if (cursor.from != kFromTail && part.from > cursor.from) {
    chunk.set_skipped(part.from - cursor.from);
    if (answer.source == Source::kSilent || answer.source == Source::kAbsent) {
      chunk.set_note(fmt::format("{}: what rank {} wrote before is left out", why_missing(cursor),
                                 cursor.place.rank));
    }
  }
  call_->send(chunk);
  cursor.stage = Cursor::Stage::kRead;
  cursor.misses = 0;
  cursor.from = part.from + part.bytes.size();
}

/// A restarted agent comes back within seconds, and a lost node ends the attempt.
void LogReading::miss(Cursor& cursor, Source source) {
  cursor.source = source;
  cursor.idle = Cursor::Idle::kYes;
  const bool waits = request_.follow() && !over_;
  if (waits || ++cursor.misses <= kMissesMax) return;
  give_up(cursor);
}

std::string LogReading::why_missing(const Cursor& cursor) const {
  const std::string& node = cursor.node;
  switch (cursor.source) {
    case Source::kSilent:
      return node + " does not answer";
    case Source::kAbsent:
      return node + " is not connected";
    case Source::kKept:
    case Source::kNode:
      break;
  }
  return "its file on " + node + " cannot be read any more";
}

void LogReading::give_up(Cursor& cursor) {
  cursor.stage = Cursor::Stage::kDone;
  failures_.push_back(fmt::format("the log of rank {} is incomplete after {}: {}",
                                  cursor.place.rank, counted(cursor.from, "byte"),
                                  why_missing(cursor)));
}

void LogReading::end_of_round() {
  bool all_done = true;
  bool waits = false;
  for (Cursor& cursor : cursors_) {
    cursor.idle = Cursor::Idle::kNo;
    all_done = all_done && cursor.stage == Cursor::Stage::kDone;
    waits = waits || (cursor.stage != Cursor::Stage::kDone && cursor.misses > 0);
  }
  if (!cursors_.empty() && !all_done && (request_.follow() || waits)) {
    return later(&LogReading::step);
  }
  end_attempt();
}

void LogReading::end_attempt() {
  if (!failures_.empty()) {
    return call_->finish(
        {CallCode::kFailedPrecondition, fmt::format("{}", fmt::join(failures_, "; "))});
  }
  next_attempt();
}

void LogReading::next_attempt() {
  if (!controller_.state().has(job_)) return call_->finish({});
  const Job& job = controller_.state().job(job_);
  const bool follows = request_.follow() && request_.attempt() == 0;
  if (!follows || (ended(job.phase) && job.attempt == attempt_)) return call_->finish({});
  if (job.attempt == attempt_) return later(&LogReading::next_attempt);
  ++attempt_;
  request_.clear_tail();
  request_.clear_last_block();
  since_.reset();
  if (attempt_ > 1) note(fmt::format("attempt {} of job {}", attempt_, job_.value()));
  begin_attempt();
}

}  // namespace orrery
