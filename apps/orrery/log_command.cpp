// orrery logs, events
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_session.hpp"
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
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    if (shown.find('\n') == std::string::npos) text += fmt::format("  {}={}", key, shown);
  }
  return text;
}

void print_event(const v1::EventRow& row) {
  // To the millisecond, always as wide.
  const Instant at = Instant() + Duration::seconds(row.at().seconds());
  std::string time = at.text();
  time.insert(time.size() - 1, fmt::format(".{:03}", row.at().nanos() / 1'000'000));
  print_text(fmt::format("{}  {}{}\n", time, row.type(), facts_of(row.fields())));
  (void)std::fflush(stdout);
}

Status watch_events(const CommandOptions& options) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const v1::WatchEventsRequest request;
  v1::EventRow row;
  return (*session)->client().read(
      "WatchEvents", [&]() -> const v1::WatchEventsRequest& { return request; }, row,
      [&] {
        if (options.output == OutputFormat::kJson) {
          print_answer_line(row);
        } else {
          print_event(row);
        }
        return wanted();
      });
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
  CLI::App& events = *app.add_subcommand(
      "events", "each change of the cluster's state, from now on, until interrupted");
  events.add_flag("-f,--follow")->description("as it does anyway");
  events.footer("Those that were: orrery store export DIR/store");
  events.callback([&options, &chosen] { chosen = [&options] { return watch_events(options); }; });
}

}  // namespace orrery
