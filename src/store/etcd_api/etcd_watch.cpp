#include "store/etcd_api/etcd_watch.hpp"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

namespace orrery {
namespace {

constexpr const char* kWatch = "/etcdserverpb.Watch/Watch";

}  // namespace

EtcdWatch::EtcdWatch(const std::shared_ptr<grpc::Channel>& member, etcd::WatchRequest request)
    : request_(std::move(request)) {
  context_.AddMetadata("hasleader", "true");
  call_ = Stub(member).PrepareCall(&context_, kWatch, &queue_);
  call_->StartCall(this);
  step_ = Step::kStart;
}

EtcdWatch::~EtcdWatch() {
  context_.TryCancel();
  void* tag = nullptr;
  bool ok = false;
  const bool waits = step_ != Step::kNone && step_ != Step::kEnded;
  if (waits) queue_.Next(&tag, &ok);
  grpc::Status status;
  call_->Finish(&status, this);
  queue_.Next(&tag, &ok);
}

EtcdWatch::Next EtcdWatch::next(Duration patience) {
  const gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_nanos(patience.count_ns(), GPR_TIMESPAN));
  while (step_ != Step::kEnded) {
    if (step_ == Step::kNone) {
      step_ = Step::kRead;
      call_->Read(&message_, this);
    }
    void* tag = nullptr;
    bool ok = false;
    const auto outcome = queue_.AsyncNext(&tag, &ok, until);
    if (outcome == grpc::CompletionQueue::TIMEOUT) return Next::kSilence;
    if (outcome == grpc::CompletionQueue::SHUTDOWN || !ok) {
      step_ = Step::kEnded;
    } else if (step_ == Step::kStart) {
      step_ = Step::kWrite;
      call_->Write(request_, this);
    } else if (std::exchange(step_, Step::kNone) == Step::kRead) {
      return Next::kMessage;
    }
  }
  return Next::kEnded;
}

}  // namespace orrery
