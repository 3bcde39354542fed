#include "api/renewal/certificate_call.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "orrery/v1/orrery.pb.h"

namespace orrery {
namespace {

constexpr const char* kMethod = "/orrery.v1.Orrery/RenewCertificate";
constexpr std::int64_t kPatienceSeconds = 60;

using Stub = grpc::TemplatedGenericStub<v1::RenewCertificateRequest, v1::RenewCertificateResponse>;

std::shared_ptr<grpc::Channel> channel_of(const std::string& controller, const AgentTls& shown) {
  const grpc::SslCredentialsOptions tls{.pem_root_certs = shown.authority,
                                        .pem_private_key = shown.identity.key,
                                        .pem_cert_chain = shown.identity.certificate};
  grpc::ChannelArguments arguments;
  // A shared connection would show an earlier certificate.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(controller, grpc::SslCredentials(tls), arguments);
}

}  // namespace

struct CertificateCall::Ended {
  Result<std::string> certificate;
  bool unavailable = false;  ///< another controller may answer
  std::string leader = {};   ///< HOST:PORT, as a standby names it; empty: none is named
};

struct CertificateCall::Asking {
  Asking(const std::string& controller, const AgentTls& tls) : stub(channel_of(controller, tls)) {}

  [[nodiscard]] Ended end(const grpc::Status& status) const {
    if (status.ok()) return {response.certificate()};
    Ended ended{environment_error(status.error_message())};
    ended.unavailable = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                        status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    const auto named = context.GetServerTrailingMetadata().find(kLeaderKey);
    if (named != context.GetServerTrailingMetadata().end()) {
      ended.leader.assign(named->second.data(), named->second.size());
    }
    return ended;
  }

  Stub stub;
  grpc::ClientContext context;
  v1::RenewCertificateRequest request;
  v1::RenewCertificateResponse response;
};

CertificateCall::CertificateCall(Inbox& inbox, CertificateCallSetup setup, std::string request,
                                 Answer answer)
    : inbox_(inbox),
      tls_(std::move(setup.tls)),
      request_(std::move(request)),
      route_(std::move(setup.controllers)),
      answer_(std::make_shared<Answer>(std::move(answer))) {
  ask();
}

CertificateCall::~CertificateCall() {
  *answer_ = nullptr;
  asking_->context.TryCancel();
  over_.wait();
}

void CertificateCall::ask() {
  asking_ = std::make_unique<Asking>(route_.address(), tls_);
  asking_->request.set_certificate_request(request_);
  asking_->context.set_deadline(gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN)));
  // The callback, run by a thread of gRPC, owns no object of gRPC: none may be destroyed there.
  const auto over = std::make_shared<std::promise<void>>();
  over_ = over->get_future();
  asking_->stub.UnaryCall(&asking_->context, kMethod, {}, &asking_->request, &asking_->response,
                          [this, &inbox = inbox_, asking = asking_.get(), answer = answer_,
                           over](const grpc::Status& status) {
                            inbox.post([this, answer, ended = asking->end(status)] {
                              if (*answer) hear(ended);
                            });
                            over->set_value();
                          });
}

void CertificateCall::hear(const Ended& ended) {
  over_.wait();
  const auto tell = [this](const Result<std::string>& certificate) {
    const Answer told = std::exchange(*answer_, nullptr);
    told(certificate);
  };
  if (!ended.unavailable) return tell(ended.certificate);
  failures_.push_back(fmt::format("{}: {}", route_.address(), ended.certificate.error().message));
  if (route_.move_on(ended.leader)) return ask();
  tell(environment_error(fmt::format("{}", fmt::join(failures_, "; "))));
}

}  // namespace orrery
