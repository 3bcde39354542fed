#include "gateway/picker/rpc_stream.hpp"

#include <utility>

namespace orrery {

void RpcStream::go_on(std::unique_lock<std::mutex> lock) {
  if (reactor_ == nullptr || writing_ || finished_) return;
  grpc::ServerGenericBidiReactor& reactor = *reactor_;
  if (!queue_.empty()) {
    writing_ = true;
    out_ = queue_.front();
    queue_.pop_front();
    queued_ -= out_.Length();
    // gRPC may call back at once. The reactor stays until Finish, which waits for this write.
    lock.unlock();
    reactor.StartWrite(&out_);
  } else if (status_) {
    finished_ = true;
    lock.unlock();
    reactor.Finish(*status_);
  }
}

void RpcStream::send(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  std::unique_lock lock(mutex_);
  if (status_) return;
  queue_.emplace_back(&slice, 1);
  queued_ += slice.size();
  go_on(std::move(lock));
}

void RpcStream::finish(const grpc::Status& status) {
  std::unique_lock lock(mutex_);
  if (status_) return;
  status_ = status;
  go_on(std::move(lock));
}

/// Precondition: the lock is held, so that the stream is not finished meanwhile. What was read is
/// reported by another call.
void RpcStream::read_if_room() {
  if (!wants_read_ || reactor_ == nullptr || finished_ || queued_ > kQueuedMax) return;
  wants_read_ = false;
  reactor_->StartRead(&in_);
}

void RpcStream::read() {
  const std::scoped_lock lock(mutex_);
  wants_read_ = true;
  read_if_room();
}

void RpcStream::on_written() {
  std::unique_lock lock(mutex_);
  writing_ = false;
  read_if_room();
  go_on(std::move(lock));
}

void RpcStream::on_broken() {
  std::unique_lock lock(mutex_);
  queue_.clear();
  queued_ = 0;
  if (!status_) status_ = grpc::Status::CANCELLED;
  go_on(std::move(lock));
}

void RpcStream::on_done() {
  const std::scoped_lock lock(mutex_);
  reactor_ = nullptr;
}

}  // namespace orrery
