#include "http/connection/answer_writer.hpp"

#include <charconv>

#include "base/assert.hpp"
#include "http/status_line.hpp"

namespace orrery {

void AnswerWriter::prepare(const AnswerTerms& terms) {
  terms_ = terms;
  framing_ = Framing::kNone;
}

void AnswerWriter::start_head(int status, std::span<const WebHeader> headers) {
  if (shared_.stage == WebServerShared::Stage::kStopping) terms_.persistence = Persistence::kClose;
  shared_.head.clear();
  append_status_line(shared_.head, status);
  for (const WebHeader& each : headers) append_header(shared_.head, each);
  if (terms_.persistence == Persistence::kClose) {
    append_header(shared_.head, {"Connection", "close"});
  } else if (!terms_.http11) {
    append_header(shared_.head, {"Connection", "keep-alive"});
  }
}

void AnswerWriter::respond(int status, std::span<const WebHeader> headers, std::string_view body) {
  ORRERY_ASSERT(framing_ == Framing::kNone, "an answer begins once");
  framing_ = Framing::kWhole;
  start_head(status, headers);
  if (status != 204 && status != 304) append_content_length(shared_.head, body.size());
  shared_.head.append("\r\n");
  if (terms_.body == AnswerBody::kNone) body = {};
  outlet_.put({shared_.head, body});
  outlet_.finish_answer();
}

void AnswerWriter::begin(int status, std::span<const WebHeader> headers) {
  ORRERY_ASSERT(framing_ == Framing::kNone, "an answer begins once");
  framing_ = terms_.http11 ? Framing::kChunked : Framing::kToEnd;
  if (!terms_.http11) terms_.persistence = Persistence::kClose;
  start_head(status, headers);
  if (terms_.http11) append_header(shared_.head, {"Transfer-Encoding", "chunked"});
  shared_.head.append("\r\n");
  socket_.hold(shared_.head);
}

void AnswerWriter::send(std::string_view bytes) {
  ORRERY_ASSERT(framing_ != Framing::kNone, "an answer begins before its body");
  if (bytes.empty() || terms_.body == AnswerBody::kNone) return;
  const std::size_t most = shared_.options.output_bytes_max;
  if (socket_.buffered() + bytes.size() > most + kSocketReadBytes) {
    socket_.break_off();
  } else if (framing_ == Framing::kChunked) {
    char size[18];
    char* end = std::to_chars(size, size + 16, bytes.size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    outlet_.put({std::string_view(size, end), bytes, "\r\n"});
  } else {
    outlet_.put({bytes});
  }
  if (socket_.buffered() > most) socket_.break_off();
}

void AnswerWriter::end() {
  ORRERY_ASSERT(framing_ != Framing::kNone, "an answer begins before its end");
  const bool chunked = framing_ == Framing::kChunked;
  outlet_.put({chunked && terms_.body == AnswerBody::kAsFramed ? "0\r\n\r\n" : ""});
  outlet_.finish_answer();
}

}  // namespace orrery
