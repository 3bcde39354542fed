#include "http/message_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <optional>

#include "base/assert.hpp"

namespace orrery {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::http::basic_parser;

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

/// Gives the path and query of a target that names scheme and host as well.
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == target.npos) return target;
  const std::size_t path = target.find_first_of("/?", scheme + 3);
  return path == target.npos ? std::string_view("/") : target.substr(path);
}

/// Where the parts of a message go.
struct MessageTarget {
  WebRequest* request = nullptr;
  WebResponseHead* response = nullptr;
  WebHeaders* headers = nullptr;
  std::string* body = nullptr;
};

template <bool kRequest>
class MessageGrammar final : public basic_parser<kRequest> {
 public:
  MessageGrammar(const MessageLimits& limits, const MessageTarget& target) : target_(target) {
    this->eager(true);
    this->header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    this->body_limit(limits.body_bytes_max);
  }

  void append_to(std::string& body) { target_.body = &body; }

  [[nodiscard]] bool is_http11() const { return http11_; }
  [[nodiscard]] const error_code& failure() const { return failure_; }

  std::size_t read(std::string_view bytes) {
    if (failure_ || this->is_done() || bytes.empty()) return 0;
    // Beast asserts that the last chunk, once begun, comes with all of its shortest form.
    constexpr std::size_t kLastChunkMin = std::string_view("0\r\n\r\n").size();
    const bool at_chunk = this->is_header_done() && this->chunked() && chunk_left_ == 0;
    if (at_chunk && bytes.size() < kLastChunkMin) return 0;
    error_code failure;
    const std::size_t used =
        this->put(boost::asio::const_buffer(bytes.data(), bytes.size()), failure);
    if (failure && failure != beast::http::error::need_more) failure_ = failure;
    return used;
  }

  bool finish() {
    if (failure_ || !this->got_some()) return false;
    if (this->is_done()) return true;
    error_code failure;
    this->put_eof(failure);
    return !failure && this->is_done();
  }

  [[nodiscard]] MessagePart part() const {
    if (failure_) return MessagePart::kFault;
    if (this->is_done()) return MessagePart::kDone;
    return this->is_header_done() ? MessagePart::kBody : MessagePart::kHead;
  }

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, error_code&) override {
    target_.request->method = view_of(method);
    target_.request->target = origin_form(view_of(target));
    http11_ = version == 11;
  }

  void on_response_impl(int status, beast::string_view, int version, error_code&) override {
    target_.response->status = status;
    http11_ = version == 11;
  }

  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     error_code&) override {
    // Fields behind the body say nothing that is used.
    if (!head_done_) target_.headers->add(view_of(name), view_of(value));
  }

  void on_header_impl(error_code&) override { head_done_ = true; }

  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
    // A client may announce more than it ever sends.
    constexpr std::uint64_t kReservedMax = std::uint64_t{1} << 20;
    // Readers of JSON read whole vectors, and copy a body that has no memory behind it.
    constexpr std::uint64_t kSpare = 64;
    if (length && kRequest) target_.body->reserve(std::min(*length, kReservedMax) + kSpare);
  }

  std::size_t on_body_impl(beast::string_view bytes, error_code&) override {
    target_.body->append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_chunk_header_impl(std::uint64_t size, beast::string_view, error_code&) override {
    chunk_left_ = size;
  }

  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, error_code&) override {
    chunk_left_ -= bytes.size();
    target_.body->append(bytes.data(), bytes.size());
    return bytes.size();
  }

  void on_finish_impl(error_code&) override {}

  MessageTarget target_;
  error_code failure_;
  std::uint64_t chunk_left_ = 0;  ///< bytes of the chunk in progress that have not come
  bool http11_ = true;
  bool head_done_ = false;
};

template <bool kRequest>
struct GrammarHolder {
  MessageLimits limits;
  std::optional<MessageGrammar<kRequest>> grammar;

  [[nodiscard]] const MessageGrammar<kRequest>& begun() const {
    ORRERY_ASSERT(grammar.has_value(), "a message is begun before it is read");
    return *grammar;
  }
  [[nodiscard]] MessageGrammar<kRequest>& begun() {
    ORRERY_ASSERT(grammar.has_value(), "a message is begun before it is read");
    return *grammar;
  }
};

MessageFault fault_of(const error_code& failure) {
  if (!failure) return MessageFault::kNone;
  if (failure == beast::http::error::body_limit) return MessageFault::kBodyTooLarge;
  if (failure == beast::http::error::header_limit) return MessageFault::kHeaderTooLarge;
  return MessageFault::kMalformed;
}

}  // namespace

struct RequestParser::Impl : GrammarHolder<true> {};
struct ResponseParser::Impl : GrammarHolder<false> {};

RequestParser::RequestParser(const MessageLimits& limits) : impl_(std::make_unique<Impl>()) {
  impl_->limits = limits;
}

RequestParser::~RequestParser() = default;

void RequestParser::begin(WebRequest& request) {
  impl_->grammar.emplace(
      impl_->limits,
      MessageTarget{.request = &request, .headers = &request.headers, .body = &request.body});
}

std::size_t RequestParser::read(std::string_view bytes) { return impl_->begun().read(bytes); }

MessagePart RequestParser::part() const { return impl_->begun().part(); }

MessageFault RequestParser::fault() const { return fault_of(impl_->begun().failure()); }

std::string RequestParser::fault_text() const {
  switch (fault()) {
    case MessageFault::kBodyTooLarge:
      return fmt::format("the body is larger than {} bytes", impl_->limits.body_bytes_max);
    case MessageFault::kHeaderTooLarge:
      return fmt::format("the header is larger than {} bytes", impl_->limits.header_bytes_max);
    case MessageFault::kNone:
    case MessageFault::kMalformed:
      break;
  }
  return impl_->begun().failure().message();
}

Persistence RequestParser::persistence() const {
  return impl_->begun().keep_alive() ? Persistence::kKeep : Persistence::kClose;
}

bool RequestParser::is_http11() const { return impl_->begun().is_http11(); }

ResponseParser::ResponseParser(const MessageLimits& limits) : impl_(std::make_unique<Impl>()) {
  impl_->limits = limits;
}

ResponseParser::~ResponseParser() = default;

void ResponseParser::begin(WebResponseHead& head, AnswerBody body) {
  impl_->grammar.emplace(impl_->limits, MessageTarget{.response = &head, .headers = &head.headers});
  impl_->grammar->skip(body == AnswerBody::kNone);
}

std::size_t ResponseParser::read(std::string_view bytes, std::string& body) {
  impl_->begun().append_to(body);
  return impl_->begun().read(bytes);
}

bool ResponseParser::finish() { return impl_->begun().finish(); }

MessagePart ResponseParser::part() const { return impl_->begun().part(); }

std::string ResponseParser::fault_text() const { return impl_->begun().failure().message(); }

Persistence ResponseParser::persistence() const {
  return impl_->begun().keep_alive() ? Persistence::kKeep : Persistence::kClose;
}

}  // namespace orrery
