#include "api/exec_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "api/access/authorization.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

constexpr std::size_t kInputBytesMax = std::size_t{64} << 10;
constexpr std::size_t kCommandBytesMax = std::size_t{256} << 10;

TerminalSize terminal_size(const v1::TerminalSize& size) {
  constexpr std::uint32_t kMost = 10'000;
  return {static_cast<std::uint16_t>(std::min(size.columns(), kMost)),
          static_cast<std::uint16_t>(std::min(size.rows(), kMost))};
}

/// One command and the call it belongs to. It lives as long as one of them may still call.
class ExecSession final : public std::enable_shared_from_this<ExecSession> {
 public:
  ExecSession(Controller& controller, std::shared_ptr<Call> call)
      : controller_(controller), call_(std::move(call)) {}

  void begin(NodeId node, AttemptExecOpen command) {
    const auto self = shared_from_this();
    const Result<std::uint64_t> opened = controller_.sessions().commands().open(
        node, std::move(command),
        {[self](const ExecOutput& output) { self->hear(output); },
         [self](const ExecEnd& end) { self->hear(end); }});
    if (!opened) return call_->fail(opened.error());
    id_ = *opened;
    call_->open();
    call_->when_gone([self] { self->close(); });
    receive();
  }

 private:
  void receive() {
    receiving_ = true;
    call_->receive([self = shared_from_this()](const google::protobuf::Message* message) {
      self->hear(static_cast<const v1::ExecRequest*>(message));
    });
  }

  /// Handles the client's next message; nullptr: there are no more.
  void hear(const v1::ExecRequest* more) {
    receiving_ = false;
    if (over_) return;
    if (!call_->wanted()) return close();
    if (more == nullptr) return controller_.sessions().commands().tell({.id = id_, .end = true});
    if (more->input().size() > kInputBytesMax) {
      close();
      return call_->finish({CallCode::kInvalidArgument,
                            fmt::format("input of {} bytes in a message, expected at most {}",
                                        more->input().size(), kInputBytesMax)});
    }
    ExecInput input{.id = id_, .bytes = more->input(), .end = more->input_end()};
    if (more->has_terminal()) input.terminal = terminal_size(more->terminal());
    input_on_the_way_ += input.bytes.size();
    controller_.sessions().commands().tell(input);
    receive_if_room();
  }

  void receive_if_room() {
    if (!receiving_ && input_on_the_way_ + kInputBytesMax <= kExecBytesMax) receive();
  }

  void hear(const ExecOutput& output) {
    if (over_) return;
    input_on_the_way_ -= std::min(input_on_the_way_, output.taken);
    receive_if_room();
    const std::size_t bytes = output.output.size() + output.errors.size();
    if (bytes == 0) return;
    v1::ExecResponse response;
    response.set_output(output.output);
    response.set_errors(output.errors);
    output_on_the_way_ += bytes;
    call_->send(response);
    call_->when_taken([self = shared_from_this()] { self->note_taken(); });
  }

  void note_taken() {
    const std::uint64_t taken = std::exchange(output_on_the_way_, 0);
    if (!over_ && taken > 0) controller_.sessions().commands().tell({.id = id_, .taken = taken});
  }

  void hear(const ExecEnd& end) {
    if (std::exchange(over_, true)) return;
    if (!end.error.empty()) return call_->finish({CallCode::kFailedPrecondition, end.error});
    v1::ExecResponse response;
    response.set_status(end.status);
    call_->reply(response);
  }

  /// The client has gone: the command ends.
  void close() {
    if (std::exchange(over_, true)) return;
    controller_.sessions().commands().close(id_);
    call_->finish({CallCode::kCancelled, ""});
  }

  Controller& controller_;
  std::shared_ptr<Call> call_;
  std::uint64_t id_ = 0;
  bool receiving_ = false;
  bool over_ = false;
  std::uint64_t input_on_the_way_ = 0;   ///< bytes that the command has not taken
  std::uint64_t output_on_the_way_ = 0;  ///< bytes that the client has not taken
};

/// Returns kOk where the caller may run commands beside the ranks of the job, and they run.
CallStatus judge_exec(const Job& job, const v1::ExecRequest& request, const Caller& caller) {
  const bool own = !job.submitter.empty() && job.submitter == caller.name;
  // An operator does not act as a tenant's POSIX user, unless it is that user anyway.
  const bool same_user = job.run_as.empty() || job.run_as == caller.run_as;
  const bool may =
      own || caller.role == Role::kAdmin || (caller.role == Role::kOperator && same_user);
  if (!may) {
    return {
        CallCode::kPermissionDenied,
        fmt::format("job {} is of \"{}\": expected its submitter, an admin, or an operator with "
                    "the same run_as, since a command acts as the POSIX user of the job",
                    request.id(), job.submitter)};
  }
  if (job.phase != JobPhase::kRunning) {
    const bool comes = job.phase == JobPhase::kHeld || job.phase == JobPhase::kQueued ||
                       job.phase == JobPhase::kStarting;
    return {
        CallCode::kFailedPrecondition,
        fmt::format("job {0} is {1}{2}", request.id(), word_of(job.phase),
                    comes ? fmt::format(": its ranks do not run yet; `orrery explain {}` says why",
                                        request.id())
                          : ": its ranks do not run any more")};
  }
  const std::size_t bytes = std::accumulate(
      request.command().begin(), request.command().end(), request.terminal_type().size(),
      [](std::size_t sum, const std::string& word) { return sum + word.size() + 1; });
  if (bytes > kCommandBytesMax) {
    return {CallCode::kInvalidArgument,
            fmt::format("a command of {} bytes, expected at most {}", bytes, kCommandBytesMax)};
  }
  const auto has_zero = [](const std::string& word) { return word.find('\0') != word.npos; };
  if (std::ranges::any_of(request.command(), has_zero) || has_zero(request.terminal_type())) {
    return {CallCode::kInvalidArgument, "the command holds a zero byte, expected text"};
  }
  if (!request.command().empty() && request.command(0).empty()) {
    return {CallCode::kInvalidArgument, "the command is empty, expected a program"};
  }
  if (!request.input().empty() || request.input_end()) {
    return {CallCode::kInvalidArgument, "input with the first message, expected it later"};
  }
  return {};
}

/// Returns "ranks 0 to 7", or by gang: "ranks 0 to 3 of gang 0, ranks 0 to 3 of gang 1".
std::string places_text(const std::vector<RankLogs::Place>& places) {
  std::string text;
  const bool gangs = !places.empty() && places.back().gang > 0;
  for (std::size_t at = 0; at < places.size();) {
    std::size_t end = at;
    while (end + 1 < places.size() && places[end + 1].gang == places[at].gang) ++end;
    const std::uint32_t first = places[at].rank;
    const std::uint32_t last = places[end].rank;
    text += fmt::format(
        "{}{}{}", text.empty() ? "" : ", ",
        first == last ? fmt::format("rank {}", first) : fmt::format("ranks {} to {}", first, last),
        gangs ? fmt::format(" of gang {}", places[at].gang) : "");
    at = end + 1;
  }
  return text;
}

void exec(Controller& controller, const v1::ExecRequest& request,
          const std::shared_ptr<Call>& call) {
  const State& state = controller.state();
  if (request.id() >= state.jobs()) return call->finish(no_such_job(request.id()));
  const JobId id = JobId::at(request.id());
  if (!state.has(id)) {
    return call->finish(
        {CallCode::kFailedPrecondition,
         fmt::format("job {} has ended: its ranks do not run any more", request.id())});
  }
  const Job& job = state.job(id);
  if (const CallStatus judged = judge_exec(job, request, call->caller());
      judged.code != CallCode::kOk) {
    return call->finish(judged);
  }
  const std::vector<RankLogs::Place> places = controller.sessions().logs().rank_places(id);
  const auto place = std::ranges::find_if(places, [&](const RankLogs::Place& each) {
    return each.gang == request.gang() && each.rank == request.rank();
  });
  if (place == places.end()) {
    const std::string gang = request.gang() > 0 ? fmt::format(" of gang {}", request.gang()) : "";
    return call->finish(
        {CallCode::kNotFound, fmt::format("job {} has no rank {}{}; it has {}", request.id(),
                                          request.rank(), gang, places_text(places))});
  }
  AttemptExecOpen command{{id, job.attempt}, {.gang = request.gang(), .rank = request.rank()}};
  command.open.command = {request.command().begin(), request.command().end()};
  if (request.has_terminal()) command.open.terminal = terminal_size(request.terminal());
  command.open.terminal_type = request.terminal_type();
  std::make_shared<ExecSession>(controller, call)->begin(place->node, std::move(command));
}

}  // namespace

void add_exec_method(MethodTable& table, Controller& controller) {
  table.add<v1::ExecRequest>(
      "Exec",
      {.role = Role::kUser,
       .effect = Effect::kChange,
       .scope = Scope::kJob,
       .lasting = Lasting::kYes},
      [&controller](const v1::ExecRequest& request, const std::shared_ptr<Call>& call) {
        exec(controller, request, call);
      });
}

}  // namespace orrery
