// api/access/audit_log.hpp - records each requested change, its caller and its result: a JSON line
// each in DIR/audit.log.
//
// Built by orreryd before its method table, outlives it; on the controller's loop alone. A line is
// handed to the system before the call ends, so it outlives the process; a power cut may take the
// last ones. docs/cluster.md names the fields. Every change that a known caller asks for has a
// line, also one that is refused; a request with an unknown token has none, since nothing is known
// of its caller. Texts that may hold secrets (specs, tokens, requests) are logged as their SHA-256,
// and an error in a spec by its place alone. At 64 MiB the file becomes audit.log.1, which is
// replaced. So that no caller but an admin can push the others out of both files, a caller has
// kLinesMax lines an hour; calls beyond them are counted, and each minute one line a method and
// code reports how many there were and their jobs. Cost of a line: a write.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "api/grpc/method_table.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "executor/controller.hpp"

namespace orrery {

class AuditLog {
 public:
  static constexpr std::uint32_t kLinesMax = 1'000;  ///< of one caller in an hour
  static constexpr Duration kSumEvery = Duration::minutes(1);

  /// Errors: the file.
  [[nodiscard]] static Result<std::unique_ptr<AuditLog>> open(const Env& env, const Log& log,
                                                              const std::string& directory);
  AuditLog(const Env& env, const Log& log, std::string path)
      : env_(env), log_(log), path_(std::move(path)) {}
  /// Writes the counts that are not written yet.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

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
  /// Lines of one caller since the hour of its first one began.
  struct Allowance {
    Instant since;  ///< monotonic
    std::uint32_t lines = 0;
  };
  struct Sum {
    std::uint64_t calls = 0;
    std::set<std::uint64_t> jobs;
  };
  using SumKey = std::tuple<std::string, std::string, int>;  ///< caller, method, code

  /// Whether the caller may have a line of its own for this call.
  [[nodiscard]] bool has_line(const Caller& caller);
  void count(const Entry& entry);
  void write_sums();
  void put(const std::string& text, std::string_view method);
  [[nodiscard]] StorageStatus append(const std::string& line);

  Env env_;
  Log log_;
  std::string path_;
  std::unique_ptr<File> file_;
  std::map<std::string, Allowance> allowances_;  ///< by caller
  std::map<SumKey, Sum> sums_;
  std::optional<TimerId> timer_;  ///< for writing the sums
};

/// Returns the methods wrapped so that those that change something report the end of each call to
/// `audit`. The controller knows the jobs.
[[nodiscard]] MethodTable audited(const MethodTable& methods, AuditLog& audit,
                                  const Controller& controller);

}  // namespace orrery
