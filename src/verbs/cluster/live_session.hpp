// verbs/cluster/live_session.hpp - what verbs on a running cluster share: the controller they call,
// request ids for their changes, answers as JSON.
//
// Made by a verb when it runs; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/grpc/client.hpp"
#include "base/error.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_env.hpp"
#include "verbs/command_options.hpp"

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
  explicit LiveSession(ClientOptions options) : options_(std::move(options)), client_(options_) {}

  [[nodiscard]] Client& client() { return client_; }
  /// Returns the known addresses of the cluster's controllers.
  [[nodiscard]] const std::vector<std::string>& controllers() const { return options_.addresses; }
  /// Returns a client of one controller, which is asked once and not waited for for long.
  [[nodiscard]] std::unique_ptr<Client> client_of(const std::string& controller) const;
  [[nodiscard]] std::string request_id() { return make_request_id(entropy_); }

 private:
  RealEntropy entropy_;
  ClientOptions options_;
  Client client_;
};

/// Reads the number of a job as typed. Error: "job "x": expected its number...".
[[nodiscard]] Result<std::uint64_t> job_id(const std::string& text);

enum class AnswerLayout { kLine, kIndented };
/// Returns the answer as JSON text, fields named as in the schema, including those that are not
/// set.
[[nodiscard]] std::string answer_text(const google::protobuf::Message& answer, AnswerLayout layout);
/// Returns the answer as JSON.
[[nodiscard]] Json answer_json(const google::protobuf::Message& answer);

}  // namespace orrery
