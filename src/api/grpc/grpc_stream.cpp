#include "api/grpc/grpc_stream.hpp"

#include <utility>

#include "api/grpc/controller_route.hpp"

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

/// Precondition: the lock is held.
GrpcStream::Next GrpcStream::next() {
  if (reactor_ == nullptr || busy_ || finished_) return Next::kNothing;
  if (!queue_.empty()) {
    writing_.Swap(&queue_.front());
    queue_.pop_front();
    waiting_bytes_ -= writing_.Length();
    busy_ = true;
    return Next::kWrite;
  }
  if (!status_) return Next::kNothing;
  finished_ = true;
  return Next::kFinish;
}

/// Precondition: the lock is held.
GrpcStream::Due GrpcStream::due() {
  Due due{next(), {}};
  if (queue_.empty() || !wanted_) due.ready = std::exchange(ready_, {});
  return due;
}

void GrpcStream::go_on(const Due& due) {
  if (due.next == Next::kWrite) {
    reactor_->StartWrite(&writing_);
  } else if (due.next == Next::kFinish) {
    const bool refused = status_->code == CallCode::kUnavailable;
    reactor_->Finish({static_cast<grpc::StatusCode>(status_->code), status_->message,
                      refused ? kRefusedByController : ""});
  }
  if (due.ready) due.ready();
}

void GrpcStream::send(const google::protobuf::Message& message) {
  grpc::ByteBuffer bytes = serialize(message);
  Due what;
  std::function<void()> gone;
  {
    const std::scoped_lock lock(mutex_);
    if (reactor_ == nullptr || status_) return;
    if (!queue_.empty() && waiting_bytes_ + bytes.Length() > kWaitingBytesMax) {
      status_ = too_slow(kWaitingBytesMax);
      wanted_ = false;
      gone = std::exchange(gone_, nullptr);
    } else {
      waiting_bytes_ += bytes.Length();
      queue_.push_back(std::move(bytes));
    }
    what = due();
  }
  go_on(what);
  if (gone) gone();
}

void GrpcStream::finish(const CallStatus& status) {
  Due what;
  {
    const std::scoped_lock lock(mutex_);
    if (reactor_ == nullptr || status_) return;
    status_ = status;
    wanted_ = false;
    gone_ = nullptr;
    what = due();
  }
  go_on(what);
}

void GrpcStream::receive(Heard heard) {
  {
    const std::scoped_lock lock(mutex_);
    if (reactor_ != nullptr && !finished_) {
      heard_ = std::move(heard);
      return reactor_->StartRead(&received_);
    }
  }
  heard(nullptr);
}

GrpcStream::Heard GrpcStream::take_heard() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(heard_, nullptr);
}

void GrpcStream::on_read() {
  if (const Heard heard = take_heard()) heard(&received_);
}

void GrpcStream::on_read_over() {
  if (const Heard heard = take_heard()) heard(nullptr);
}

void GrpcStream::when_gone(std::function<void()> gone) {
  {
    const std::scoped_lock lock(mutex_);
    if (wanted_) {
      gone_ = std::move(gone);
      return;
    }
    if (status_ && status_->code != CallCode::kCancelled) return;
  }
  gone();
}

void GrpcStream::when_taken(std::function<void()> ready) {
  Due what;
  {
    const std::scoped_lock lock(mutex_);
    ready_ = std::move(ready);
    what = due();
  }
  go_on(what);
}

void GrpcStream::read(grpc::ByteBuffer& into) {
  // Under the lock, so that the stream is not finished, and its reactor deleted, meanwhile. Another
  // thread reports that a message has come.
  const std::scoped_lock lock(mutex_);
  if (reactor_ != nullptr && !finished_) reactor_->StartRead(&into);
}

void GrpcStream::on_written() {
  Due what;
  {
    const std::scoped_lock lock(mutex_);
    busy_ = false;
    what = due();
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
  Due what;
  std::function<void()> gone;
  {
    const std::scoped_lock lock(mutex_);
    wanted_ = false;
    queue_.clear();
    waiting_bytes_ = 0;
    if (!status_) status_ = {CallCode::kCancelled, ""};
    gone = std::exchange(gone_, nullptr);
    what = due();
  }
  go_on(what);
  if (gone) gone();
}

void GrpcStream::on_done() {
  Due what;
  std::function<void()> gone;
  {
    const std::scoped_lock lock(mutex_);
    reactor_ = nullptr;
    wanted_ = false;
    gone = std::exchange(gone_, nullptr);
    what = due();
  }
  go_on(what);
  if (gone) gone();
}

}  // namespace orrery
