#include <utility>

#include "http/connection/web_connection.hpp"
#include "http/web_server.hpp"

namespace orrery {

WebExchange::WebExchange(WebConnection& connection, std::unique_ptr<WebRequest> request)
    : connection_(&connection), request_(std::move(request)) {
  connection.adopt(*this);
}

WebExchange::WebExchange(WebExchange&& other) noexcept
    : connection_(std::exchange(other.connection_, nullptr)),
      request_(std::move(other.request_)),
      gone_(std::move(other.gone_)) {
  if (connection_ != nullptr) connection_->adopt(*this);
}

WebExchange& WebExchange::operator=(WebExchange&& other) noexcept {
  if (this == &other) return *this;
  if (connection_ != nullptr) connection_->abandon();
  connection_ = std::exchange(other.connection_, nullptr);
  request_ = std::move(other.request_);
  gone_ = std::move(other.gone_);
  if (connection_ != nullptr) connection_->adopt(*this);
  return *this;
}

WebExchange::~WebExchange() {
  if (connection_ != nullptr) connection_->abandon();
}

std::string WebExchange::client() const {
  return connection_ != nullptr ? connection_->client() : std::string();
}

void WebExchange::on_drained(std::size_t bytes, Callback drained) {
  if (connection_ != nullptr) connection_->on_drained(bytes, std::move(drained));
}

std::size_t WebExchange::buffered() const {
  return connection_ != nullptr ? connection_->buffered() : 0;
}

void WebExchange::respond(int status, std::span<const WebHeader> headers, std::string_view body) {
  if (connection_ != nullptr) connection_->answer().respond(status, headers, body);
}

void WebExchange::respond(int status, std::string_view content_type, std::string_view body) {
  const WebHeader type{"Content-Type", content_type};
  respond(status, std::span<const WebHeader>(&type, 1), body);
}

void WebExchange::begin(int status, std::span<const WebHeader> headers) {
  if (connection_ != nullptr) connection_->answer().begin(status, headers);
}

void WebExchange::flush() {
  if (connection_ != nullptr) connection_->answer().flush();
}

void WebExchange::send(std::string_view bytes) {
  if (connection_ != nullptr) connection_->answer().send(bytes);
}

void WebExchange::end() {
  if (connection_ != nullptr) connection_->answer().end();
}

void WebExchange::abort() {
  if (connection_ != nullptr) connection_->abort();
}

}  // namespace orrery
