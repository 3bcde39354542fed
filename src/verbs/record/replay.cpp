#include "verbs/record/replay.hpp"

#include <fmt/format.h>

#include "executor/log/live_record.hpp"
#include "verbs/record/record_file.hpp"
#include "verbs/record/record_player.hpp"

namespace orrery {
namespace {

constexpr std::size_t kJournalBytesMax = std::size_t{4} << 30;

/// Reads the journals of a record, whose end and setup are given, and plays them.
Result<ReplayedRecord> play(RecordedJournals record, std::unique_ptr<Core> core) {
  const Result<std::string> inputs = read_file(record.directory + "/inputs.log", kJournalBytesMax);
  if (!inputs) return tl::unexpected(inputs.error());
  const Result<std::string> events = read_file(record.directory + "/events.log", kJournalBytesMax);
  if (!events) return tl::unexpected(events.error());
  record.inputs = *inputs;
  record.events = *events;
  return play_record(record, std::move(core));
}

Result<ReplayedRecord> replay_simulation(const CommandOptions& options,
                                         const std::string& directory) {
  Result<SimulateOptions> asked = recorded_options(directory);
  if (!asked) return forward_error(asked);
  Result<std::unique_ptr<SimulateRequest>> request = SimulateRequest::load(options, *asked);
  if (!request) return forward_error(request);
  const PolicyRunInputs in = (*request)->inputs((*request)->policies().front());
  const ControlSetup setup = control_setup(in);
  const Result<std::string> digest = recorded_setup(directory);
  if (!digest) return tl::unexpected(digest.error());
  return play({.inputs = {},
               .events = {},
               .end = RecordEnd::kWhole,
               .directory = directory,
               .setup = *digest},
              std::make_unique<Core>(setup));
}

Result<ReplayedRecord> replay_controller(const CommandOptions& options,
                                         const std::string& directory) {
  const Result<Facts> facts = load_facts(options);
  if (!facts) return tl::unexpected(facts.error());
  Result<RecordedBegin> begin = open_live_record(directory, *facts);
  if (!begin) return tl::unexpected(begin.error());
  return play({.inputs = {}, .events = {}, .end = RecordEnd::kMayBeCut, .directory = directory},
              std::move(begin->core));
}

}  // namespace

Result<VerbAnswer> replay(const CommandOptions& given, const std::string& directory) {
  const CommandOptions options = with_recorded_catalog(given, directory);
  const Result<ReplayedRecord> played = is_live_record(directory)
                                            ? replay_controller(options, directory)
                                            : replay_simulation(options, directory);
  if (!played) return tl::unexpected(played.error());
  return VerbAnswer{fmt::format("{} inputs lead to the same {} events, history {:016x}\n",
                                played->inputs, played->events, played->history_hash),
                    {{"inputs", played->inputs},
                     {"events", played->events},
                     {"history_hash", fmt::format("{:016x}", played->history_hash)},
                     {"equal", true}}};
}

}  // namespace orrery
