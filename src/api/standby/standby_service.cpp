#include "api/standby/standby_service.hpp"

#include <fmt/format.h>

#include <utility>

#include "api/views.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

v1::ControllerState standby_view(const StandbyProgress& progress) {
  v1::ControllerState view;
  view.set_leader(progress.leader.substr(0, progress.leader.find(' ')));
  view.set_term(progress.term);
  view.set_batch(progress.batch);
  view.set_behind_batches(progress.behind_batches);
  view.set_behind_s(progress.behind.count_seconds());
  view.set_version(std::string(program_version()));
  return view;
}

v1::ControllerState leader_view(const LiveLog& log) {
  v1::ControllerState view;
  view.set_leads(true);
  view.set_term(static_cast<std::uint64_t>(log.term()));
  view.set_batch(log.newest());
  view.set_version(std::string(program_version()));
  return view;
}

}  // namespace

MethodTable standby_methods(AskProgress progress) {
  MethodTable table;
  table.add<v1::GetControllerRequest>(
      "GetController", {Role::kNobody, Effect::kRead, Scope::kCluster},
      [progress = std::move(progress)](const v1::GetControllerRequest&,
                                       const std::shared_ptr<Call>& call) {
        call->reply(standby_view(progress()));
      });
  return table;
}

void add_controller_method(MethodTable& table, const Controller& controller) {
  table.add<v1::GetControllerRequest>(
      "GetController", {Role::kViewer, Effect::kRead, Scope::kCluster},
      [&controller](const v1::GetControllerRequest&, const std::shared_ptr<Call>& call) {
        call->reply(leader_view(controller.store().log()));
      });
}

std::string standby_health(const StandbyProgress& progress, const std::string& leader) {
  return fmt::format("ok, a standby; the leader is {}; term {}, {} batches and {:.1f} s behind\n",
                     leader.empty() ? "not known" : "at " + leader, progress.term,
                     progress.behind_batches, progress.behind.count_seconds());
}

}  // namespace orrery
