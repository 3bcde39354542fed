#include "api/orrery_service.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "api/access/authorization.hpp"
#include "api/access/event_filter.hpp"
#include "api/event_selection.hpp"
#include "api/exec_service.hpp"
#include "api/jobs/archive_walk.hpp"
#include "api/jobs/job_changes.hpp"
#include "api/jobs/job_explanation.hpp"
#include "api/jobs/job_listing.hpp"
#include "api/log_reading.hpp"
#include "api/page.hpp"
#include "api/views.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/name_check.hpp"
#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

using CallPtr = std::shared_ptr<Call>;

const MethodRule kReadsJob{Role::kViewer, Effect::kRead, Scope::kJob};
const MethodRule kReadsOwn{Role::kViewer, Effect::kRead, Scope::kOwn};
const MethodRule kReadsCluster{Role::kViewer, Effect::kRead, Scope::kCluster};
const MethodRule kOperates{Role::kOperator, Effect::kChange, Scope::kCluster};

/// Returns the selection that a request for events asks for.
template <class Request>
EventSelectionText selection_text(const Request& request) {
  EventSelectionText text{.job = std::nullopt,
                          .node = request.node(),
                          .kind = request.kind(),
                          .tenant = request.tenant(),
                          .since = {}};
  if (request.has_job()) text.job = request.job();
  if constexpr (requires { request.has_since(); }) {
    if (request.has_since()) text.since = instant_of(request.since());
  }
  return text;
}

class Methods {
 public:
  Methods(Controller& controller, const Env& env) : controller_(controller), env_(env) {}

  [[nodiscard]] MethodTable table() const;

 private:
  [[nodiscard]] const State& state() const { return controller_.state(); }
  [[nodiscard]] Visibility visibility(const Call& call) const { return {state(), call.caller()}; }
  /// Returns the caller's visibility of events, including those of archived jobs.
  [[nodiscard]] Visibility history_visibility(const Call& call) const {
    return visibility(call).with_archive(
        [&controller = controller_](JobId job) { return tenant_of_job(controller, job.value()); });
  }

  /// Returns none where there is no such job; the call was finished with that error.
  template <class Request>
  [[nodiscard]] std::optional<JobId> job_of(const Request& request, const CallPtr& call) const {
    return find_job(controller_, request.id(), *call);
  }
  /// Answers with a job of the archive, which is read beside the loop; returns false where the job
  /// is in the state, or does not exist.
  template <class Request>
  [[nodiscard]] bool answer_from_archive(const Request& request, const CallPtr& call) const {
    if (request.id() >= state().jobs() || state().has(JobId::at(request.id()))) return false;
    const auto archive = std::make_shared<ArchiveWalk>(controller_);
    archive->read(request.id(), [this, archive = archive.get(), call, id = request.id()] {
      const std::optional<v1::Job> job = archive->find(id);
      if (job) return read(call, *job);
      static_cast<void>(find_job(controller_, id, *call));  // which ends the call with the reason
    });
    return true;
  }
  [[nodiscard]] std::optional<NodeId> node_of(const std::string& name, const CallPtr& call) const {
    return find_node(controller_, name, *call);
  }

  /// Answers with a view of the present state, once that is durable.
  template <class View>
  void read(const CallPtr& call, View view) const {
    controller_.after_durable([call, view = std::move(view)] { call->reply(view); });
  }

  void submit(const v1::SubmitJobRequest& request, const CallPtr& call) const;
  void list_jobs(const v1::ListJobsRequest& request, const CallPtr& call) const {
    JobListing::begin(controller_, request, call);
  }
  void get_job(const v1::GetJobRequest& request, const CallPtr& call) const;
  void wait_job(const v1::WaitJobRequest& request, const CallPtr& call) const;
  void explain_job(const v1::ExplainJobRequest& request, const CallPtr& call) const;
  void read_log(const v1::ReadLogRequest& request, const CallPtr& call) const;
  void list_nodes(const v1::ListNodesRequest& request, const CallPtr& call) const;
  void get_node(const v1::GetNodeRequest& request, const CallPtr& call) const;
  void drain_node(const v1::DrainNodeRequest& request, const CallPtr& call) const;
  template <class Command>
  void change_node(const v1::NodeRequest& request, const CallPtr& call) const;
  void burn_in_node(const v1::NodeRequest& request, const CallPtr& call) const;
  void command_node(NodeId node, InputKind what, const std::string& request_id,
                    const CallPtr& call) const;
  /// Logs an operator's command.
  void note(const CallPtr& call, std::string_view what, LogField of) const;
  void list_power(const v1::ListPowerDomainsRequest& request, const CallPtr& call) const;
  void set_cap(const v1::SetPowerCapRequest& request, const CallPtr& call) const;
  void list_events(const v1::ListEventsRequest& request, const CallPtr& call) const;
  void watch_events(const v1::WatchEventsRequest& request, const CallPtr& call) const;

  Controller& controller_;
  Env env_;
  std::shared_ptr<SpecRedaction> redaction_ = std::make_shared<SpecRedaction>();
};

// --- Jobs ---------------------------------------------------------------------------------------

void Methods::submit(const v1::SubmitJobRequest& request, const CallPtr& call) const {
  if (Status room = controller_.submissions().admission(call->caller().tenant); !room) {
    note(call, "submission refused", {"why", room.error().message});
    return call->finish({CallCode::kResourceExhausted, room.error().text()});
  }
  const JobText text = job_text(request.spec(), request.file(), call->caller());
  const auto refuse = [this, call](const Error& error) {
    note(call, "submission refused", {"why", shown_refusal(error)});
    call->fail(error);
  };
  const std::string request_id = own_request_id(request.request_id(), *call);
  const Result<std::string> kept = controller_.submissions().appraise(text, request_id);
  if (!kept) return refuse(kept.error());
  v1::SubmitJobResponse answer;
  answer.set_note(*kept);
  if (request.dry_run()) return call->reply(answer);
  controller_.submissions().submit(
      text, request_id, [this, call, refuse, answer](const Result<std::vector<JobId>>& jobs) {
        if (!jobs) return refuse(jobs.error());
        v1::SubmitJobResponse response = answer;
        response.set_id(jobs->front().value());
        if (state().has(jobs->front())) {
          response.set_name(state().job(jobs->front()).name);
        }
        if (jobs->size() > 1) {
          for (const JobId job : *jobs) response.add_array(job.value());
        }
        call->reply(response);
      });
}

void Methods::get_job(const v1::GetJobRequest& request, const CallPtr& call) const {
  if (answer_from_archive(request, call)) return;
  const std::optional<JobId> job = job_of(request, call);
  if (job) read(call, job_view(controller_, *job, JobDetail::kAll));
}

void Methods::wait_job(const v1::WaitJobRequest& request, const CallPtr& call) const {
  if (answer_from_archive(request, call)) return;
  const std::optional<JobId> job = job_of(request, call);
  if (!job) return;
  if (ended(state().job(*job).phase)) {
    return read(call, job_view(controller_, *job, JobDetail::kRow));
  }
  auto number = std::make_shared<EventFeed::WatchNumber>();
  *number = controller_.events().watch([this, call, number, id = *job](const TimedEvent& event) {
    if (!call->wanted()) return controller_.events().unwatch(*number);
    const auto* end = std::get_if<JobEnded>(&event.what);
    if (end == nullptr || end->job != id) return;
    controller_.events().unwatch(*number);
    call->reply(job_view(controller_, id, JobDetail::kRow));
  });
}

void Methods::explain_job(const v1::ExplainJobRequest& request, const CallPtr& call) const {
  const std::optional<JobId> id = job_of(request, call);
  if (id) begin_explanation(controller_, *id, call);
}

void Methods::read_log(const v1::ReadLogRequest& request, const CallPtr& call) const {
  const std::optional<JobId> id = job_of(request, call);
  if (!id) return;
  if (!request.node().empty() && !node_of(request.node(), call)) return;
  const Job& job = state().job(*id);
  if (const std::uint32_t asked = std::max(request.attempt(), request.from_attempt());
      asked > job.attempt) {
    return call->finish(
        {CallCode::kNotFound, fmt::format("job {} has no attempt {}: it has had {}", id->value(),
                                          asked, counted(job.attempt, "attempt"))});
  }
  if (job.attempt == 0 && !request.follow()) {
    return call->finish({CallCode::kFailedPrecondition,
                         fmt::format("job {} has not started yet; `orrery explain {}` says why",
                                     id->value(), id->value())});
  }
  LogReading::begin(controller_, env_, request, call);
}

// --- Nodes --------------------------------------------------------------------------------------

void Methods::list_nodes(const v1::ListNodesRequest& request, const CallPtr& call) const {
  const Result<Page> page = page_of(request);
  if (!page) return call->fail(page.error());
  const std::uint64_t count = state().setup().topology->node_count();
  v1::ListNodesResponse response;
  std::uint64_t at = page->first;
  for (; at < count && at - page->first < page->size; ++at) {
    *response.add_nodes() = node_view(controller_, NodeId::at(at), visibility(*call));
  }
  if (at < count) response.set_next_page_token(std::to_string(at));
  read(call, std::move(response));
}

void Methods::get_node(const v1::GetNodeRequest& request, const CallPtr& call) const {
  const std::optional<NodeId> node = node_of(request.name(), call);
  if (node) read(call, node_view(controller_, *node, visibility(*call)));
}

void Methods::command_node(NodeId node, InputKind what, const std::string& request_id,
                           const CallPtr& call) const {
  controller_.command(std::move(what), request_id, [this, node, call](Result<JobId> done) {
    if (!done) {
      return call->finish({CallCode::kFailedPrecondition, done.error().text()});
    }
    v1::NodeResponse response;
    *response.mutable_node() = node_view(controller_, node, visibility(*call));
    call->reply(response);
  });
}

void Methods::note(const CallPtr& call, std::string_view what, LogField of) const {
  controller_.events().note_operator(what, call->caller().name, of);
}

void Methods::drain_node(const v1::DrainNodeRequest& request, const CallPtr& call) const {
  const std::optional<NodeId> node = node_of(request.name(), call);
  if (!node) return;
  if (request.has_from() != request.has_to()) {
    return call->finish({CallCode::kInvalidArgument,
                         "a maintenance window has a beginning and an end: expected from and to"});
  }
  InputKind what = DrainNode{*node, request.at_once(), request.why()};
  if (request.has_from()) {
    if (request.at_once()) {
      return call->finish({CallCode::kInvalidArgument,
                           "a maintenance window empties its nodes when it begins: expected from "
                           "and to, or at_once, not both"});
    }
    what = SetMaintenance{
        0, {*node}, instant_of(request.from()), instant_of(request.to()), request.why()};
  }
  note(call, request.at_once() ? "drain --now asked for" : "drain asked for",
       {"node", request.name()});
  command_node(*node, std::move(what), own_request_id(request.request_id(), *call), call);
}

template <class Command>
void Methods::change_node(const v1::NodeRequest& request, const CallPtr& call) const {
  const std::optional<NodeId> node = node_of(request.name(), call);
  if (!node) return;
  constexpr bool kFence = std::is_same_v<Command, FenceNode>;
  note(call, kFence ? "fence asked for" : "resume asked for", {"node", request.name()});
  command_node(*node, Command{*node}, own_request_id(request.request_id(), *call), call);
}

void Methods::burn_in_node(const v1::NodeRequest& request, const CallPtr& call) const {
  const std::optional<NodeId> node = node_of(request.name(), call);
  if (!node) return;
  if (const Status begun = controller_.sessions().burn_in(*node); !begun) {
    return call->finish({CallCode::kFailedPrecondition, begun.error().text()});
  }
  v1::NodeResponse response;
  *response.mutable_node() = node_view(controller_, *node, visibility(*call));
  call->reply(response);
}

// --- Power --------------------------------------------------------------------------------------

void Methods::list_power(const v1::ListPowerDomainsRequest& request, const CallPtr& call) const {
  const Result<Page> page = page_of(request);
  if (!page) return call->fail(page.error());
  const std::uint64_t count = state().setup().topology->power_domains().size();
  v1::ListPowerDomainsResponse response;
  std::uint64_t at = page->first;
  for (; at < count && at - page->first < page->size; ++at) {
    *response.add_domains() = power_view(controller_, PowerDomainId::at(at));
  }
  if (at < count) response.set_next_page_token(std::to_string(at));
  read(call, std::move(response));
}

void Methods::set_cap(const v1::SetPowerCapRequest& request, const CallPtr& call) const {
  const Result<PowerDomainId> domain = state().setup().topology->power_named(request.name());
  if (!domain) return call->finish({CallCode::kNotFound, domain.error().message});
  SetPowerCap what{*domain, std::nullopt};
  if (request.has_cap_w()) {
    if (!(request.cap_w() >= 0) || !std::isfinite(request.cap_w())) {
      return call->finish({CallCode::kInvalidArgument, "cap_w: expected watts, 0 or more"});
    }
    what.cap = Watts(request.cap_w());
  }
  controller_.command(what, own_request_id(request.request_id(), *call),
                      [this, call, domain = *domain](Result<JobId> done) {
                        if (!done) return call->fail(done.error());
                        call->reply(power_view(controller_, domain));
                      });
}

/// Returns "AFTER:HASH:BATCH:SKIP", the place where the next page begins.
std::string token_of(const EventPlace& place) {
  return fmt::format("{}:{:x}:{}:{}", place.segment.after, place.segment.history_hash, place.batch,
                     place.skip);
}

Result<EventPlace> event_place(const std::string& token) {
  EventPlace place;
  const char* at = token.data();
  const char* const end = at + token.size();
  const auto read = [&](std::uint64_t& number, int base) {
    const auto [rest, failed] = std::from_chars(at, end, number, base);
    const bool good = failed == std::errc() && (rest == end || *rest == ':');
    at = rest == end ? rest : rest + 1;
    return good;
  };
  constexpr int kHex = 16;
  const bool good = read(place.segment.after, 10) && read(place.segment.history_hash, kHex) &&
                    read(place.batch, 10) && read(place.skip, 10) && at == end;
  if (good) return place;
  return input_error({}, fmt::format("page_token \"{}\" is not one of this method", token));
}

void Methods::list_events(const v1::ListEventsRequest& request, const CallPtr& call) const {
  if (request.page_size() > kPageMost) {
    return call->fail(
        {ErrorKind::kInput,
         fmt::format("page_size is {}, expected at most {}", request.page_size(), kPageMost),
         {}});
  }
  const Result<EventSelection> selection =
      event_selection(controller_, history_visibility(*call), selection_text(request));
  if (!selection) return call->fail(selection.error());
  EventsAsked asked{.wanted = [selection = *selection](
                                  const TimedEvent& event) { return selection.matches(event); },
                    .from = std::nullopt,
                    .count = request.page_size() > 0 ? request.page_size() : kPageUsual,
                    .newest = request.newest()};
  if (!request.page_token().empty()) {
    Result<EventPlace> place = event_place(request.page_token());
    if (!place) return call->fail(place.error());
    asked.from = *place;
  }
  const EventFilter filter(history_visibility(*call), redaction_);
  controller_.events().ask(std::move(asked), [this, call, filter, tenant = selection->tenant](
                                                 const Result<EventsFound>& found) {
    if (!found) return call->fail(found.error());
    v1::ListEventsResponse response;
    for (const TimedEvent& event : found->events) {
      if (!of_tenant(controller_, event, tenant)) continue;
      const std::optional<TimedEvent> shown = filter.shown(event);
      if (shown) *response.add_events() = event_view(controller_, *shown);
    }
    if (found->next) response.set_next_page_token(token_of(*found->next));
    call->reply(response);
  });
}

void Methods::watch_events(const v1::WatchEventsRequest& request, const CallPtr& call) const {
  const Result<EventSelection> selection =
      event_selection(controller_, history_visibility(*call), selection_text(request));
  if (!selection) return call->fail(selection.error());
  auto number = std::make_shared<EventFeed::WatchNumber>();
  const EventFilter filter(history_visibility(*call), redaction_);
  *number = controller_.events().watch(
      [this, call, number, filter, selection = *selection](const TimedEvent& event) mutable {
        if (!call->wanted()) return controller_.events().unwatch(*number);
        selection.follow_fleet(controller_);
        if (!selection.matches(event) || !of_tenant(controller_, event, selection.tenant)) return;
        const std::optional<TimedEvent> shown = filter.shown(event);
        if (shown) call->send(event_view(controller_, *shown));
      });
  call->open();
  if (request.mark_begin()) call->send(v1::EventRow());
}

// --- The table ----------------------------------------------------------------------------------

MethodTable Methods::table() const {
  MethodTable table;
  // A copy of references and a pointer, so that the table needs nothing beside the controller.
  const auto add = [&]<class Request>(const std::string& name, const MethodRule& rule,
                                      void (Methods::*method)(const Request&, const CallPtr&)
                                          const) {
    table.add<Request>(name, rule,
                       [self = *this, method](const Request& request, const CallPtr& call) {
                         (self.*method)(request, call);
                       });
  };
  add("SubmitJob", {Role::kUser, Effect::kChange, Scope::kOwn}, &Methods::submit);
  add_job_changes(table, controller_);
  add("ListJobs", kReadsOwn, &Methods::list_jobs);
  add("GetJob", kReadsJob, &Methods::get_job);
  add("WaitJob", kReadsJob, &Methods::wait_job);
  add("ExplainJob", kReadsJob, &Methods::explain_job);
  add("ReadLog", kReadsJob, &Methods::read_log);
  add("ListNodes", kReadsOwn, &Methods::list_nodes);
  add("GetNode", kReadsOwn, &Methods::get_node);
  add("DrainNode", kOperates, &Methods::drain_node);
  add("ResumeNode", kOperates, &Methods::change_node<ResumeNode>);
  add("FenceNode", kOperates, &Methods::change_node<FenceNode>);
  add("BurnInNode", kOperates, &Methods::burn_in_node);
  add("ListPowerDomains", kReadsCluster, &Methods::list_power);
  add("SetPowerCap", kOperates, &Methods::set_cap);
  table.add<v1::ListTenantsRequest>(
      "ListTenants", kReadsOwn, [self = *this](const v1::ListTenantsRequest&, const CallPtr& call) {
        self.read(call, tenants_view(self.controller_, self.visibility(*call)));
      });
  table.add<v1::GetClusterRequest>(
      "GetCluster", kReadsOwn, [self = *this](const v1::GetClusterRequest&, const CallPtr& call) {
        self.read(call, cluster_view(self.controller_, self.visibility(*call)));
      });
  add("ListEvents", kReadsOwn, &Methods::list_events);
  add("WatchEvents", kReadsOwn, &Methods::watch_events);
  return table;
}

}  // namespace

std::optional<NodeId> find_node(const Controller& controller, const std::string& name, Call& call) {
  if (const std::optional<NodeId> node = controller.agents().node_named(name)) return node;
  std::vector<std::string> names;
  const Topology& topology = *controller.state().setup().topology;
  names.reserve(topology.node_count());
  for (std::uint32_t at = 0; at < topology.node_count(); ++at) {
    names.push_back(topology.node_name(NodeId(at)));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  call.finish(
      {CallCode::kNotFound, fmt::format("no node \"{}\"{}", name, did_you_mean(name, views))});
  return std::nullopt;
}

std::optional<JobId> find_job(const Controller& controller, std::uint64_t number, Call& call) {
  const State& state = controller.state();
  if (state.setup().is_lost(JobId::at(number))) {
    call.finish({CallCode::kNotFound,
                 fmt::format("no job {}: it was lost with a part of the log", number)});
    return std::nullopt;
  }
  if (number >= state.jobs()) {
    call.finish(no_such_job(number));
    return std::nullopt;
  }
  const JobId id = JobId::at(number);
  if (state.has(id)) return id;
  call.finish(
      {CallCode::kFailedPrecondition,
       fmt::format("job {0} has ended and is in the archive; `orrery job {0}` shows what is "
                   "known of it",
                   number)});
  return std::nullopt;
}

JobText job_text(const std::string& spec, const std::string& file, const Caller& caller) {
  const auto users =
      caller.role == Role::kAdmin ? JobText::TenantUsers::kAll : JobText::TenantUsers::kOwn;
  return {spec, file.empty() ? "job" : file, caller.tenant, caller.name, caller.run_as, users};
}

std::string own_request_id(const std::string& request_id, const Call& call) {
  return request_id.empty() ? std::string() : call.caller().name + "/" + request_id;
}

MethodTable orrery_methods(Controller& controller, const Env& env) {
  MethodTable table = Methods(controller, env).table();
  add_exec_method(table, controller);
  return table;
}

}  // namespace orrery
