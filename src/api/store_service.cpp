#include "api/store_service.hpp"

#include <fmt/format.h>

#include <utility>

#include "api/orrery_service.hpp"
#include "base/text/line_changes.hpp"
#include "base/text/utf8.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

/// The name of the text in the directory of the cluster.
const std::string kFleetFile = "fleet.yaml";

void fill(const FleetChange& change, v1::FleetChange& view) {
  view.mutable_added()->Add(change.added.begin(), change.added.end());
  view.mutable_retired()->Add(change.retired.begin(), change.retired.end());
  view.mutable_moved()->Add(change.moved.begin(), change.moved.end());
  view.set_from(change.from);
  for (const FleetChange::Busy& each : change.busy) {
    v1::BusyNode& busy = *view.add_busy();
    busy.set_node(each.node);
    for (const JobId job : each.jobs) busy.add_jobs(job.value());
  }
  view.set_applied(change.applied);
}

/// The name by which the caller knows the text; an answer holds a short one alone.
std::string file_of(const v1::ApplyFleetRequest& request) {
  constexpr std::size_t kShown = 256;
  return request.file().empty() ? kFleetFile : printable(request.file(), kShown);
}

}  // namespace

MethodTable refused_in_silence(const MethodTable& methods, const Controller& controller) {
  MethodTable table;
  for (const auto& [name, method] : methods.all()) {
    Method wrapped = method;
    wrapped.handle = [&controller, handle = method.handle](const google::protobuf::Message& request,
                                                           const std::shared_ptr<Call>& call) {
      if (std::string why = controller.store().log().silence(); !why.empty()) {
        return call->finish({CallCode::kUnavailable, std::move(why)});
      }
      handle(request, call);
    };
    table.add(name, std::move(wrapped));
  }
  return table;
}

void add_store_methods(MethodTable& table, Controller& controller) {
  table.add<v1::CompactStoreRequest>(
      "CompactStore", {Role::kAdmin, Effect::kChange, Scope::kCluster},
      [&controller](const v1::CompactStoreRequest&, std::shared_ptr<Call> call) {
        controller.compact([call = std::move(call)](const Result<CompactedLog>& log) {
          if (!log) return call->fail(log.error());
          v1::CompactStoreResponse response;
          response.set_snapshot(log->covers);
          response.set_snapshot_bytes(log->snapshot_bytes);
          response.set_dropped_batches(log->dropped);
          call->reply(response);
        });
      });
}

void add_fleet_methods(MethodTable& table, Controller& controller, FleetChanged changed) {
  table.add<v1::ApplyFleetRequest>(
      "ApplyFleet", {Role::kAdmin, Effect::kChange, Scope::kCluster},
      [&controller, changed = std::move(changed)](const v1::ApplyFleetRequest& request,
                                                  const std::shared_ptr<Call>& call) {
        v1::FleetChange view;
        const std::string file = file_of(request);
        for (const LineChange& line : line_changes(controller.fleet().text(), request.fleet())) {
          view.add_changed(change_text(file, line));
        }
        const FleetApply how = request.dry_run() ? FleetApply::kDryRun : FleetApply::kApply;
        std::string request_id =
            request.dry_run() ? std::string() : own_request_id(request.request_id(), *call);
        controller.fleet().apply(
            {request.fleet(), how, std::move(request_id), request.from()},
            [&controller, changed, call, view, file](Result<FleetChange> change) mutable {
              if (!change) {
                Error error = std::move(change.error());
                if (error.where.file == kFleetFile) error.where.file = file;
                return call->fail(error);
              }
              fill(*change, view);
              if (change->applied && !view.changed().empty()) {
                controller.events().note_operator(
                    "fleet changed", call->caller().name,
                    {"nodes", fmt::format("{} added, {} retired", change->added.size(),
                                          change->retired.size())});
                if (changed) changed(controller.fleet().text());
              }
              call->reply(view);
            });
      });
}

}  // namespace orrery
