// api/renewal/certificate_call.hpp - an agent asks the controllers of its cluster for its next
// certificate, one after the other, over connections of its own that show the present one.
//
// Made for one request over the loop's Inbox, which outlives it. A standby's refusal leads to the
// leader that it names, else to the next controller (api/grpc/controller_route.hpp); each is asked
// at most once. gRPC's threads only post; the rest is on the loop. Its destructor abandons the
// request.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "api/agents/certificates.hpp"
#include "api/grpc/controller_route.hpp"
#include "base/env.hpp"

namespace orrery {

struct CertificateCallSetup {
  std::vector<std::string> controllers;  ///< HOST:PORT of each, at least one
  AgentTls tls;                          ///< the present certificate
};

class CertificateCall {
 public:
  /// Receives the certificate, or why there is none: no controller answered, each within a minute,
  /// or the leader's refusal.
  using Answer = std::function<void(const Result<std::string>& certificate)>;

  /// `answer` runs on the loop, once, and never after the end of this object, which it may end.
  CertificateCall(Inbox& inbox, CertificateCallSetup setup, std::string request, Answer answer);
  CertificateCall(const CertificateCall&) = delete;
  CertificateCall& operator=(const CertificateCall&) = delete;
  /// Waits until no thread of gRPC uses it.
  ~CertificateCall();

 private:
  /// The call to one controller, and how it ended.
  struct Asking;
  struct Ended;

  /// Asks the controller that the route names.
  void ask();
  void hear(const Ended& ended);

  Inbox& inbox_;
  AgentTls tls_;
  std::string request_;
  ControllerRoute route_;
  std::vector<std::string> failures_;  ///< of the controllers that were not available
  std::unique_ptr<Asking> asking_;
  std::shared_ptr<Answer> answer_;  ///< used on the loop alone; none: the object has ended
  std::future<void> over_;
};

}  // namespace orrery
