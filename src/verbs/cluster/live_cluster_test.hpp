// verbs/cluster/live_cluster_test.hpp - a verb's call of a cluster that answers as a test says.
//
// The test owns it; what the cluster heard is kept by method.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/fake_controller_test.hpp"
#include "api/views.hpp"
#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_answer.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {

class LiveClusterTest : public ::testing::Test {
 protected:
  void SetUp() override { controller_.start(); }

  /// Answers each call of a method with what a function makes of its request.
  template <class Request, class Make>
  void on(const std::string& method, const Make& make) {
    controller_.on(method, [this, method, make](const FakeController::Heard& call) {
      Request request;
      if (!request.ParseFromString(call.request)) return refuse(grpc::StatusCode::INTERNAL, "?");
      heard_[method].push_back(call.request);
      return make(request);
    });
  }
  /// Answers each call of a method with a message.
  template <class Request, class Message>
  void answers(const std::string& method, const Message& message) {
    on<Request>(method, [message](const Request&) { return answer_with(message); });
  }
  template <class Request>
  void refuses(const std::string& method, grpc::StatusCode code, const std::string& why) {
    on<Request>(method, [code, why](const Request&) { return refuse(code, why); });
  }
  /// Returns the requests of a method that were heard.
  template <class Request>
  [[nodiscard]] std::vector<Request> heard(const std::string& method) {
    std::vector<Request> requests;
    for (const std::string& bytes : heard_[method]) {
      requests.emplace_back().ParseFromString(bytes);
    }
    return requests;
  }

  /// Writes a directory by which verbs find the cluster, and gives it to the options.
  void write_cluster_directory() {
    files_.write("cluster/ca.pem", controller_.authority());
    const Json file = {{"address", controller_.address()}, {"ca", "ca.pem"}};
    files_.write("cluster/cluster.json", file.dump());
    options_.cluster_directory = files_.path("cluster");
    options_.retry_s = 0;
  }

  [[nodiscard]] LiveSession& session() {
    if (!session_) {
      session_ = std::make_unique<LiveSession>(ClientOptions{
          .addresses = {controller_.address()}, .authority = controller_.authority(), .token = {}});
    }
    return *session_;
  }
  [[nodiscard]] LiveCall call() {
    return {session(), {.colour = Colour::kOff, .now = now_}, options_};
  }
  /// Keeps what is said in `text_` and `messages_`.
  [[nodiscard]] LiveProgress progress() {
    return {.text = [this](const std::string& line) { text_ += line; },
            .message = [this](const std::string& line) { messages_ += line; }};
  }

  const ScratchFiles files_;
  const Instant now_ = Instant::parse("2026-11-27T12:00:00Z").value();
  FakeController controller_;
  CommandOptions options_;
  std::string text_;
  std::string messages_;

 private:
  std::map<std::string, std::vector<std::string>> heard_;
  std::unique_ptr<LiveSession> session_;
};

/// Returns a time before or after 2026-11-27T12:00:00Z.
inline google::protobuf::Timestamp seconds_from_noon(std::int64_t seconds) {
  return timestamp_of(Instant::parse("2026-11-27T12:00:00Z").value() + Duration::seconds(seconds));
}

inline v1::Job job_named(std::uint64_t id, const std::string& name, const std::string& phase) {
  v1::Job job;
  job.set_id(id);
  job.set_name(name);
  job.set_phase(phase);
  return job;
}

}  // namespace orrery
