#include "verbs/watch/event_stream.hpp"

#include <fmt/format.h>

#include "api/views.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kEventsPage = 100;

/// "  job=3  cause=too-few": what stands in the event by itself; the whole is in JSON.
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

template <class Request>
Result<Request> request_of(const EventChoice& selection) {
  Request request;
  if (!selection.job.empty()) {
    const Result<std::uint64_t> job = job_id(selection.job);
    if (!job) return tl::unexpected(job.error());
    request.set_job(*job);
  }
  request.set_node(selection.node);
  request.set_kind(selection.kind);
  request.set_tenant(selection.tenant);
  return request;
}

}  // namespace

Result<v1::ListEventsRequest> history_request(const EventChoice& selection, Instant now) {
  Result<v1::ListEventsRequest> request = request_of<v1::ListEventsRequest>(selection);
  if (!request) return request;
  request->set_page_size(kEventsPage);
  request->set_newest(selection.since.empty());
  if (selection.since.empty()) return request;
  const Result<Instant> since = read_since(selection.since, now);
  if (!since) return tl::unexpected(since.error());
  *request->mutable_since() = timestamp_of(*since);
  return request;
}

Result<v1::WatchEventsRequest> watch_request(const EventChoice& selection) {
  Result<v1::WatchEventsRequest> request = request_of<v1::WatchEventsRequest>(selection);
  if (request) request->set_mark_begin(true);
  return request;
}

Result<Instant> read_since(const std::string& text, Instant now) {
  if (const Result<Instant> at = Instant::parse(text)) return *at;
  const Result<Seconds> ago = parse<Seconds>(text);
  if (!ago) {
    return input_error({}, fmt::format("--since: \"{}\": expected an age, such as 2h, or an "
                                       "instant, such as 2026-12-01T06:00:00Z",
                                       text));
  }
  return now - Duration::from_seconds(ago->value());
}

std::string event_text(const v1::EventRow& row) {
  // To the millisecond, always as wide.
  const Instant at = Instant() + Duration::seconds(row.at().seconds());
  std::string time = at.text();
  time.insert(time.size() - 1, fmt::format(".{:03}", row.at().nanos() / 1'000'000));
  return one_line(fmt::format("{}  {}{}", time, row.type(), facts_of(row.fields()))) + "\n";
}

Json event_json(const v1::EventRow& row) {
  Json line = answer_json(row);
  Json fields = Json::parse(row.fields(), nullptr, false);
  if (!fields.is_discarded()) line["fields"] = std::move(fields);
  return line;
}

std::string event_json_line(const v1::EventRow& row) {
  return terminal_json(event_json(row).dump()) + "\n";
}

bool EventOrder::take(Rows& rows, const v1::EventRow& row) {
  const auto known = rows.find(row.SerializeAsString());
  if (known == rows.end()) return false;
  rows.erase(known);
  return true;
}

void EventOrder::begin_history() {
  from_history_.clear();
  before_ = newest_rows_;
}

void EventOrder::add_history(const v1::EventRow& row) {
  if (stream_ == Stream::kFollows) from_history_.insert(row.SerializeAsString());
  if (!take(before_, row)) show(row);
}

void EventOrder::add_live(const v1::EventRow& row) {
  if (!take(from_history_, row)) show(row);
}

void EventOrder::show(const v1::EventRow& row) {
  show_(row);
  const Instant at = instant_of(row.at());
  if (!newest_ || at > *newest_) newest_rows_.clear();
  if (!newest_ || at >= *newest_) {
    newest_ = at;
    newest_rows_.insert(row.SerializeAsString());
  }
}

Status EventLogReader::read(Instant now) {
  Result<v1::ListEventsRequest> request = history_request(selection_, now);
  if (!request) return forward_error(request);
  if (std::exchange(again_, true)) {
    request->set_newest(false);
    if (order_.newest()) *request->mutable_since() = timestamp_of(*order_.newest());
  }
  order_.begin_history();
  while (true) {
    const auto page = session_.client().call<v1::ListEventsResponse>("ListEvents", *request);
    if (!page) return tl::unexpected(page.error());
    for (const v1::EventRow& row : page->events()) order_.add_history(row);
    if (page->next_page_token().empty()) return {};
    request->set_page_token(page->next_page_token());
  }
}

Status watch_events(LiveSession& session, const EventChoice& selection, EventLogReader& history,
                    const std::function<bool()>& wanted) {
  const Result<v1::WatchEventsRequest> request = watch_request(selection);
  if (!request) return tl::unexpected(request.error());
  Status read;
  v1::EventRow row;
  const Status watched = session.client().read(
      "WatchEvents", [&]() -> const v1::WatchEventsRequest& { return *request; }, row,
      [&] {
        if (!row.type().empty()) {
          history.order().add_live(row);
          return wanted();
        }
        read = history.read(RealClock().now_wall());
        return read.has_value() && wanted();
      });
  return read ? watched : read;
}

}  // namespace orrery
