#include "api/access/authorization.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "api/access/spec_redaction.hpp"
#include "api/access/token_book.hpp"
#include "api/access/visibility.hpp"
#include "base/assert.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// Greatest depth of messages of jobs in an answer.
constexpr int kDepthMax = 3;

bool is_job(const google::protobuf::Descriptor& type) {
  return type.full_name() == v1::Job::descriptor()->full_name();
}

/// Whether messages of the type may hold jobs.
bool holds_jobs(const google::protobuf::Descriptor& type, int depth) {
  if (is_job(type)) return true;
  if (depth == 0) return false;
  for (int at = 0; at < type.field_count(); ++at) {
    const google::protobuf::Descriptor* held = type.field(at)->message_type();
    if (held != nullptr && holds_jobs(*held, depth - 1)) return true;
  }
  return false;
}

/// Redacts the specs of all jobs in the message.
void redact_specs(Message& message) {
  if (is_job(*message.GetDescriptor())) {
    auto& job = static_cast<v1::Job&>(message);
    job.set_spec(without_environment(job.spec()));
    return;
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) {
      redact_specs(*reflection.MutableMessage(&message, field));
      continue;
    }
    for (int at = 0; at < reflection.FieldSize(message, field); ++at) {
      redact_specs(*reflection.MutableRepeatedMessage(&message, field, at));
    }
  }
}

class RedactedCall final : public ForwardedCall {
 public:
  RedactedCall(const Visibility& visibility, std::shared_ptr<Call> call)
      : ForwardedCall(std::move(call)), visibility_(visibility) {}

  void send(const Message& message) override {
    const google::protobuf::Descriptor& type = *message.GetDescriptor();
    const bool readable =
        is_job(type) && visibility_.environment_of(static_cast<const v1::Job&>(message).tenant());
    if (readable || !holds_jobs(type, kDepthMax)) return inner().send(message);
    const std::unique_ptr<Message> copy(message.New());
    copy->CopyFrom(message);
    redact_specs(*copy);
    inner().send(*copy);
  }

 private:
  Visibility visibility_;
};

/// Whether a method may run for a caller; kOk: it may.
CallStatus judge(const Controller& controller, const std::pair<std::string, MethodRule>& method,
                 const Message& request, const Caller& caller) {
  const auto& [name, rule] = method;
  if (caller.role < rule.role) {
    return {CallCode::kPermissionDenied,
            fmt::format("\"{}\" may not call {}: its role is {}, expected {}{}", caller.name, name,
                        role_word(caller.role), role_word(rule.role),
                        rule.role == Role::kAdmin ? "" : " or above")};
  }
  if (caller.tenant.empty()) return {};
  switch (rule.scope) {
    case Scope::kUnstated:
      return {CallCode::kPermissionDenied,
              fmt::format("\"{}\" may not call {}: it is not for users with a tenant", caller.name,
                          name)};
    case Scope::kJob: {
      const std::uint64_t id = job_number(request).value_or(0);
      const std::optional<std::string> tenant = tenant_of_job(controller, id);
      if (tenant && Visibility(controller.state(), caller).tenant(*tenant)) return {};
      return no_such_job(id);
    }
    case Scope::kCluster:
    case Scope::kOwn:
      break;
  }
  return {};
}

}  // namespace

CallStatus no_such_job(std::uint64_t id) {
  return {CallCode::kNotFound, fmt::format("no job {}", id)};
}

std::optional<std::uint64_t> job_number(const Message& request) {
  const FieldDescriptor* id = request.GetDescriptor()->FindFieldByName("id");
  const bool number =
      id != nullptr && !id->is_repeated() && id->cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  if (!number) return std::nullopt;
  return request.GetReflection()->GetUInt64(request, id);
}

std::optional<std::string> tenant_of_job(const Controller& controller, std::uint64_t id) {
  const State& state = controller.state();
  if (id >= state.jobs()) return std::nullopt;
  if (state.has(JobId::at(id))) return state.tenants().path(state.job(JobId::at(id)).tenant);
  const StorageResult<std::vector<ArchivedJob>> rows =
      controller.store().archive().archived(id + 1, 1);
  v1::Job job;
  const bool known =
      rows && !rows->empty() && rows->front().id == id && job.ParseFromString(rows->front().bytes);
  return known ? std::optional(job.tenant()) : std::nullopt;
}

MethodTable authorized(const MethodTable& methods, const Controller& controller) {
  MethodTable table;
  for (const auto& [name, method] : methods.all()) {
    ORRERY_ASSERT(method.rule.scope != Scope::kJob || job_number(*method.request()),
                  "a method on a job has its number");
    Method wrapped = method;
    wrapped.handle = [&controller, rule = std::pair(name, method.rule), handle = method.handle](
                         const Message& request, const std::shared_ptr<Call>& call) {
      const CallStatus judged = judge(controller, rule, request, call->caller());
      if (judged.code != CallCode::kOk) return call->finish(judged);
      const Visibility visibility(controller.state(), call->caller());
      handle(request, std::make_shared<RedactedCall>(visibility, call));
    };
    table.add(name, std::move(wrapped));
  }
  return table;
}

}  // namespace orrery
