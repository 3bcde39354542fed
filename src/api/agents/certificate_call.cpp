#include "api/agents/certificate_call.hpp"

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

std::shared_ptr<grpc::Channel> channel_of(const AgentChannelOptions& options) {
  const grpc::SslCredentialsOptions tls{.pem_root_certs = options.tls.authority,
                                        .pem_private_key = options.tls.identity.key,
                                        .pem_cert_chain = options.tls.identity.certificate};
  grpc::ChannelArguments arguments;
  // A shared connection would show an earlier certificate.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(options.controller, grpc::SslCredentials(tls), arguments);
}

}  // namespace

struct CertificateCall::Asking {
  explicit Asking(const AgentChannelOptions& options) : stub(channel_of(options)) {}

  [[nodiscard]] Result<std::string> result(const grpc::Status& status) const {
    if (status.ok()) return response.certificate();
    return environment_error(status.error_message());
  }

  Stub stub;
  grpc::ClientContext context;
  v1::RenewCertificateRequest request;
  v1::RenewCertificateResponse response;
};

CertificateCall::CertificateCall(Inbox& inbox, const AgentChannelOptions& options,
                                 const std::string& request, Answer answer)
    : asking_(std::make_unique<Asking>(options)),
      answer_(std::make_shared<Answer>(std::move(answer))) {
  asking_->request.set_certificate_request(request);
  asking_->context.set_deadline(gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN)));
  // The callback, run by a thread of gRPC, owns no object of gRPC: none may be destroyed there.
  const auto over = std::make_shared<std::promise<void>>();
  over_ = over->get_future();
  asking_->stub.UnaryCall(
      &asking_->context, kMethod, {}, &asking_->request, &asking_->response,
      [&inbox, asking = asking_.get(), answer = answer_, over](const grpc::Status& status) {
        inbox.post([answer, result = asking->result(status)] {
          if (const Answer told = std::exchange(*answer, nullptr)) told(result);
        });
        over->set_value();
      });
}

CertificateCall::~CertificateCall() {
  *answer_ = nullptr;
  asking_->context.TryCancel();
  over_.wait();
}

}  // namespace orrery
