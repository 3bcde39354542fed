// api/grpc/method_table.hpp - the methods of a service by name: the request of each, its permitted
// callers, and its handler.
//
// Made once, before the servers that look methods up in it; then immutable, so any thread may look.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/grpc/call.hpp"

namespace orrery {

enum class Effect : std::uint8_t { kRead, kChange };

/// The part of the cluster that a method is about, which decides what a caller with a tenant gets
/// (api/access/authorization.hpp). Every method states one.
enum class Scope : std::uint8_t {
  kUnstated,  ///< callers with a tenant are refused
  kCluster,   ///< nothing that belongs to a tenant
  kJob,       ///< the job that the request names by its field `id`
  kOwn,       ///< many tenants; the method shows what the caller's Visibility lets through
};

/// Whether a method that changes something lasts as long as its client's call.
enum class Lasting : std::uint8_t { kNo, kYes };

/// The least role that may call a method, whether it changes anything, and its scope.
struct MethodRule {
  Role role = Role::kViewer;
  Effect effect = Effect::kRead;
  Scope scope = Scope::kUnstated;
  Lasting lasting = Lasting::kNo;
};

struct Method {
  MethodRule rule;
  /// Makes an empty request message.
  std::function<std::unique_ptr<google::protobuf::Message>()> request;
  /// Runs on the controller's loop.
  std::function<void(const google::protobuf::Message&, std::shared_ptr<Call>)> handle;
};

class MethodTable {
 public:
  template <class Request>
  void add(const std::string& name, const MethodRule& rule,
           std::function<void(const Request&, std::shared_ptr<Call>)> handle) {
    methods_[name] = {rule, [] { return std::make_unique<Request>(); },
                      [handle = std::move(handle)](const google::protobuf::Message& request,
                                                   std::shared_ptr<Call> call) {
                        handle(static_cast<const Request&>(request), std::move(call));
                      }};
  }

  void add(const std::string& name, Method method) { methods_[name] = std::move(method); }

  /// Returns nullptr where there is none.
  [[nodiscard]] const Method* find(std::string_view name) const {
    const auto found = methods_.find(name);
    return found == methods_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::map<std::string, Method, std::less<>>& all() const { return methods_; }

 private:
  std::map<std::string, Method, std::less<>> methods_;
};

}  // namespace orrery
