#include "api/audit_log.hpp"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/token_book.hpp"

namespace orrery {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::uint64_t kAuditBytesMax = std::uint64_t{64} << 20;
constexpr std::size_t kTextMax = 256;
constexpr std::string_view kSecret[] = {"spec", "token", "certificate_request"};

nlohmann::json text_shown(const std::string& name, const std::string& text) {
  if (std::ranges::find(kSecret, name) != std::end(kSecret)) return "sha256:" + sha256_text(text);
  if (text.size() <= kTextMax) return text;
  return text.substr(0, kTextMax) + fmt::format("... ({} bytes)", text.size());
}

/// The fields that are set; requests of changes hold texts, numbers and truths.
nlohmann::json summary(const Message& request) {
  nlohmann::json shown = nlohmann::json::object();
  const Reflection& reflection = *request.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(request, &fields);
  for (const FieldDescriptor* field : fields) {
    nlohmann::json& value = shown[field->name()];
    if (field->is_repeated()) {
      value = fmt::format("{} of them", reflection.FieldSize(request, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      value = text_shown(field->name(), reflection.GetString(request, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      value = reflection.GetBool(request, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      value = std::to_string(reflection.GetUInt64(request, field));
    } else {
      value = field->cpp_type_name();
    }
  }
  return shown;
}

class AuditedCall final : public Call {
 public:
  struct Asked {
    AuditLog& audit;
    std::string method;
    std::unique_ptr<Message> request;
  };
  AuditedCall(Asked asked, std::shared_ptr<Call> call)
      : asked_(std::move(asked)), call_(std::move(call)) {}

  void send(const Message& message) override { call_->send(message); }
  void finish(const CallStatus& status) override {
    asked_.audit.write({asked_.method, call_->caller(), *asked_.request, status});
    call_->finish(status);
  }
  [[nodiscard]] bool wanted() const override { return call_->wanted(); }
  [[nodiscard]] const Caller& caller() const override { return call_->caller(); }

 private:
  Asked asked_;
  std::shared_ptr<Call> call_;
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

void AuditLog::write(const Entry& entry) {
  const Instant now = env_.clock.now_wall();
  nlohmann::json line = {{"time", now.text()},
                         {"method", entry.method},
                         {"caller", entry.caller.name},
                         {"role", role_word(entry.caller.role)},
                         {"request", summary(entry.request)},
                         {"code", static_cast<int>(entry.status.code)}};
  if (!entry.caller.tenant.empty()) line["tenant"] = entry.caller.tenant;
  if (!entry.caller.node.empty()) line["node"] = entry.caller.node;
  if (!entry.status.message.empty()) line["message"] = text_shown("message", entry.status.message);
  // What is no UTF-8 must not end the process.
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (StorageStatus written = append(text + "\n"); !written) {
    const Error why = forward_error(written).value();
    log_.error(now, "a change is missing in audit.log",
               {{"method", entry.method}, {"why", why.text()}});
    // What a failed write leaves cannot be appended to.
    file_.reset();
  }
}

MethodTable audited(const MethodTable& methods, AuditLog& audit) {
  MethodTable table;
  for (const auto& [name, method] : methods.all()) {
    Method wrapped = method;
    if (method.rule.effect == Effect::kChange) {
      wrapped.handle = [&audit, called = name, handle = method.handle](const Message& request,
                                                                       std::shared_ptr<Call> call) {
        std::unique_ptr<Message> kept(request.New());
        kept->CopyFrom(request);
        handle(request, std::make_shared<AuditedCall>(
                            AuditedCall::Asked{audit, called, std::move(kept)}, std::move(call)));
      };
    }
    table.add(name, std::move(wrapped));
  }
  return table;
}

}  // namespace orrery
