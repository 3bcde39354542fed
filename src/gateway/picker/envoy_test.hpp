// gateway/picker/envoy_test.hpp - what Envoy does with an endpoint picker: the streams of a gRPC
// client, and the messages that Envoy sends on them.
//
// A test opens a stream for each request; it reads all answers. gRPC's threads add to what has
// come, the test's thread looks at it while it runs the loop.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/picker/picker_messages.hpp"

namespace orrery {

using Headers = std::map<std::string, std::string>;

/// A stream of some method from messages to messages.
template <class Asked, class Answered>
class ClientOfStream final : private grpc::ClientBidiReactor<Asked, Answered> {
 public:
  ClientOfStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel) {
    stub_.PrepareBidiStreamingCall(&context_, method, {}, this);
    this->AddHold();
    this->StartRead(&incoming_);
    this->StartCall();
  }
  ~ClientOfStream() override {
    cancel();
    std::unique_lock lock(mutex_);
    release_hold(lock);
    changed_.wait(lock, [&] { return done_.has_value(); });
  }

  void send(const Asked& message) {
    const std::scoped_lock lock(mutex_);
    queue_.push_back(message);
    write_next();
  }
  /// Says that no message follows.
  void close() {
    std::unique_lock lock(mutex_);
    closing_ = true;
    write_next();
  }
  void cancel() { context_.TryCancel(); }

  [[nodiscard]] std::vector<Answered> answers() const {
    const std::scoped_lock lock(mutex_);
    return answers_;
  }
  /// How the stream has ended; none: it is open.
  [[nodiscard]] std::optional<grpc::Status> end() {
    std::unique_lock lock(mutex_);
    if (read_over_) release_hold(lock);
    return done_;
  }

 private:
  void OnReadDone(bool read) override {
    const std::scoped_lock lock(mutex_);
    read_over_ = !read;
    if (!read) return;
    answers_.push_back(incoming_);
    this->StartRead(&incoming_);
  }
  void OnWriteDone(bool) override {
    const std::scoped_lock lock(mutex_);
    writing_ = false;
    write_next();
  }
  void OnDone(const grpc::Status& status) override {
    const std::scoped_lock lock(mutex_);
    done_ = status;
    changed_.notify_all();
  }

  /// Precondition: the lock is held.
  void write_next() {
    if (writing_ || held_ == Hold::kReleased) return;
    if (!queue_.empty()) {
      writing_ = true;
      outgoing_ = std::move(queue_.front());
      queue_.pop_front();
      this->StartWrite(&outgoing_);
    } else if (std::exchange(closing_, false)) {
      this->StartWritesDone();
    }
  }
  void release_hold(std::unique_lock<std::mutex>& lock) {
    if (std::exchange(held_, Hold::kReleased) == Hold::kReleased) return;
    lock.unlock();
    this->RemoveHold();
    lock.lock();
  }

  enum class Hold : std::uint8_t { kHeld, kReleased } held_ = Hold::kHeld;
  grpc::TemplatedGenericStub<Asked, Answered> stub_;
  grpc::ClientContext context_;
  Answered incoming_;
  Asked outgoing_;
  mutable std::mutex mutex_;  ///< guards all below, and held_
  std::condition_variable changed_;
  std::deque<Asked> queue_;
  std::vector<Answered> answers_;
  bool writing_ = false;
  bool closing_ = false;
  bool read_over_ = false;
  std::optional<grpc::Status> done_;
};

using EnvoyStream = ClientOfStream<ext_proc::ProcessingRequest, ext_proc::ProcessingResponse>;
using HealthStream = ClientOfStream<ext_proc::HealthCheckRequest, ext_proc::HealthCheckResponse>;

enum class Ends : std::uint8_t { kNo, kYes };

inline void fill(const Headers& from, ext_proc::HeaderMap& headers) {
  for (const auto& [name, value] : from) {
    ext_proc::HeaderValue& each = *headers.add_headers();
    each.set_key(name);
    each.set_raw_value(value);
  }
}

inline ext_proc::ProcessingRequest request_headers(Headers more = {}, Ends ends = Ends::kNo) {
  more.insert(
      {{":method", "POST"}, {":path", "/v1/chat/completions"}, {"authorization", "Bearer all"}});
  ext_proc::ProcessingRequest message;
  fill(more, *message.mutable_request_headers()->mutable_headers());
  message.mutable_request_headers()->set_end_of_stream(ends == Ends::kYes);
  return message;
}

inline ext_proc::ProcessingRequest request_body(std::string_view bytes, Ends ends = Ends::kYes) {
  ext_proc::ProcessingRequest message;
  message.mutable_request_body()->set_body(std::string(bytes));
  message.mutable_request_body()->set_end_of_stream(ends == Ends::kYes);
  return message;
}

inline ext_proc::ProcessingRequest request_trailers() {
  ext_proc::ProcessingRequest message;
  message.mutable_request_trailers();
  return message;
}

inline ext_proc::ProcessingRequest answer_headers(Headers more = {}, Ends ends = Ends::kNo) {
  more.insert({{":status", "200"}, {"content-type", "application/json"}});
  ext_proc::ProcessingRequest message;
  fill(more, *message.mutable_response_headers()->mutable_headers());
  message.mutable_response_headers()->set_end_of_stream(ends == Ends::kYes);
  return message;
}

inline ext_proc::ProcessingRequest answer_body(std::string_view bytes, Ends ends = Ends::kYes) {
  ext_proc::ProcessingRequest message;
  message.mutable_response_body()->set_body(std::string(bytes));
  message.mutable_response_body()->set_end_of_stream(ends == Ends::kYes);
  return message;
}

inline ext_proc::ProcessingRequest answer_trailers() {
  ext_proc::ProcessingRequest message;
  message.mutable_response_trailers();
  return message;
}

/// A value of a message's metadata.
inline google::protobuf::Value& metadata(ext_proc::ProcessingRequest& message,
                                         const std::string& space, const std::string& name) {
  auto& fields =
      *(*message.mutable_metadata_context()->mutable_filter_metadata())[space].mutable_fields();
  return fields[name];
}

inline ext_proc::ProcessingRequest served_by(ext_proc::ProcessingRequest message,
                                             const std::string& endpoint) {
  metadata(message, "envoy.lb", "x-gateway-destination-endpoint-served").set_string_value(endpoint);
  return message;
}

inline ext_proc::ProcessingRequest limited_to(ext_proc::ProcessingRequest message,
                                              const std::vector<std::string>& endpoints) {
  google::protobuf::Value& value =
      metadata(message, "envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset");
  value.mutable_list_value();
  for (const std::string& each : endpoints) {
    value.mutable_list_value()->add_values()->set_string_value(each);
  }
  return message;
}

inline ext_proc::ProcessingRequest with_modes(ext_proc::ProcessingRequest message,
                                              ext_proc::BodySendMode request,
                                              ext_proc::BodySendMode answer) {
  message.mutable_protocol_config()->set_request_body_mode(request);
  message.mutable_protocol_config()->set_response_body_mode(answer);
  return message;
}

/// The value that a mutation sets a header to; empty: it does not.
inline std::string set_by(const ext_proc::HeaderMutation& mutation, std::string_view name) {
  for (const ext_proc::HeaderValueOption& each : mutation.set_headers()) {
    const bool replaces =
        each.append_action() == ext_proc::HeaderValueOption::OVERWRITE_IF_EXISTS_OR_ADD;
    if (each.header().key() == name && replaces) return each.header().raw_value();
  }
  return {};
}

/// The endpoints that an answer names, the same in its header and its metadata; else empty.
inline std::string endpoints_in(const ext_proc::ProcessingResponse& answer) {
  const std::string name = "x-gateway-destination-endpoint";
  const auto& spaces = answer.dynamic_metadata().fields();
  const auto space = spaces.find("envoy.lb");
  if (space == spaces.end()) return {};
  const auto& fields = space->second.struct_value().fields();
  const auto value = fields.find(name);
  const ext_proc::CommonResponse& common = answer.has_request_body()
                                               ? answer.request_body().response()
                                               : answer.request_headers().response();
  const std::string header = set_by(common.header_mutation(), name);
  return value != fields.end() && value->second.string_value() == header ? header : std::string();
}

}  // namespace orrery
