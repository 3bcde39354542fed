// orrery logs, events
#include <cstdio>
#include <memory>
#include <utility>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/system/real_clock.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/watch/event_stream.hpp"
#include "verbs/watch/log_lines.hpp"

namespace orrery {
namespace {

struct LogOptions {
  LogSelection selection;
  LogBytes bytes = LogBytes::kRaw;
};

/// Prints what ranks wrote, and at the end the lines that were begun.
class LogPrinter {
 public:
  LogPrinter(OutputFormat output, LogLines lines) : output_(output), lines_(std::move(lines)) {}
  LogPrinter(const LogPrinter&) = delete;
  LogPrinter& operator=(const LogPrinter&) = delete;
  ~LogPrinter() {
    print_bytes(lines_.take_unfinished());
    (void)std::fflush(stdout);
  }

  [[nodiscard]] const v1::ReadLogRequest& request() const { return lines_.request(); }
  void print(const v1::LogChunk& chunk) {
    if (output_ == OutputFormat::kJson) {
      print_answer_line(chunk);
    } else {
      const LogLines::Shown shown = lines_.show(chunk);
      print_message(shown.message);
      print_bytes(shown.bytes);
      (void)std::fflush(stdout);
    }
    lines_.remember(chunk);
  }

 private:
  OutputFormat output_;
  LogLines lines_;
};

/// A reader that has gone (`orrery logs 7 | head`) ends a stream.
bool wanted() { return std::ferror(stdout) == 0; }

Status print_log(const CommandOptions& options, const LogSelection& selection, LogBytes bytes) {
  Result<v1::ReadLogRequest> request = log_request(selection);
  if (!request) return forward_error(request);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  LogPrinter printer(options.output, LogLines(*std::move(request), bytes));
  v1::LogChunk chunk;
  return (*session)->client().read(
      "ReadLog", [&]() -> const v1::ReadLogRequest& { return printer.request(); }, chunk,
      [&] {
        printer.print(chunk);
        return wanted();
      });
}

/// Follows the newest output. Ranks have no input that could be attached to.
Status attach(const CommandOptions& options, const LogSelection& selection) {
  print_message(attach_text(selection.job));
  return print_log(options, attached(selection), LogBytes::kRaw);
}

struct EventsOptions {
  EventChoice selection;
  bool follow = false;
};

Status print_events(const CommandOptions& options, const EventsOptions& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  Result<std::unique_ptr<LiveSession>> beside = LiveSession::open(options);
  if (!beside) return forward_error(beside);
  const bool json = options.output == OutputFormat::kJson;
  using Stream = EventOrder::Stream;
  EventOrder order(asked.follow ? Stream::kFollows : Stream::kNone, [&](const v1::EventRow& row) {
    if (json) {
      print_bytes(event_json_line(row));
    } else {
      print_text(event_text(row));
    }
    (void)std::fflush(stdout);
  });
  EventLogReader history(**beside, asked.selection, order);
  if (!asked.follow) return history.read(RealClock().now_wall());
  return watch_events(**session, asked.selection, history, wanted);
}

void add_attach_command(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LogOptions>();
  CLI::App& verb =
      *app.add_subcommand("attach", "follow the output of a running job without affecting the job");
  verb.add_option("id", asked->selection.job, "number of the job")->type_name("JOB")->required();
  verb.add_option("--rank", asked->selection.rank,
                  "only this rank (default: all ranks, each line with the rank number in front)")
      ->type_name("R");
  verb.add_option("--gang", asked->selection.gang,
                  "only this gang of a job with several gangs (default: all gangs, or the first "
                  "with --rank)")
      ->type_name("G");
  verb.footer(
      "The output starts with the last 10 lines of each rank, as with `orrery logs -f --tail 10`,\n"
      "and ends with the job or at ^C, which does not affect the job.");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return attach(options, asked->selection); };
  });
}

void add_events_command(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto which = std::make_shared<EventsOptions>();
  CLI::App& events = *app.add_subcommand("events", "list changes in the cluster with their times");
  events.add_flag("-f,--follow", which->follow, "also print new events until interrupted");
  events.add_option("--job", which->selection.job, "only events of this job")->type_name("JOB");
  events.add_option("--node", which->selection.node, "only events of this node")->type_name("NODE");
  events
      .add_option("--kind", which->selection.kind, "only events of this kind, such as JobStarted")
      ->type_name("KIND");
  events
      .add_option("--tenant", which->selection.tenant,
                  "only events of jobs of this tenant and of the tenants below it")
      ->type_name("TENANT");
  events
      .add_option("--since", which->selection.since,
                  "only events since TIME: an age (2h) or an instant (2026-12-01T06:00:00Z); "
                  "default: the last 100 events")
      ->type_name("TIME");
  events.footer(
      "Examples:\n  orrery events --job 7\n  orrery events -f --node node-3 --since 1d\n"
      "\nEvents reach back to the oldest batch of the log; `orrery store export` prints older "
      "events.");
  events.callback([&options, &chosen, which] {
    chosen = [&options, which] { return print_events(options, *which); };
  });
}

}  // namespace

void add_log_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LogOptions>();
  CLI::App& logs = *app.add_subcommand("logs", "print the output of the ranks of a job");
  logs.add_option("id", asked->selection.job, "number of the job")->type_name("JOB")->required();
  logs.add_flag("-f,--follow", asked->selection.follow,
                "follow new output until the job has ended");
  logs.add_option("--tail", asked->selection.tail,
                  "start with the last N lines of each rank (default: all lines)")
      ->type_name("N");
  logs.add_option("--since", asked->selection.since,
                  "start with output written at or after TIME: an instant (2026-11-24T10:00:00Z) "
                  "or an age (10m)")
      ->type_name("TIME");
  logs.add_option("--rank", asked->selection.rank,
                  "only this rank (default: all ranks, each line with the rank number in front)")
      ->type_name("R");
  logs.add_option("--gang", asked->selection.gang,
                  "only this gang of a job with several gangs (default: all gangs, or the first "
                  "with --rank)")
      ->type_name("G");
  logs.add_option("--node", asked->selection.node, "only the ranks on this node")
      ->type_name("NODE");
  logs.add_option("--attempt", asked->selection.attempt,
                  "number of the attempt (default: the newest)")
      ->type_name("A");
  logs.add_flag_callback(
      "--escape", [asked] { asked->bytes = LogBytes::kEscaped; }, "escape control characters");
  logs.footer(
      "Bytes are printed as the ranks wrote them. The number of bytes that are no longer kept is\n"
      "printed on standard error.\nExamples:\n  orrery logs -f 7\n  orrery logs 7 --tail 20 "
      "--since 1h\n"
      "  orrery logs 7 --rank 3 --attempt 1 | less");
  logs.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return print_log(options, asked->selection, asked->bytes); };
  });
  add_attach_command(app, options, chosen);
  add_events_command(app, options, chosen);
}

}  // namespace orrery
