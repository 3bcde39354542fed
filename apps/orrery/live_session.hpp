// apps/orrery/live_session.hpp - what the verbs that talk to a running cluster share: the
// controller they call, names for their changes, answers as JSON.
//
// Made by a verb when it runs; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/client.hpp"
#include "apps/orrery/context.hpp"
#include "base/error.hpp"
#include "base/real_env.hpp"

namespace google::protobuf {
class Message;
}

namespace orrery {

/// Where the cluster of --dir, ORRERY_DIR or the defaults is; there may be none.
[[nodiscard]] std::string cluster_directory(const CommandOptions& options);

class LiveSession {
 public:
  /// Errors: no cluster there. Nothing is called yet; an answer is waited for as long as `patience`
  /// says.
  [[nodiscard]] static Result<std::unique_ptr<LiveSession>> open(
      const CommandOptions& options, Duration patience = ClientOptions().patience);
  explicit LiveSession(ClientOptions options) : client_(std::move(options)) {}

  [[nodiscard]] Client& client() { return client_; }
  [[nodiscard]] std::string request_id() { return make_request_id(entropy_); }

 private:
  RealEntropy entropy_;
  Client client_;
};

/// The number of a job as people type it. Error: "job "x": expected its number...".
[[nodiscard]] Result<std::uint64_t> job_id(const std::string& text);

/// One JSON document, fields named as in the schema; those that are not set, too.
void print_answer(const google::protobuf::Message& answer);
/// Prints the answer as JSON on one line of a stream, which is flushed.
void print_answer_line(const google::protobuf::Message& answer);
/// Returns the answer as JSON.
[[nodiscard]] Json answer_json(const google::protobuf::Message& answer);

}  // namespace orrery
