#include "api/http/http_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kStreamBlock = 32 << 10;
/// How long a stream may pause because its client does not read, as under a pager.
constexpr unsigned int kStreamIdleSeconds = 3'600;

unsigned int http_code(CallCode code) {
  switch (code) {
    case CallCode::kOk:
      return MHD_HTTP_OK;
    case CallCode::kInvalidArgument:
      return MHD_HTTP_BAD_REQUEST;
    case CallCode::kUnauthenticated:
      return MHD_HTTP_UNAUTHORIZED;
    case CallCode::kPermissionDenied:
      return MHD_HTTP_FORBIDDEN;
    case CallCode::kNotFound:
      return MHD_HTTP_NOT_FOUND;
    case CallCode::kAlreadyExists:
    case CallCode::kFailedPrecondition:
      return MHD_HTTP_CONFLICT;
    case CallCode::kResourceExhausted:
      return MHD_HTTP_TOO_MANY_REQUESTS;
    case CallCode::kUnimplemented:
      return MHD_HTTP_NOT_IMPLEMENTED;
    case CallCode::kUnavailable:
    case CallCode::kCancelled:
      return MHD_HTTP_SERVICE_UNAVAILABLE;
    case CallCode::kDeadlineExceeded:
    case CallCode::kInternal:
      return MHD_HTTP_INTERNAL_SERVER_ERROR;
  }
  return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

ssize_t read_stream(void* exchange, std::uint64_t, char* into, std::size_t most) {
  return (*static_cast<std::shared_ptr<HttpExchange>*>(exchange))->take(into, most);
}

void free_stream(void* exchange) { delete static_cast<std::shared_ptr<HttpExchange>*>(exchange); }

}  // namespace

std::string error_json(const CallStatus& status) {
  const nlohmann::json json = {{"code", static_cast<int>(status.code)},
                               {"message", status.message}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void HttpExchange::wait() {
  const std::scoped_lock lock(mutex_);
  if (ready_to_answer_ || connection_ == nullptr) return;
  suspended_ = true;
  MHD_suspend_connection(connection_);
}

/// Precondition: the lock is held.
void HttpExchange::resume() {
  if (!suspended_ || connection_ == nullptr) return;
  suspended_ = false;
  MHD_resume_connection(connection_);
}

bool HttpExchange::ready() const {
  const std::scoped_lock lock(mutex_);
  return ready_to_answer_;
}

void HttpExchange::close() {
  std::function<void()> ready;
  {
    const std::scoped_lock lock(mutex_);
    connection_ = nullptr;
    wanted_ = false;
    ready = due();
  }
  if (ready) ready();
}

MHD_Result HttpExchange::answer(const std::shared_ptr<HttpExchange>& self) {
  const std::scoped_lock lock(mutex_);
  answered_ = true;
  MHD_Response* response = nullptr;
  unsigned int code = MHD_HTTP_OK;
  if (stream_) {
    // Freed by free_stream, when the response is.
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kStreamBlock, &read_stream,
                                          new std::shared_ptr<HttpExchange>(self), &free_stream);
    (void)MHD_set_connection_option(connection_, MHD_CONNECTION_OPTION_TIMEOUT, kStreamIdleSeconds);
    (void)MHD_add_response_header(response, "Content-Type", "text/event-stream");
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
  } else {
    code = head_.location.empty() ? http_code(status_.code) : MHD_HTTP_TEMPORARY_REDIRECT;
    if (status_.code != CallCode::kOk) bytes_ = error_json(status_) + "\n";
    response = MHD_create_response_from_buffer(bytes_.size(), bytes_.data(), MHD_RESPMEM_MUST_COPY);
    (void)MHD_add_response_header(response, "Content-Type", head_.type.c_str());
    if (!head_.location.empty())
      (void)MHD_add_response_header(response, "Location", head_.location.c_str());
  }
  const MHD_Result queued = MHD_queue_response(connection_, code, response);
  MHD_destroy_response(response);
  return queued;
}

/// Precondition: the lock is held.
std::function<void()> HttpExchange::due() {
  return bytes_.empty() || !wanted_ ? std::exchange(ready_, {}) : std::function<void()>();
}

ssize_t HttpExchange::take(char* into, std::size_t most) {
  std::function<void()> ready;
  ssize_t taken = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (!bytes_.empty()) {
      const std::size_t size = std::min(most, bytes_.size() - taken_);
      std::memcpy(into, bytes_.data() + taken_, size);
      taken_ += size;
      if (taken_ == bytes_.size()) {
        bytes_.clear();
        taken_ = 0;
      }
      taken = static_cast<ssize_t>(size);
    } else if (ended_) {
      taken = status_.code == CallCode::kOk ? MHD_CONTENT_READER_END_OF_STREAM
                                            : MHD_CONTENT_READER_END_WITH_ERROR;
    } else {
      suspended_ = true;
      MHD_suspend_connection(connection_);
    }
    ready = due();
  }
  if (ready) ready();
  return taken;
}

void HttpExchange::when_taken(std::function<void()> ready) {
  {
    const std::scoped_lock lock(mutex_);
    ready_ = std::move(ready);
    ready = due();
  }
  if (ready) ready();
}

void HttpExchange::open() {
  const std::scoped_lock lock(mutex_);
  begin_stream();
}

/// Precondition: the lock is held.
void HttpExchange::begin_stream() {
  if (!streams_ || ended_) return;
  stream_ = true;
  ready_to_answer_ = true;
  resume();
}

/// Precondition: the lock is held.
void HttpExchange::add(std::string_view bytes) {
  if (ended_) return;
  if (taken_ < bytes_.size() && bytes_.size() - taken_ + bytes.size() > kWaitingBytesMax) {
    add_end(too_slow(kWaitingBytesMax));
  } else {
    if (taken_ > bytes_.size() / 2) bytes_.erase(0, std::exchange(taken_, 0));
    bytes_ += bytes;
  }
  resume();
}

/// Precondition: the lock is held.
void HttpExchange::add_end(const CallStatus& status) {
  if (stream_ && status.code != CallCode::kOk) {
    bytes_ += "event: error\ndata: " + error_json(status) + "\n\n";
  }
  ended_ = true;
  ready_to_answer_ = true;
  wanted_ = false;
  status_ = status;
}

void HttpExchange::put(std::string_view json) {
  const std::scoped_lock lock(mutex_);
  begin_stream();
  if (stream_) {
    add("data: " + std::string(json) + "\n\n");
  } else {
    bytes_ = std::string(json) + "\n";
  }
}

void HttpExchange::put_text(std::string_view type, std::string text) {
  const std::scoped_lock lock(mutex_);
  head_.type = type;
  bytes_ = std::move(text);
}

void HttpExchange::redirect(std::string url) {
  {
    const std::scoped_lock lock(mutex_);
    head_.location = std::move(url);
  }
  end({});
}

void HttpExchange::put_comment() {
  const std::scoped_lock lock(mutex_);
  begin_stream();
  if (stream_ && bytes_.empty()) add(":\n\n");
}

void HttpExchange::end(const CallStatus& status) {
  std::function<void()> ready;
  {
    const std::scoped_lock lock(mutex_);
    if (ended_) return;
    add_end(status);
    resume();
    ready = due();
  }
  if (ready) ready();
}

}  // namespace orrery
