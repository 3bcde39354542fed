#include "api/access/audit_log.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/access/authorization.hpp"
#include "api/access/spec_redaction.hpp"
#include "api/access/token_book.hpp"

namespace orrery {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::uint64_t kAuditBytesMax = std::uint64_t{64} << 20;
constexpr std::size_t kTextMax = 256;
constexpr std::size_t kJobsTextMax = 4096;
constexpr std::string_view kSecret[] = {"spec", "token", "certificate_request", "input"};

std::string shortened(const std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  return text.substr(0, bytes_max) + fmt::format("... ({} bytes)", text.size());
}

nlohmann::json text_shown(const std::string& name, const std::string& text) {
  if (std::ranges::find(kSecret, name) != std::end(kSecret)) return "sha256:" + sha256_text(text);
  return shortened(text, kTextMax);
}

/// Returns text such as "3-17, 20".
std::string ranges_text(const std::set<std::uint64_t>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::uint64_t first = *at;
    std::uint64_t last = first;
    for (++at; at != numbers.end() && *at == last + 1; ++at) last = *at;
    if (!text.empty()) text += ", ";
    text += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

nlohmann::json value_shown(const Message& request, const FieldDescriptor& field) {
  const Reflection& reflection = *request.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return text_shown(field.name(), reflection.GetString(request, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(request, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(reflection.GetUInt64(request, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(reflection.GetInt64(request, &field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(request, &field);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(request, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(request, &field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(request, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnumValue(request, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return reflection.GetMessage(request, &field).ShortDebugString();
  }
  return nullptr;
}

/// Returns the fields that are set, and the number of a job even where it is 0.
nlohmann::json summary(const Message& request) {
  nlohmann::json shown = nlohmann::json::object();
  const Reflection& reflection = *request.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(request, &fields);
  for (const FieldDescriptor* field : fields) {
    nlohmann::json& value = shown[field->name()];
    if (field->name() == "command" && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      // Arguments may be secrets.
      value = text_shown(field->name(), reflection.GetRepeatedString(request, field, 0));
    } else if (field->is_repeated()) {
      value = fmt::format("{} of them", reflection.FieldSize(request, field));
    } else {
      value = value_shown(request, *field);
    }
  }
  if (const auto id = job_number(request)) shown["id"] = std::to_string(*id);
  return shown;
}

std::string message_shown(const AuditLog::Entry& entry) {
  const bool may_quote = entry.status.code == CallCode::kInvalidArgument &&
                         entry.request.GetDescriptor()->FindFieldByName("spec") != nullptr;
  if (!may_quote) return entry.status.message;
  return shown_refusal({ErrorKind::kInput, entry.status.message, {}});
}

/// The jobs that an answer names: fields `id`, and `array` of a submission.
void add_jobs(const Message& answer, std::set<std::uint64_t>& jobs) {
  if (const auto id = job_number(answer)) jobs.insert(*id);
  const FieldDescriptor* array = answer.GetDescriptor()->FindFieldByName("array");
  const bool numbers = array != nullptr && array->is_repeated() &&
                       array->cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  if (!numbers) return;
  for (int at = 0; at < answer.GetReflection()->FieldSize(answer, array); ++at) {
    jobs.insert(answer.GetReflection()->GetRepeatedUInt64(answer, array, at));
  }
}

class AuditedCall final : public ForwardedCall {
 public:
  struct Asked {
    AuditLog& audit;
    const Controller& controller;
    std::string method;
    Scope scope;
    std::unique_ptr<Message> request;
  };
  AuditedCall(Asked asked, std::shared_ptr<Call> call)
      : ForwardedCall(std::move(call)), asked_(std::move(asked)) {
    if (asked_.scope == Scope::kJob) add_jobs(*asked_.request, jobs_);
  }

  /// A lasting call has a line for its begin, too.
  void open() override {
    write({CallCode::kOk, "begun"});
    inner().open();
  }
  void send(const Message& message) override {
    add_jobs(message, jobs_);
    inner().send(message);
  }
  void finish(const CallStatus& status) override {
    write(status);
    inner().finish(status);
  }

 private:
  void write(const CallStatus& status) {
    std::string tenant;
    if (!jobs_.empty()) {
      tenant = tenant_of_job(asked_.controller, *jobs_.begin()).value_or("");
    }
    asked_.audit.write(
        {asked_.method, caller(), *asked_.request, status, jobs_, std::move(tenant)});
  }

  Asked asked_;
  std::set<std::uint64_t> jobs_;
};

}  // namespace

Result<std::unique_ptr<AuditLog>> AuditLog::open(const Env& env, const Log& log,
                                                 const std::string& directory) {
  auto audit = std::make_unique<AuditLog>(env, log, directory + "/audit.log");
  auto file = env.storage.open(audit->path_, OpenMode::kAppend);
  if (!file) return forward_error(file);
  audit->file_ = *std::move(file);
  return audit;
}

StorageStatus AuditLog::append(const std::string& line) {
  if (file_ == nullptr || file_->size() + line.size() > kAuditBytesMax) {
    if (file_ != nullptr) {
      file_.reset();
      StorageStatus kept = env_.storage.rename({path_, path_ + ".1"});
      if (!kept) return kept;
    }
    auto file = env_.storage.open(path_, OpenMode::kAppend);
    if (!file) return tl::unexpected(file.error());
    file_ = *std::move(file);
  }
  return file_->append(line);
}

AuditLog::~AuditLog() {
  if (!timer_) return;
  env_.timers.cancel(*timer_);
  write_sums();
}

bool AuditLog::has_line(const Caller& caller) {
  // An admin can do worse than fill a file, and an admin's scripts may be long.
  if (caller.role == Role::kAdmin) return true;
  const Instant now = env_.clock.now_monotonic();
  Allowance& allowance = allowances_[caller.name.empty() ? caller.node : caller.name];
  if (allowance.lines == 0 || now - allowance.since >= Duration::hours(1)) allowance = {now, 0};
  if (allowance.lines == kLinesMax) return false;
  ++allowance.lines;
  return true;
}

void AuditLog::count(const Entry& entry) {
  const std::string& caller = entry.caller.name.empty() ? entry.caller.node : entry.caller.name;
  Sum& sum = sums_[{caller, std::string(entry.method), static_cast<int>(entry.status.code)}];
  ++sum.calls;
  sum.jobs.insert(entry.jobs.begin(), entry.jobs.end());
  if (timer_) return;
  timer_ = env_.timers.call_after(kSumEvery, [this] { write_sums(); });
}

void AuditLog::write_sums() {
  timer_.reset();
  for (const auto& [key, sum] : std::exchange(sums_, {})) {
    const auto& [caller, method, code] = key;
    nlohmann::json line = {{"time", env_.clock.now_wall().text()},
                           {"method", method},
                           {"caller", caller},
                           {"code", code},
                           {"calls", sum.calls}};
    if (!sum.jobs.empty()) line["jobs"] = shortened(ranges_text(sum.jobs), kJobsTextMax);
    put(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), method);
  }
}

void AuditLog::write(const Entry& entry) {
  const Instant now = env_.clock.now_wall();
  if (!has_line(entry.caller)) return count(entry);
  nlohmann::json line = {{"time", now.text()},
                         {"method", entry.method},
                         {"caller", entry.caller.name},
                         {"role", role_word(entry.caller.role)},
                         {"tenant", entry.caller.tenant},
                         {"request", summary(entry.request)},
                         {"code", static_cast<int>(entry.status.code)}};
  if (!entry.jobs.empty()) line["jobs"] = shortened(ranges_text(entry.jobs), kJobsTextMax);
  if (!entry.job_tenant.empty()) line["job_tenant"] = entry.job_tenant;
  if (!entry.caller.node.empty()) line["node"] = entry.caller.node;
  if (!entry.status.message.empty()) line["message"] = text_shown("message", message_shown(entry));
  // Invalid UTF-8 must not end the process.
  put(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), entry.method);
}

void AuditLog::put(const std::string& text, std::string_view method) {
  if (StorageStatus written = append(text + "\n"); !written) {
    const Error why = forward_error(written).value();
    log_.error(env_.clock.now_wall(), "a change is missing in audit.log",
               {{"method", method}, {"why", why.text()}});
    // The remains of a failed write cannot be appended to.
    file_.reset();
  }
}

MethodTable audited(const MethodTable& methods, AuditLog& audit, const Controller& controller) {
  MethodTable table;
  for (const auto& [name, method] : methods.all()) {
    Method wrapped = method;
    if (method.rule.effect == Effect::kChange) {
      wrapped.handle = [&audit, &controller, called = name, scope = method.rule.scope,
                        handle = method.handle](const Message& request,
                                                std::shared_ptr<Call> call) {
        std::unique_ptr<Message> kept(request.New());
        kept->CopyFrom(request);
        handle(request, std::make_shared<AuditedCall>(
                            AuditedCall::Asked{audit, controller, called, scope, std::move(kept)},
                            std::move(call)));
      };
    }
    table.add(name, std::move(wrapped));
  }
  return table;
}

}  // namespace orrery
