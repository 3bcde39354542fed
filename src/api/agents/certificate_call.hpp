// api/agents/certificate_call.hpp - an agent asks its controller for its next certificate, over a
// connection of its own that shows the present one.
//
// Made for one request over the loop's Inbox, which outlives it. gRPC's threads only post; the rest
// is on the loop. Its destructor abandons the request.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "api/agents/agent_channel.hpp"

namespace orrery {

class CertificateCall {
 public:
  /// Receives the certificate, or why there is none: no controller within a minute, or its refusal.
  using Answer = std::function<void(const Result<std::string>& certificate)>;

  /// `answer` runs on the loop, once, and never after the end of this object.
  CertificateCall(Inbox& inbox, const AgentChannelOptions& options, const std::string& request,
                  Answer answer);
  CertificateCall(const CertificateCall&) = delete;
  CertificateCall& operator=(const CertificateCall&) = delete;
  /// Waits until no thread of gRPC uses it.
  ~CertificateCall();

 private:
  struct Asking;

  std::unique_ptr<Asking> asking_;
  std::shared_ptr<Answer> answer_;  ///< used on the loop alone; none: the object has ended
  std::future<void> over_;
};

}  // namespace orrery
