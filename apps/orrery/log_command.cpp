// orrery logs, events
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "api/views.hpp"
#include "apps/orrery/command.hpp"
#include "apps/orrery/live_session.hpp"
#include "base/quantity_text.hpp"
#include "base/real_clock.hpp"
#include "base/time.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

struct LogAsked {
  std::string id;
  bool follow = false;
  bool tail = false;
  std::uint32_t attempt = 0;
  std::uint32_t gang = 0;
  std::uint32_t rank = 0;
};

void print_chunk(const CommandOptions& options, const v1::LogChunk& chunk) {
  if (options.output == OutputFormat::kJson) return print_answer_line(chunk);
  if (chunk.skipped() > 0) {
    print_message(fmt::format("orrery: {} bytes before are gone\n", chunk.skipped()));
  }
  if (!chunk.note().empty()) print_message(fmt::format("orrery: {}\n", chunk.note()));
  print_text(chunk.bytes());
  (void)std::fflush(stdout);
}

/// A reader that has gone (`orrery logs 7 | head`) ends a stream.
bool wanted() { return std::ferror(stdout) == 0; }

Status print_log(const CommandOptions& options, const LogAsked& asked) {
  const Result<std::uint64_t> id = job_id(asked.id);
  if (!id) return tl::unexpected(id.error());
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  v1::ReadLogRequest request;
  request.set_id(*id);
  request.set_attempt(asked.attempt);
  request.set_gang(asked.gang);
  request.set_rank(asked.rank);
  request.set_follow(asked.follow);
  request.set_tail(asked.tail);
  v1::LogChunk chunk;
  return (*session)->client().read(
      "ReadLog", [&]() -> const v1::ReadLogRequest& { return request; }, chunk,
      [&] {
        print_chunk(options, chunk);
        if (chunk.attempt() > 0) {  // where to go on if the stream is lost
          request.set_from_attempt(chunk.attempt());
          request.set_from(chunk.from() + chunk.bytes().size());
          request.set_tail(false);
        }
        return wanted();
      });
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
    // Of who is to blame, why.
    const bool blame = key == "blame" && part.is_object();
    const Json& value = blame && part.contains("evidence") ? part["evidence"] : part;
    if (key == "at" || key == "event" || value.is_structured() || value == "") continue;
    const std::string shown = value.is_null()     ? "-"
                              : value.is_string() ? value.get<std::string>()
                                                  : value.dump();
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
    print_text(fmt::format("{}  {}{}\n", time, row.type(), facts_of(row.fields())));
  }
  (void)std::fflush(stdout);
}

/// "2h" ago, or an instant.
Result<Instant> since_of(const std::string& text) {
  if (const Result<Instant> at = Instant::parse(text)) return *at;
  const Result<Seconds> ago = parse<Seconds>(text);
  if (!ago) {
    return input_error({}, fmt::format("--since: \"{}\": expected how long ago, such as 2h, or "
                                       "2026-12-01T06:00:00Z",
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

/// Those of the log, each once; `last` are kept of what was printed, so that a stream which begins
/// before them can leave them out.
Status print_history(const CommandOptions& options, LiveSession& session,
                     const EventsAskedFor& asked, std::multiset<std::string>& last) {
  Result<v1::ListEventsRequest> request = request_of<v1::ListEventsRequest>(asked);
  if (!request) return tl::unexpected(request.error());
  request->set_page_size(kEventsPage);
  request->set_newest(asked.since.empty());
  if (!asked.since.empty()) {
    const Result<Instant> since = since_of(asked.since);
    if (!since) return tl::unexpected(since.error());
    *request->mutable_since() = timestamp_of(*since);
  }
  while (true) {
    const auto page = session.client().call<v1::ListEventsResponse>("ListEvents", *request);
    if (!page) return tl::unexpected(page.error());
    for (const v1::EventRow& row : page->events()) {
      print_event(options, row);
      if (asked.follow) last.insert(row.SerializeAsString());
    }
    if (page->next_page_token().empty()) return {};
    request->set_page_token(page->next_page_token());
  }
}

/// History is asked for once the stream has begun, so that nothing is missed in between.
Status print_events(const CommandOptions& options, const EventsAskedFor& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  std::multiset<std::string> printed;
  if (!asked.follow) return print_history(options, **session, asked, printed);
  Result<v1::WatchEventsRequest> request = request_of<v1::WatchEventsRequest>(asked);
  if (!request) return tl::unexpected(request.error());
  request->set_mark_begin(true);
  Result<std::unique_ptr<LiveSession>> beside = LiveSession::open(options);
  if (!beside) return forward_error(beside);
  bool begun = false;
  Status history;
  v1::EventRow row;
  const Status watched = (*session)->client().read(
      "WatchEvents", [&]() -> const v1::WatchEventsRequest& { return *request; }, row,
      [&] {
        if (row.type().empty()) {
          if (!std::exchange(begun, true)) {
            history = print_history(options, **beside, asked, printed);
          }
          return history.has_value() && wanted();
        }
        const auto known = printed.find(row.SerializeAsString());
        if (known != printed.end()) {
          printed.erase(known);
        } else {
          print_event(options, row);
        }
        return wanted();
      });
  return history ? watched : history;
}

}  // namespace

void add_log_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<LogAsked>();
  CLI::App& logs = *app.add_subcommand("logs", "what a rank of a job wrote");
  logs.add_option("id", asked->id, "the job's number")->type_name("JOB")->required();
  logs.add_flag("-f,--follow", asked->follow, "and what it writes, until the job has ended");
  logs.add_flag("--tail", asked->tail, "begin with the last 64 KiB");
  logs.add_option("--rank", asked->rank, "of the gang")->type_name("R")->capture_default_str();
  logs.add_option("--gang", asked->gang, "of the job")->type_name("G")->capture_default_str();
  logs.add_option("--attempt", asked->attempt, "else the last one")->type_name("A");
  logs.footer("Examples:\n  orrery logs -f 7\n  orrery logs 7 --rank 3 --attempt 1 | less");
  logs.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return print_log(options, *asked); };
  });
  auto which = std::make_shared<EventsAskedFor>();
  CLI::App& events = *app.add_subcommand("events", "what has changed in the cluster, and when");
  events.add_flag("-f,--follow", which->follow, "and what changes from now on, until interrupted");
  events.add_option("--job", which->job, "only of this one")->type_name("JOB");
  events.add_option("--node", which->node, "only of this one")->type_name("NODE");
  events.add_option("--kind", which->kind, "only of this one, such as JobStarted")
      ->type_name("KIND");
  events.add_option("--tenant", which->tenant, "only of jobs of this one, and those below it")
      ->type_name("TENANT");
  events.add_option("--since", which->since, "2h, or 2026-12-01T06:00:00Z (default: the last 100)")
      ->type_name("TIME");
  events.footer(
      "Examples:\n  orrery events --job 7\n  orrery events -f --node node-3 --since 1d\n"
      "\nBack to the oldest batch of the log; older ones: `orrery store export`.");
  events.callback([&options, &chosen, which] {
    chosen = [&options, which] { return print_events(options, *which); };
  });
}

}  // namespace orrery
