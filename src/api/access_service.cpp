#include "api/access_service.hpp"

#include "api/orrery_service.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

using CallPtr = std::shared_ptr<Call>;

void make_join_token(const Controller& controller, JoinBook& joins,
                     const v1::MakeJoinTokenRequest& request, const CallPtr& call) {
  if (!find_node(controller, request.node(), *call)) return;
  Result<std::string> token = joins.make(request.node());
  if (!token) return call->fail(token.error());
  v1::MakeJoinTokenResponse response;
  response.set_token(*token);
  call->reply(response);
}

/// The request is looked at first, so that one that is wrong uses nothing up.
void join(const Env& env, const Access& access, const v1::JoinRequest& request,
          const CallPtr& call) {
  const Instant now = env.clock.now_wall();
  const Result<std::string> node = access.joins.node_of(request.token());
  if (!node) return call->finish({CallCode::kUnauthenticated, node.error().text()});
  Result<std::string> certificate =
      certify_node(access.authority, {*node, request.certificate_request()}, now);
  if (!certificate) return call->fail(certificate.error());
  if (Status used = access.joins.use(request.token()); !used) return call->fail(used.error());
  v1::JoinResponse response;
  response.set_node(*node);
  response.set_certificate(*certificate);
  call->reply(response);
}

/// One that has ended, or is of another authority, came through no handshake.
void renew_certificate(const Env& env, const Access& access,
                       const v1::RenewCertificateRequest& request, const CallPtr& call) {
  const std::string& node = call->caller().node;
  Result<std::string> certificate =
      certify_node(access.authority, {node, request.certificate_request()}, env.clock.now_wall());
  if (!certificate) return call->fail(certificate.error());
  v1::RenewCertificateResponse response;
  response.set_certificate(*certificate);
  call->reply(response);
}

void add_user(TokenBook& tokens, const v1::AddUserRequest& request, const CallPtr& call) {
  const Caller user{.name = request.name(),
                    .role = role_named(request.role()),
                    .tenant = request.tenant(),
                    .node = "",
                    .run_as = request.run_as()};
  const Result<std::string> token = tokens.add(user);
  if (!token) return call->fail(token.error());
  v1::AddUserResponse response;
  response.set_token(*token);
  call->reply(response);
}

void remove_user(TokenBook& tokens, const v1::RemoveUserRequest& request, const CallPtr& call) {
  if (Status removed = tokens.remove(request.name()); !removed) return call->fail(removed.error());
  call->reply(v1::RemoveUserResponse());
}

void list_users(const TokenBook& tokens, const CallPtr& call) {
  v1::ListUsersResponse response;
  for (const Caller& each : tokens.all()) {
    v1::User& user = *response.add_users();
    user.set_name(each.name);
    user.set_role(std::string(role_word(each.role)));
    user.set_tenant(each.tenant);
    user.set_run_as(each.run_as);
  }
  call->reply(response);
}

}  // namespace

void add_access_methods(MethodTable& table, Controller& controller, const Env& env,
                        const Access& access) {
  table.add<v1::MakeJoinTokenRequest>(
      "MakeJoinToken", {Role::kAdmin, Effect::kChange},
      [&controller, &joins = access.joins](const auto& request, const CallPtr& call) {
        make_join_token(controller, joins, request, call);
      });
  table.add<v1::JoinRequest>("Join", {Role::kNobody, Effect::kChange},
                             [env, access](const auto& request, const CallPtr& call) {
                               join(env, access, request, call);
                             });
  table.add<v1::RenewCertificateRequest>(
      "RenewCertificate", {Role::kNobody, Effect::kChange},
      [&controller, env, access](const auto& request, const CallPtr& call) {
        const std::string& node = call->caller().node;
        if (node.empty()) {
          return call->finish(
              {CallCode::kUnauthenticated, "an agent shows the certificate that it renews"});
        }
        if (find_node(controller, node, *call)) renew_certificate(env, access, request, call);
      });
  table.add<v1::AddUserRequest>(
      "AddUser", {Role::kAdmin, Effect::kChange},
      [&tokens = access.tokens](const auto& request, const CallPtr& call) {
        add_user(tokens, request, call);
      });
  table.add<v1::RemoveUserRequest>(
      "RemoveUser", {Role::kAdmin, Effect::kChange},
      [&tokens = access.tokens](const auto& request, const CallPtr& call) {
        remove_user(tokens, request, call);
      });
  table.add<v1::ListUsersRequest>(
      "ListUsers", {Role::kAdmin, Effect::kRead},
      [&tokens = access.tokens](const auto&, const CallPtr& call) { list_users(tokens, call); });
}

}  // namespace orrery
