// apps/orrery/live_session.hpp - what verbs on a running cluster share: the controller they call,
// request ids for their changes, answers as JSON.
//
// Made by a verb when it runs; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/grpc/client.hpp"
#include "apps/orrery/context.hpp"
#include "base/error.hpp"
#include "base/system/real_env.hpp"

namespace google::protobuf {
class Message;
}

namespace orrery {

/// Returns the directory of the cluster by --dir, ORRERY_DIR or the defaults; it may have no
/// cluster.
[[nodiscard]] std::string cluster_directory(const CommandOptions& options);

class LiveSession {
 public:
  /// Errors: no cluster there. Makes no call yet; each answer is waited for up to `patience`.
  [[nodiscard]] static Result<std::unique_ptr<LiveSession>> open(
      const CommandOptions& options, Duration patience = ClientOptions().patience);
  explicit LiveSession(ClientOptions options) : client_(std::move(options)) {}

  [[nodiscard]] Client& client() { return client_; }
  [[nodiscard]] std::string request_id() { return make_request_id(entropy_); }

 private:
  RealEntropy entropy_;
  Client client_;
};

/// Reads the number of a job as typed. Error: "job "x": expected its number...".
[[nodiscard]] Result<std::uint64_t> job_id(const std::string& text);

/// Prints one JSON document, fields named as in the schema, including those that are not set.
void print_answer(const google::protobuf::Message& answer);
/// Prints the answer as JSON on one line of a stream, which is flushed.
void print_answer_line(const google::protobuf::Message& answer);
/// Returns the answer as JSON.
[[nodiscard]] Json answer_json(const google::protobuf::Message& answer);

}  // namespace orrery
