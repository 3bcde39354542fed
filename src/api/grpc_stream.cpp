#include "api/grpc_stream.hpp"

namespace orrery {

bool parse(const grpc::ByteBuffer& bytes, google::protobuf::Message& message) {
  grpc::Slice slice;
  if (!bytes.DumpToSingleSlice(&slice).ok()) return false;
  return message.ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

grpc::ByteBuffer serialize(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

/// What is to be called once the lock is let go: gRPC may call back at once.
GrpcStream::Next GrpcStream::next() {
  if (reactor_ == nullptr || busy_ || finished_) return Next::kNothing;
  if (!queue_.empty()) {
    writing_ = std::move(queue_.front());
    queue_.pop_front();
    waiting_bytes_ -= writing_.Length();
    busy_ = true;
    return Next::kWrite;
  }
  if (!status_) return Next::kNothing;
  finished_ = true;
  return Next::kFinish;
}

void GrpcStream::go_on(Next what) {
  if (what == Next::kWrite) {
    reactor_->StartWrite(&writing_);
  } else if (what == Next::kFinish) {
    reactor_->Finish({static_cast<grpc::StatusCode>(status_->code), status_->message});
  }
}

void GrpcStream::send(const google::protobuf::Message& message) {
  grpc::ByteBuffer bytes = serialize(message);
  Next what;
  {
    const std::scoped_lock lock(mutex_);
    if (reactor_ == nullptr || status_) return;
    waiting_bytes_ += bytes.Length();
    queue_.push_back(std::move(bytes));
    if (waiting_bytes_ > kWaitingBytesMax) {
      queue_.clear();
      waiting_bytes_ = 0;
      status_ = {CallCode::kResourceExhausted, "what was asked for is not taken as it comes"};
      wanted_ = false;
    }
    what = next();
  }
  go_on(what);
}

void GrpcStream::finish(const CallStatus& status) {
  Next what;
  {
    const std::scoped_lock lock(mutex_);
    if (reactor_ == nullptr || status_) return;
    status_ = status;
    wanted_ = false;
    what = next();
  }
  go_on(what);
}

void GrpcStream::read(grpc::ByteBuffer& into) {
  // Under the lock, so that the stream is not finished, and its reactor deleted, meanwhile. That a
  // message has come is told by another thread.
  const std::scoped_lock lock(mutex_);
  if (reactor_ != nullptr && !finished_) reactor_->StartRead(&into);
}

void GrpcStream::on_written() {
  Next what;
  {
    const std::scoped_lock lock(mutex_);
    busy_ = false;
    what = next();
  }
  go_on(what);
}

void GrpcStream::on_broken() {
  {
    const std::scoped_lock lock(mutex_);
    busy_ = false;
  }
  on_cancel();
}

void GrpcStream::on_cancel() {
  Next what;
  {
    const std::scoped_lock lock(mutex_);
    wanted_ = false;
    queue_.clear();
    waiting_bytes_ = 0;
    if (!status_) status_ = {CallCode::kCancelled, ""};
    what = next();
  }
  go_on(what);
}

void GrpcStream::on_done() {
  const std::scoped_lock lock(mutex_);
  reactor_ = nullptr;
  wanted_ = false;
}

}  // namespace orrery
