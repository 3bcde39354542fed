// orrery replay
#include <fmt/format.h>

#include "apps/orrery/command.hpp"
#include "apps/orrery/record_file.hpp"
#include "control/core.hpp"
#include "executor/live_record.hpp"

namespace orrery {
namespace {

constexpr std::size_t kJournalBytesMax = std::size_t{4} << 30;

/// How a record may end.
enum class RecordEnd : std::uint8_t {
  kWhole,     ///< with the last event
  kMayBeCut,  ///< anywhere: its writer may have been killed
};

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

/// The events of an input that the core decided now, against those that were written then; false:
/// these end.
Result<bool> compare(std::span<const Event> decided, Instant at,
                     JournalReader<TimedEvent>& written) {
  for (const Event& event : decided) {
    const std::uint64_t before = written.good_bytes();
    Result<std::optional<TimedEvent>> then = written.next();
    if (!then) return forward_error(then);
    if (!*then) return false;
    Journal now_hash;
    Journal then_hash;
    now_hash.append(at, event);
    then_hash.append((*then)->at, (*then)->what);
    if (now_hash.history_hash() != then_hash.history_hash()) {
      return infeasible(
          fmt::format("at {}, byte {} of events.log: another event was decided than "
                      "the one on record (kind {} instead of {})",
                      at.text(), before, event.index(), (*then)->what.index()));
    }
  }
  return true;
}

struct RecordAt {
  const std::string& directory;
  RecordEnd end = RecordEnd::kWhole;
  std::string setup = {};  ///< digest of its setup; empty: not compared
};

/// Errors: the record's setup is not the one that its inputs were recorded with. Records of before
/// such digests pass.
Status check_setup(const RecordAt& record, const std::string& recorded) {
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

/// A record's journals against a core that has handled nothing.
Status play(const CommandOptions& options, const RecordAt& record, Core& core) {
  const std::string& directory = record.directory;
  const Result<std::string> inputs = read_file(directory + "/inputs.log", kJournalBytesMax);
  if (!inputs) return tl::unexpected(inputs.error());
  const Result<std::string> events = read_file(directory + "/events.log", kJournalBytesMax);
  if (!events) return tl::unexpected(events.error());
  const PlanSource& plans = core.state().setup().plans;
  auto input_log = JournalReader<Input>::open(*inputs, {"inputs.log", &plans});
  if (!input_log) return forward_error(input_log);
  if (Status same = check_setup(record, input_log->head().setup); !same) return same;
  auto event_log = JournalReader<TimedEvent>::open(*events, {"events.log", &plans});
  if (!event_log) return forward_error(event_log);
  Journal journal({.before = event_log->head().before});
  std::uint64_t count = 0;
  Instant last = core.state().now();
  while (true) {
    Result<std::optional<Input>> input = input_log->next();
    if (!input) return forward_error(input);
    if (!*input) break;
    ++count;
    if (Status ordered = check_time((*input)->at, last); !ordered) return ordered;
    last = (*input)->at;
    const Outcome& outcome = core.handle(**input);
    const Result<bool> same = compare(outcome.events, (*input)->at, *event_log);
    if (!same) return tl::unexpected(same.error());
    if (!*same && record.end == RecordEnd::kMayBeCut) break;
    if (!*same) return events_end(*event_log, (*input)->at);
    for (const Event& event : outcome.events) journal.append((*input)->at, event);
  }
  const Result<std::optional<TimedEvent>> more = event_log->next();
  if (more && *more) return infeasible("the record has events that no input leads to");
  if (options.output == OutputFormat::kJson) {
    print_json({{"inputs", count},
                {"events", journal.records()},
                {"history_hash", fmt::format("{:016x}", journal.history_hash())},
                {"equal", true}});
  } else {
    print_text(fmt::format("{} inputs lead to the same {} events, history {:016x}\n", count,
                           journal.records(), journal.history_hash()));
  }
  return {};
}

Status replay_simulation(const CommandOptions& options, const std::string& directory) {
  Result<SimulateOptions> asked = recorded_options(directory);
  if (!asked) return forward_error(asked);
  Result<std::unique_ptr<SimulateRequest>> request = SimulateRequest::load(options, *asked);
  if (!request) return forward_error(request);
  const PolicyRunInputs in = (*request)->inputs((*request)->policies().front());
  const ControlSetup setup = control_setup(in);
  const Result<std::string> digest = recorded_setup(directory);
  if (!digest) return tl::unexpected(digest.error());
  Core core(setup);
  return play(options, {directory, RecordEnd::kWhole, *digest}, core);
}

Status replay_controller(const CommandOptions& options, const std::string& directory) {
  const Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return tl::unexpected(catalog.error());
  const Result<Calibration> calibration = load_calibration(options);
  if (!calibration) return tl::unexpected(calibration.error());
  const Result<ModelCatalog> models = load_models(options);
  if (!models) return tl::unexpected(models.error());
  const Result<RecordedBegin> begin =
      open_live_record(directory, {*catalog, *calibration, *models});
  if (!begin) return tl::unexpected(begin.error());
  return play(options, {directory, RecordEnd::kMayBeCut}, *begin->core);
}

Status run_replay(const CommandOptions& given, const std::string& directory) {
  const CommandOptions options = with_recorded_catalog(given, directory);
  return is_live_record(directory) ? replay_controller(options, directory)
                                   : replay_simulation(options, directory);
}

}  // namespace

void add_replay_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto directory = std::make_shared<std::string>();
  CLI::App& verb = *app.add_subcommand(
      "replay", "feed the inputs of a record to the core again and compare event by event");
  verb.add_option("record", *directory,
                  "what --record wrote: of `simulate` for one policy, of `orreryd` for one start")
      ->type_name("DIR")
      ->required();
  verb.callback([&options, &chosen, directory] {
    chosen = [&options, directory] { return run_replay(options, *directory); };
  });
}

}  // namespace orrery
