// api/audit_log.hpp - who asked for which change and how it ended: a JSON line each in
// DIR/audit.log.
//
// Built by orreryd before its method table, outlives it; on the controller's loop alone. A line is
// handed to the system before the call ends, so it outlives the process; a power cut may take the
// last ones. Texts that may hold secrets (specs, tokens, requests) stand there as their SHA-256.
// At 64 MiB the file becomes audit.log.1, which is replaced.
// Cost of a line: a write.
#pragma once

#include <memory>
#include <string>

#include "api/method_table.hpp"
#include "base/env.hpp"
#include "base/log.hpp"

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
  };
  /// One that cannot be written is complained of in the log, and the call goes on: an operator must
  /// be able to act on a disk that is full.
  void write(const Entry& entry);

 private:
  [[nodiscard]] StorageStatus append(const std::string& line);

  Env env_;
  Log log_;
  std::string path_;
  std::unique_ptr<File> file_;
};

/// The same methods; those that change something tell `audit` how each call of theirs ended.
[[nodiscard]] MethodTable audited(const MethodTable& methods, AuditLog& audit);

}  // namespace orrery
