#include "http/status_line.hpp"

#include <charconv>

namespace orrery {
namespace {

/// Whether a text holds what would end its line: CR, LF or NUL.
bool breaks_line(std::string_view text) {
  for (const char c : text) {
    // Most bytes need this comparison alone.
    if (static_cast<unsigned char>(c) > '\r') continue;
    if (c == '\r' || c == '\n' || c == '\0') return true;
  }
  return false;
}

void append_number(std::string& text, std::size_t number) {
  char digits[20];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace

std::string_view reason_of_status(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

void append_status_line(std::string& head, int status) {
  head.append("HTTP/1.1 ");
  append_number(head, static_cast<std::size_t>(status));
  head.append(" ").append(reason_of_status(status)).append("\r\n");
}

void append_header(std::string& head, const WebHeader& header) {
  if (breaks_line(header.name) || breaks_line(header.value)) return;
  head.append(header.name).append(": ").append(header.value).append("\r\n");
}

void append_content_length(std::string& head, std::size_t size) {
  head.append("Content-Length: ");
  append_number(head, size);
  head.append("\r\n");
}

}  // namespace orrery
