#include "api/grpc/counted_calls.hpp"

#include <utility>

namespace orrery {
namespace {

/// Returns the code's name in gRPC's own spelling.
std::string_view code_word(CallCode code) {
  switch (code) {
    case CallCode::kOk:
      return "OK";
    case CallCode::kCancelled:
      return "CANCELLED";
    case CallCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case CallCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case CallCode::kNotFound:
      return "NOT_FOUND";
    case CallCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case CallCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case CallCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case CallCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case CallCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case CallCode::kInternal:
      return "INTERNAL";
    case CallCode::kUnavailable:
      return "UNAVAILABLE";
    case CallCode::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

class CountedCall final : public ForwardedCall {
 public:
  struct Counted {
    LiveCounts& counts;
    std::string method;
  };
  CountedCall(Counted counted, std::shared_ptr<Call> call)
      : ForwardedCall(std::move(call)), counted_(std::move(counted)) {}

  void finish(const CallStatus& status) override {
    ++counted_.counts.calls[{counted_.method, std::string(code_word(status.code))}];
    inner().finish(status);
  }

 private:
  Counted counted_;
};

}  // namespace

MethodTable counted(const MethodTable& methods, LiveCounts& counts) {
  MethodTable table;
  for (const auto& [name, method] : methods.all()) {
    Method wrapped = method;
    wrapped.handle = [&counts, called = name, handle = method.handle](
                         const google::protobuf::Message& request, std::shared_ptr<Call> call) {
      handle(request,
             std::make_shared<CountedCall>(CountedCall::Counted{counts, called}, std::move(call)));
    };
    table.add(name, std::move(wrapped));
  }
  return table;
}

}  // namespace orrery
