#include "api/access/access_service.hpp"

#include <fmt/format.h>

#include <set>

#include "api/orrery_service.hpp"
#include "api/views.hpp"
#include "base/text/nearest_name.hpp"
#include "executor/services/service_book.hpp"
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
  const AgentRecord& agent =
      controller.agents().of(*controller.agents().node_named(request.node()));
  if (agent.session != nullptr) response.set_connected_agent(agent.opening->address);
  call->reply(response);
}

/// An agent that may join.
struct Joins {
  std::string node;
  bool by_hold = false;  ///< by the token of a hold, which admits all its agents
};

tl::expected<Joins, CallStatus> joining_node(const Controller& controller, const Access& access,
                                             const v1::JoinRequest& request) {
  const std::optional<NodeId> named = controller.agents().node_named(request.node());
  const std::optional<Status> of_hold =
      controller.holds().may_join(request.token(), named.value_or(NodeId()));
  if (of_hold) {
    if (*of_hold) return Joins{request.node(), true};
    const bool later = of_hold->error().kind == ErrorKind::kEnvironment;
    return tl::unexpected(CallStatus{later ? CallCode::kUnavailable : CallCode::kUnauthenticated,
                                     of_hold->error().text()});
  }
  Result<std::string> node = access.joins.node_of(request.token());
  if (!node) return tl::unexpected(CallStatus{CallCode::kUnauthenticated, node.error().text()});
  return Joins{*std::move(node), false};
}

/// Checks the request first, so that a wrong one does not use the token up.
void join(Controller& controller, const Access& access, const v1::JoinRequest& request,
          const CallPtr& call) {
  const Instant now = controller.host().clock().wall();
  const auto joins = joining_node(controller, access, request);
  if (!joins) return call->finish(joins.error());
  const std::string& node = joins->node;
  Result<std::string> certificate =
      certify_node(access.authority, {node, request.certificate_request()}, now);
  if (!certificate) return call->fail(certificate.error());
  // The new agent replaces the node's present one when it connects, not before.
  Status issued = controller.sessions().keys().issue(node, shown_key(*certificate));
  if (!issued) return call->fail(issued.error());
  if (!joins->by_hold) {
    if (Status used = access.joins.use(request.token()); !used) return call->fail(used.error());
  }
  v1::JoinResponse response;
  response.set_node(node);
  response.set_certificate(*certificate);
  call->reply(response);
}

/// Renews a certificate; one that has expired, or is of another authority, failed in the handshake.
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

constexpr std::uint64_t kSecondsPerDay = 86'400;
/// The lifetime of a token, in seconds, where the request names none.
constexpr std::uint64_t kLifetimeUsual = 365 * kSecondsPerDay;
constexpr std::uint64_t kLifetimeMax = std::uint64_t{100} * 365 * kSecondsPerDay;

/// Returns the expiry, in whole seconds, as people read it; never where 0 is asked.
Result<Instant> expiry_of(std::uint64_t lifetime_s, Instant now) {
  if (lifetime_s == 0) return Instant::max();
  if (lifetime_s > kLifetimeMax) {
    return input_error({}, fmt::format("a token for {} s: expected at most {} s, or 0 for one that "
                                       "does not expire",
                                       lifetime_s, kLifetimeMax));
  }
  const std::int64_t whole = (now - Instant()).count_ns() / 1'000'000'000;
  return Instant() + Duration::seconds(whole + static_cast<std::int64_t>(lifetime_s));
}

/// The tenant of a user has to be one of the cluster. Error: the nearest name.
Status check_tenant(const TenantTree& tenants, const std::string& path) {
  if (path.empty() || tenants.find(path)) return {};
  std::vector<std::string_view> paths;
  for (std::uint32_t at = 1; at < tenants.size(); ++at) {
    paths.emplace_back(tenants.path(TenantId(at)));
  }
  return input_error({}, fmt::format("no tenant \"{}\" in this cluster's tenants.yaml{}", path,
                                     did_you_mean(path, paths)));
}

Result<v1::AddUserResponse> add_user(TokenBook& tokens, const TenantTree& tenants,
                                     const v1::AddUserRequest& request, Instant now) {
  if (Status known = check_tenant(tenants, request.tenant()); !known) return forward_error(known);
  Result<Instant> expires =
      expiry_of(request.has_lifetime_s() ? request.lifetime_s() : kLifetimeUsual, now);
  if (!expires) return forward_error(expires);
  const Caller user{.name = request.name(),
                    .role = role_named(request.role()),
                    .tenant = request.tenant(),
                    .node = "",
                    .run_as = request.run_as()};
  Result<std::string> token = tokens.add(user, *expires);
  if (!token) return forward_error(token);
  v1::AddUserResponse response;
  response.set_token(*token);
  if (*expires < Instant::max()) *response.mutable_expires() = timestamp_of(*expires);
  return response;
}

/// Where no lifetime is asked, a token that does not expire is replaced by another such token.
Result<v1::RotateUserResponse> rotate_user(TokenBook& tokens, const v1::RotateUserRequest& request,
                                           Instant now) {
  std::uint64_t lifetime = kLifetimeUsual;
  for (const UserToken& token : tokens.all()) {
    const bool current = token.user.name == request.name() && !token.replaced;
    if (current && token.expires == Instant::max()) lifetime = 0;
  }
  Result<Instant> expires =
      expiry_of(request.has_lifetime_s() ? request.lifetime_s() : lifetime, now);
  if (!expires) return forward_error(expires);
  if (request.overlap_s() > kLifetimeMax) {
    return input_error({}, fmt::format("an overlap of {} s: expected at most {} s",
                                       request.overlap_s(), kLifetimeMax));
  }
  const Duration overlap = Duration::seconds(static_cast<std::int64_t>(request.overlap_s()));
  Result<std::string> token = tokens.rotate({request.name(), overlap, *expires});
  if (!token) return forward_error(token);
  v1::RotateUserResponse response;
  response.set_token(*token);
  if (*expires < Instant::max()) *response.mutable_expires() = timestamp_of(*expires);
  *response.mutable_old_until() = timestamp_of(now + overlap);
  return response;
}

/// Returns "chat-key-2": the first such name that no user has.
std::string free_key_name(const TokenBook& tokens, const std::string& service) {
  std::set<std::string> taken;
  for (const UserToken& token : tokens.all()) taken.insert(token.user.name);
  for (std::uint32_t number = 1;; ++number) {
    std::string name = fmt::format("{}-key-{}", service, number);
    if (!taken.contains(name)) return name;
  }
}

/// Adds a client of the job's tenant. Errors: the job is no replica of a service, or has ended; the
/// name is taken.
Result<v1::AddServiceKeyResponse> add_service_key(TokenBook& tokens, const State& state,
                                                  const v1::AddServiceKeyRequest& request,
                                                  Instant now) {
  const Job& job = state.job(JobId::at(request.id()));
  if (!is_replica(job)) {
    return infeasible(
        fmt::format("job {} ({}) is not a replica of a service: expected a job of "
                    "kind Serve",
                    request.id(), job.name));
  }
  if (ended(job.phase)) {
    return infeasible(
        fmt::format("job {} ({}) has ended: expected a running replica of the service",
                    request.id(), job.name));
  }
  Result<Instant> expires = expiry_of(kLifetimeUsual, now);
  if (!expires) return forward_error(expires);
  const std::string name =
      request.name().empty() ? free_key_name(tokens, service_name(job.name)) : request.name();
  const Caller client{.name = name,
                      .role = Role::kClient,
                      .tenant = std::string(state.tenants().path(job.tenant)),
                      .node = ""};
  Result<std::string> key = tokens.add(client, *expires);
  if (!key) return forward_error(key);
  v1::AddServiceKeyResponse response;
  response.set_key(*std::move(key));
  response.set_name(name);
  return response;
}

template <class Response>
void answer(const CallPtr& call, const Result<Response>& response) {
  if (!response) return call->fail(response.error());
  call->reply(*response);
}

void remove_user(TokenBook& tokens, const v1::RemoveUserRequest& request, const CallPtr& call) {
  if (Status removed = tokens.remove(request.name()); !removed) return call->fail(removed.error());
  call->reply(v1::RemoveUserResponse());
}

v1::ListUsersResponse users_view(const TokenBook& tokens) {
  v1::ListUsersResponse response;
  for (const UserToken& token : tokens.all()) {
    v1::User& user = *response.add_users();
    user.set_name(token.user.name);
    user.set_role(std::string(role_word(token.user.role)));
    user.set_tenant(token.user.tenant);
    user.set_run_as(token.user.run_as);
    if (token.expires < Instant::max()) *user.mutable_expires() = timestamp_of(token.expires);
    user.set_replaced(token.replaced.has_value());
  }
  return response;
}

void add_user_methods(MethodTable& table, const Controller& controller, const Env& env,
                      TokenBook& tokens) {
  const MethodRule change{Role::kAdmin, Effect::kChange, Scope::kCluster};
  table.add<v1::AddUserRequest>(
      "AddUser", change,
      [&controller, env, &tokens](const v1::AddUserRequest& request, const CallPtr& call) {
        answer(call, add_user(tokens, controller.state().tenants(), request, env.clock.now_wall()));
      });
  table.add<v1::AddServiceKeyRequest>(
      "AddServiceKey", {Role::kUser, Effect::kChange, Scope::kJob},
      [&controller, env, &tokens](const v1::AddServiceKeyRequest& request, const CallPtr& call) {
        if (!find_job(controller, request.id(), *call)) return;
        answer(call, add_service_key(tokens, controller.state(), request, env.clock.now_wall()));
      });
  table.add<v1::RotateUserRequest>(
      "RotateUser", change,
      [env, &tokens](const v1::RotateUserRequest& request, const CallPtr& call) {
        answer(call, rotate_user(tokens, request, env.clock.now_wall()));
      });
  table.add<v1::RemoveUserRequest>(
      "RemoveUser", change,
      [&tokens](const auto& request, const CallPtr& call) { remove_user(tokens, request, call); });
  table.add<v1::ListUsersRequest>(
      "ListUsers", {Role::kAdmin, Effect::kRead, Scope::kCluster},
      [&tokens](const auto&, const CallPtr& call) { call->reply(users_view(tokens)); });
}

}  // namespace

void add_access_methods(MethodTable& table, Controller& controller, const Env& env,
                        const Access& access) {
  table.add<v1::MakeJoinTokenRequest>(
      "MakeJoinToken", {Role::kAdmin, Effect::kChange, Scope::kCluster},
      [&controller, &joins = access.joins](const auto& request, const CallPtr& call) {
        make_join_token(controller, joins, request, call);
      });
  table.add<v1::JoinRequest>("Join", {Role::kNobody, Effect::kChange, Scope::kCluster},
                             [&controller, access](const auto& request, const CallPtr& call) {
                               join(controller, access, request, call);
                             });
  table.add<v1::RenewCertificateRequest>(
      "RenewCertificate", {Role::kNobody, Effect::kChange, Scope::kCluster},
      [&controller, env, access](const auto& request, const CallPtr& call) {
        const std::string& node = call->caller().node;
        if (node.empty()) {
          return call->finish(
              {CallCode::kUnauthenticated, "an agent shows the certificate that it renews"});
        }
        if (!find_node(controller, node, *call)) return;
        const Status newest = controller.sessions().keys().may_renew(node, call->caller().key);
        if (!newest) return call->finish({CallCode::kAlreadyExists, newest.error().text()});
        renew_certificate(env, access, request, call);
      });
  add_user_methods(table, controller, env, access.tokens);
}

}  // namespace orrery
