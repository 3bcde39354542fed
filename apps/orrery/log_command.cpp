// orrery logs, events
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "api/views.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/count_text.hpp"
#include "base/text/quantity_text.hpp"
#include "base/time.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"

namespace orrery {
namespace {

struct LogAsked {
  std::string id;
  bool follow = false;
  std::optional<std::uint32_t> tail;
  std::string since;
  std::uint32_t attempt = 0;
  std::optional<std::uint32_t> gang;
  std::optional<std::uint32_t> rank;
  std::string node;
  enum class Bytes : std::uint8_t { kRaw, kEscaped } bytes = Bytes::kRaw;
};

v1::ReadLogRequest request_of(const LogAsked& asked, std::uint64_t job) {
  v1::ReadLogRequest request;
  request.set_id(job);
  request.set_attempt(asked.attempt);
  if (asked.gang) request.set_gang(*asked.gang);
  if (asked.rank) request.set_rank(*asked.rank);
  if (asked.tail) request.set_tail(*asked.tail);
  request.set_follow(asked.follow);
  request.set_node(asked.node);
  request.set_since(asked.since);
  return request;
}

/// Prints what ranks wrote; of several ranks a line at a time, with the rank in front, and
/// remembers how far each was read.
class LogPrinter {
 public:
  LogPrinter(OutputFormat output, const LogAsked& asked, std::uint64_t job)
      : output_(output), bytes_(asked.bytes), request_(request_of(asked, job)) {}
  LogPrinter(const LogPrinter&) = delete;
  LogPrinter& operator=(const LogPrinter&) = delete;
  /// Ends lines that were begun.
  ~LogPrinter() {
    for (const auto& [rank, line] : lines_) {
      if (!line.empty()) put(label(rank) + line + "\n");
    }
    (void)std::fflush(stdout);
  }

  /// What to ask for to go on behind what was printed.
  [[nodiscard]] const v1::ReadLogRequest& request() const { return request_; }
  void print(const v1::LogChunk& chunk);

 private:
  using Rank = std::pair<std::uint32_t, std::uint32_t>;  ///< gang, rank

  static constexpr std::size_t kLineMax = std::size_t{64} << 10;

  [[nodiscard]] std::string label(const Rank& rank) const {
    return gangs_ ? fmt::format("{}.{}: ", rank.first, rank.second)
                  : fmt::format("{}: ", rank.second);
  }
  void put(std::string_view bytes) const {
    if (bytes_ == LogAsked::Bytes::kRaw) return print_bytes(bytes);
    print_text(std::string(bytes));
  }
  void print_lines(const Rank& rank, std::string_view bytes);
  void remember(const v1::LogChunk& chunk);

  OutputFormat output_;
  LogAsked::Bytes bytes_;
  v1::ReadLogRequest request_;
  bool gangs_ = false;                 ///< ranks of others than the first gang were seen
  std::map<Rank, std::string> lines_;  ///< that are not complete
  std::map<Rank, int> positions_;      ///< where a rank's position is in the request
};

void LogPrinter::print(const v1::LogChunk& chunk) {
  if (output_ == OutputFormat::kJson) {
    print_answer_line(chunk);
  } else {
    const bool several = chunk.ranks() > 1;
    if (chunk.skipped() > 0 && chunk.note().empty()) {
      print_message(fmt::format("orrery: {}{} of earlier output {} no longer kept\n",
                                several ? fmt::format("rank {}: ", chunk.rank()) : "",
                                counted(chunk.skipped(), "byte"),
                                chunk.skipped() == 1 ? "is" : "are"));
    }
    if (!chunk.note().empty()) print_message(fmt::format("orrery: {}\n", one_line(chunk.note())));
    if (several) {
      print_lines({chunk.gang(), chunk.rank()}, chunk.bytes());
    } else {
      put(chunk.bytes());
    }
    (void)std::fflush(stdout);
  }
  if (chunk.attempt() > 0) remember(chunk);
}

void LogPrinter::print_lines(const Rank& rank, std::string_view bytes) {
  gangs_ = gangs_ || rank.first > 0;
  std::string& line = lines_[rank];
  std::string text;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    line += bytes.substr(0, end);
    if (end == bytes.size() && line.size() < kLineMax) break;
    text += label(rank) + line + "\n";
    line.clear();
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  put(text);
}

void LogPrinter::remember(const v1::LogChunk& chunk) {
  if (request_.from_attempt() != chunk.attempt()) {
    request_.set_from_attempt(chunk.attempt());
    request_.clear_positions();
    positions_.clear();
  }
  const auto [at, is_new] =
      positions_.try_emplace({chunk.gang(), chunk.rank()}, request_.positions_size());
  v1::LogPosition& position =
      is_new ? *request_.add_positions() : *request_.mutable_positions(at->second);
  position.set_gang(chunk.gang());
  position.set_rank(chunk.rank());
  position.set_from(chunk.from() + chunk.bytes().size());
}

/// A reader that has gone (`orrery logs 7 | head`) ends a stream.
bool wanted() { return std::ferror(stdout) == 0; }

Status print_log(const CommandOptions& options, const LogAsked& asked) {
  const Result<std::uint64_t> id = job_id(asked.id);
  if (!id) return tl::unexpected(id.error());
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  LogPrinter printer(options.output, asked, *id);
  v1::LogChunk chunk;
  return (*session)->client().read(
      "ReadLog", [&]() -> const v1::ReadLogRequest& { return printer.request(); }, chunk,
      [&] {
        printer.print(chunk);
        return wanted();
      });
}

/// Follows the newest output. Ranks have no input that could be attached to.
Status attach(const CommandOptions& options, LogAsked& asked) {
  constexpr std::uint32_t kAttachTail = 10;
  asked.follow = true;
  asked.tail = kAttachTail;
  print_message(fmt::format(
      "orrery: ^C detaches; ranks read no input; `orrery exec {}` runs a command next to a rank\n",
      asked.id));
  return print_log(options, asked);
}

constexpr std::uint32_t kEventsPage = 100;

struct EventsAskedFor {
  std::string job;
  std::string node;
  std::string kind;
  std::string tenant;
  std::string since;
  bool follow = false;
};

/// "  job=3 cause=too-few": what stands in the event by itself; the whole is in JSON.
std::string facts_of(const std::string& fields) {
  const Json event = Json::parse(fields, nullptr, false);
  std::string text;
  if (!event.is_object()) return text;
  for (const auto& [key, part] : event.items()) {
    // A blame is shown by its evidence.
    const bool blame = key == "blame" && part.is_object();
    const Json& value = blame && part.contains("evidence") ? part["evidence"] : part;
    if (key == "at" || key == "event" || value.is_structured()) continue;
    const std::string shown = value.is_null()     ? "-"
                              : value.is_string() ? value.get<std::string>()
                                                  : value.dump();
    if (shown.empty()) continue;
    if (shown.find('\n') == std::string::npos) text += fmt::format("  {}={}", key, shown);
  }
  return text;
}

void print_event(const CommandOptions& options, const v1::EventRow& row) {
  if (options.output == OutputFormat::kJson) {
    Json line = answer_json(row);
    Json fields = Json::parse(row.fields(), nullptr, false);
    if (!fields.is_discarded()) line["fields"] = std::move(fields);
    print_text(line.dump() + "\n");
  } else {
    // To the millisecond, always as wide.
    const Instant at = Instant() + Duration::seconds(row.at().seconds());
    std::string time = at.text();
    time.insert(time.size() - 1, fmt::format(".{:03}", row.at().nanos() / 1'000'000));
    print_text(one_line(fmt::format("{}  {}{}", time, row.type(), facts_of(row.fields()))) + "\n");
  }
  (void)std::fflush(stdout);
}

/// "2h" ago, or an instant.
Result<Instant> since_of(const std::string& text) {
  if (const Result<Instant> at = Instant::parse(text)) return *at;
  const Result<Seconds> ago = parse<Seconds>(text);
  if (!ago) {
    return input_error({}, fmt::format("--since: \"{}\": expected an age, such as 2h, or an "
                                       "instant, such as 2026-12-01T06:00:00Z",
                                       text));
  }
  return RealClock().now_wall() - Duration::from_seconds(ago->value());
}

template <class Request>
Result<Request> request_of(const EventsAskedFor& asked) {
  Request request;
  if (!asked.job.empty()) {
    const Result<std::uint64_t> job = job_id(asked.job);
    if (!job) return tl::unexpected(job.error());
    request.set_job(*job);
  }
  request.set_node(asked.node);
  request.set_kind(asked.kind);
  request.set_tenant(asked.tenant);
  return request;
}

/// Prints events each once, those of the log and those of a stream that begins while the log is
/// read, also when the stream is lost and begins anew.
class EventPrinter {
 public:
  EventPrinter(const CommandOptions& options, LiveSession& session, const EventsAskedFor& asked)
      : options_(options), session_(session), asked_(asked) {}

  /// Those of the log: at first those that were asked for, later those since the newest that was
  /// printed.
  [[nodiscard]] Status print_history();
  /// One of the stream.
  void print(const v1::EventRow& row) {
    if (!take(from_history_, row)) show(row);
  }

 private:
  using Rows = std::multiset<std::string>;

  /// Whether the row was among them; it is not any more.
  static bool take(Rows& rows, const v1::EventRow& row) {
    const auto known = rows.find(row.SerializeAsString());
    if (known == rows.end()) return false;
    rows.erase(known);
    return true;
  }
  void show(const v1::EventRow& row) {
    print_event(options_, row);
    const Instant at = instant_of(row.at());
    if (!newest_ || at > *newest_) newest_rows_.clear();
    if (!newest_ || at >= *newest_) {
      newest_ = at;
      newest_rows_.insert(row.SerializeAsString());
    }
  }

  const CommandOptions& options_;
  LiveSession& session_;
  const EventsAskedFor& asked_;
  bool again_ = false;
  Rows from_history_;              ///< printed, which the stream may bring once more
  std::optional<Instant> newest_;  ///< time of the newest printed event
  Rows newest_rows_;               ///< those of that instant
};

Status EventPrinter::print_history() {
  Result<v1::ListEventsRequest> request = request_of<v1::ListEventsRequest>(asked_);
  if (!request) return tl::unexpected(request.error());
  const bool again = std::exchange(again_, true);
  request->set_page_size(kEventsPage);
  request->set_newest(!again && asked_.since.empty());
  if (again && newest_) {
    *request->mutable_since() = timestamp_of(*newest_);
  } else if (!asked_.since.empty()) {
    const Result<Instant> since = since_of(asked_.since);
    if (!since) return tl::unexpected(since.error());
    *request->mutable_since() = timestamp_of(*since);
  }
  from_history_.clear();
  Rows before = newest_rows_;
  while (true) {
    const auto page = session_.client().call<v1::ListEventsResponse>("ListEvents", *request);
    if (!page) return tl::unexpected(page.error());
    for (const v1::EventRow& row : page->events()) {
      if (asked_.follow) from_history_.insert(row.SerializeAsString());
      if (!take(before, row)) show(row);
    }
    if (page->next_page_token().empty()) return {};
    request->set_page_token(page->next_page_token());
  }
}

/// History is asked for each time that the stream has begun, so that nothing is missed in between.
Status print_events(const CommandOptions& options, const EventsAskedFor& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  Result<std::unique_ptr<LiveSession>> beside = LiveSession::open(options);
  if (!beside) return forward_error(beside);
  EventPrinter printer(options, **beside, asked);
  if (!asked.follow) return printer.print_history();
  Result<v1::WatchEventsRequest> request = request_of<v1::WatchEventsRequest>(asked);
  if (!request) return tl::unexpected(request.error());
  request->set_mark_begin(true);
  Status history;
  v1::EventRow row;
  const Status watched = (*session)->client().read(
      "WatchEvents", [&]() -> const v1::WatchEventsRequest& { return *request; }, row,
      [&] {
        if (!row.type().empty()) {
          printer.print(row);
          return wanted();
        }
        history = printer.print_history();
        return history.has_value() && wanted();
      });
  return history ? watched : history;
}

void add_attach_command(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LogAsked>();
  CLI::App& verb =
      *app.add_subcommand("attach", "follow the output of a running job without affecting the job");
  verb.add_option("id", asked->id, "number of the job")->type_name("JOB")->required();
  verb.add_option("--rank", asked->rank,
                  "only this rank (default: all ranks, each line with the rank number in front)")
      ->type_name("R");
  verb.add_option("--gang", asked->gang,
                  "only this gang of a job with several gangs (default: all gangs, or the first "
                  "with --rank)")
      ->type_name("G");
  verb.footer(
      "The output starts with the last 10 lines of each rank, as with `orrery logs -f --tail 10`,\n"
      "and ends with the job or at ^C, which does not affect the job.");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return attach(options, *asked); };
  });
}

}  // namespace

void add_log_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LogAsked>();
  CLI::App& logs = *app.add_subcommand("logs", "print the output of the ranks of a job");
  logs.add_option("id", asked->id, "number of the job")->type_name("JOB")->required();
  logs.add_flag("-f,--follow", asked->follow, "follow new output until the job has ended");
  logs.add_option("--tail", asked->tail,
                  "start with the last N lines of each rank (default: all lines)")
      ->type_name("N");
  logs.add_option("--since", asked->since,
                  "start with output written at or after TIME: an instant (2026-11-24T10:00:00Z) "
                  "or an age (10m)")
      ->type_name("TIME");
  logs.add_option("--rank", asked->rank,
                  "only this rank (default: all ranks, each line with the rank number in front)")
      ->type_name("R");
  logs.add_option("--gang", asked->gang,
                  "only this gang of a job with several gangs (default: all gangs, or the first "
                  "with --rank)")
      ->type_name("G");
  logs.add_option("--node", asked->node, "only the ranks on this node")->type_name("NODE");
  logs.add_option("--attempt", asked->attempt, "number of the attempt (default: the newest)")
      ->type_name("A");
  logs.add_flag_callback(
      "--escape", [asked] { asked->bytes = LogAsked::Bytes::kEscaped; },
      "escape control characters");
  logs.footer(
      "Bytes are printed as the ranks wrote them. The number of bytes that are no longer kept is\n"
      "printed on standard error.\nExamples:\n  orrery logs -f 7\n  orrery logs 7 --tail 20 "
      "--since 1h\n"
      "  orrery logs 7 --rank 3 --attempt 1 | less");
  logs.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return print_log(options, *asked); };
  });
  add_attach_command(app, options, chosen);
  auto which = std::make_shared<EventsAskedFor>();
  CLI::App& events = *app.add_subcommand("events", "list changes in the cluster with their times");
  events.add_flag("-f,--follow", which->follow, "also print new events until interrupted");
  events.add_option("--job", which->job, "only events of this job")->type_name("JOB");
  events.add_option("--node", which->node, "only events of this node")->type_name("NODE");
  events.add_option("--kind", which->kind, "only events of this kind, such as JobStarted")
      ->type_name("KIND");
  events
      .add_option("--tenant", which->tenant,
                  "only events of jobs of this tenant and of the tenants below it")
      ->type_name("TENANT");
  events
      .add_option("--since", which->since,
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

}  // namespace orrery
