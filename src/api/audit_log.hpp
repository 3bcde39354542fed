// api/audit_log.hpp - who asked for which change and how it ended: a JSON line each in
// DIR/audit.log.
//
// Built by orreryd before its method table, outlives it; on the controller's loop alone. A line is
// handed to the system before the call ends, so it outlives the process; a power cut may take the
// last ones. docs/cluster.md names the fields. Every change that a known caller asks for has a
// line, also one that is refused; a request with an unknown token has none, since nothing is known
// of its caller. Texts that may hold secrets (specs, tokens, requests) stand there as their
// SHA-256, and of the error in a spec its place alone. At 64 MiB the file becomes audit.log.1,
// which is replaced. Cost of a line: a write.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "api/method_table.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/controller.hpp"

namespace orrery {

class AuditLog {
 public:
  /// Errors: the file.
  [[nodiscard]] static Result<std::unique_ptr<AuditLog>> open(const Env& env, const Log& log,
                                                              const std::string& directory);
  AuditLog(const Env& env, const Log& log, std::string path)
      : env_(env), log_(log), path_(std::move(path)) {}

  struct Entry {
    std::string_view method;
    const Caller& caller;
    const google::protobuf::Message& request;
    const CallStatus& status;
    const std::set<std::uint64_t>& jobs;  ///< that the change is about
    std::string job_tenant;               ///< of the first of them; empty: not known
  };
  /// A line that cannot be written is reported in the log, and the call goes on: an operator must
  /// be able to act on a full disk.
  void write(const Entry& entry);

 private:
  [[nodiscard]] StorageStatus append(const std::string& line);

  Env env_;
  Log log_;
  std::string path_;
  std::unique_ptr<File> file_;
};

/// The same methods; those that change something tell `audit` how each of their calls ended. The
/// controller knows the jobs.
[[nodiscard]] MethodTable audited(const MethodTable& methods, AuditLog& audit,
                                  const Controller& controller);

}  // namespace orrery
