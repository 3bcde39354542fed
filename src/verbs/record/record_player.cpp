#include "verbs/record/record_player.hpp"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>

#include "control/log/journal.hpp"
#include "executor/control_host.hpp"
#include "verbs/record/event_difference.hpp"

namespace orrery {
namespace {

tl::unexpected<Error> events_end(const JournalReader<TimedEvent>& written, Instant at) {
  if (written.torn()) {
    return infeasible(
        fmt::format("events.log ends in the middle of a record, at byte {}: the "
                    "run was cut off, or the file",
                    written.good_bytes()));
  }
  return infeasible(
      fmt::format("at {}: an event was decided that the record does not have", at.text()));
}

/// Errors: the record's setup is not the one that its inputs were recorded with. Records of before
/// such digests pass.
Status check_setup(const RecordedJournals& record, const std::string& recorded) {
  const bool compared = !record.setup.empty() && recorded.starts_with("setup ");
  if (!compared || recorded == record.setup) return {};
  return infeasible(fmt::format("{}/setup.json was changed after inputs.log was recorded with it",
                                record.directory));
}

/// Errors: it comes before the one handled last, or the begin.
Status check_time(Instant at, Instant last) {
  if (at >= last) return {};
  return infeasible(
      fmt::format("inputs.log: an input at {} comes after {}: inputs.log and the "
                  "setup are not of one record",
                  at.text(), last.text()));
}

/// The executor of a replay: what happened outside control stands in the record.
class RecordedWorld final : public Executor {
 public:
  void carry_out(const Action&, const State&, Instant) override {}
  void deliver(const Report&, Instant) override {}
  void advance(const State&, Instant) override {}
  [[nodiscard]] Instant next_due() const override { return Instant::max(); }
  [[nodiscard]] std::vector<ExecutorEffect> take() override { return {}; }
};

/// Hands the inputs of a record to a host, and compares the events that its core decides with those
/// of the record.
class RecordPlayer final : private HostOutlet {
 public:
  enum class Then : std::uint8_t { kGoesOn, kEnds };

  RecordPlayer(std::unique_ptr<Core> core, JournalReader<TimedEvent>& written)
      : written_(written),
        last_(core->state().now()),
        journal_({.before = written.head().before}),
        host_({std::move(core), world_, static_cast<HostOutlet&>(*this)}, last_) {}

  /// Ends where the record's events end before those of the input. Errors: the input comes before
  /// the one handled last, or leads to other events than those of the record.
  Result<Then> handle(const Input& input) {
    ++inputs_;
    if (Status ordered = check_time(input.at, last_); !ordered) return forward_error(ordered);
    last_ = input.at;
    host_.handle(input);
    return std::exchange(compared_, Then::kGoesOn);
  }

  [[nodiscard]] std::uint64_t inputs() const { return inputs_; }
  [[nodiscard]] const Journal& journal() const { return journal_; }

 private:
  void note(const Input&) override {}
  std::uint64_t append(Instant at, std::span<const Event> events) override {
    compared_ = compare(events, at);
    if (compared_ && *compared_ == Then::kGoesOn) {
      for (const Event& event : events) journal_.append(at, event);
    }
    return 0;
  }
  void send(const Order&) override {}
  void run_full_pass(Core&, Instant) override {}
  void search_plan(const PlanKey&) override {}

  Result<Then> compare(std::span<const Event> decided, Instant at) {
    for (const Event& event : decided) {
      const std::uint64_t before = written_.good_bytes();
      Result<std::optional<TimedEvent>> then = written_.next();
      if (!then) return forward_error(then);
      if (!*then) return Then::kEnds;
      Journal now_hash;
      Journal then_hash;
      now_hash.append(at, event);
      then_hash.append((*then)->at, (*then)->what);
      if (now_hash.history_hash() != then_hash.history_hash()) {
        return infeasible(fmt::format(
            "at {}, byte {} of events.log: another event was decided than the one on record ({})",
            at.text(), before, event_difference({at, event}, **then)));
      }
    }
    return Then::kGoesOn;
  }

  JournalReader<TimedEvent>& written_;
  Instant last_;
  Journal journal_;
  Result<Then> compared_ = Then::kGoesOn;
  std::uint64_t inputs_ = 0;
  RecordedWorld world_;
  ControlHost host_;
};

}  // namespace

Result<ReplayedRecord> play_record(const RecordedJournals& record, std::unique_ptr<Core> core) {
  // The plans of an event are those of the fleet at its time.
  const PlanSource plans = [&of = *core](const PlanKey& key) {
    return of.state().setup().plans(key);
  };
  auto input_log = JournalReader<Input>::open(record.inputs, {"inputs.log", &plans});
  if (!input_log) return forward_error(input_log);
  if (Status same = check_setup(record, input_log->head().setup); !same) return forward_error(same);
  auto event_log = JournalReader<TimedEvent>::open(record.events, {"events.log", &plans});
  if (!event_log) return forward_error(event_log);
  RecordPlayer player(std::move(core), *event_log);
  while (true) {
    Result<std::optional<Input>> input = input_log->next();
    if (!input) return forward_error(input);
    if (!*input) break;
    const Result<RecordPlayer::Then> then = player.handle(**input);
    if (!then) return tl::unexpected(then.error());
    if (*then == RecordPlayer::Then::kGoesOn) continue;
    if (record.end == RecordEnd::kMayBeCut) break;
    return events_end(*event_log, (*input)->at);
  }
  const Result<std::optional<TimedEvent>> more = event_log->next();
  if (more && *more) return infeasible("the record has events that no input leads to");
  return ReplayedRecord{player.inputs(), player.journal().records(),
                        player.journal().history_hash()};
}

}  // namespace orrery
