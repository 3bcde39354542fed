// http/connection/answer_writer.hpp - frames the answers of one connection: heads, chunks, ends.
//
// The connection owns it and readies it for each request; the exchange of the request then calls
// it. Invariant: an answer has one head and one end. Cost: the head is formatted in memory of the
// server, and a body is not copied where the network keeps up.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "http/connection/watched_socket.hpp"
#include "http/connection/web_server_shared.hpp"
#include "http/message_parser.hpp"
#include "http/web_headers.hpp"

namespace orrery {

/// The connection, as the writer of its answers sees it.
class AnswerOutlet {
 public:
  virtual ~AnswerOutlet() = default;
  /// Sends bytes at once or buffers them.
  virtual void put(std::initializer_list<std::string_view> pieces) = 0;
  /// The answer is whole; its connection goes on, or ends once all has left.
  virtual void finish_answer() = 0;
};

/// What a request asks of its answer.
struct AnswerTerms {
  Persistence persistence = Persistence::kKeep;
  AnswerBody body = AnswerBody::kAsFramed;
  bool http11 = true;
  bool lingers = false;  ///< the client may still be sending when the answer has left
};

class AnswerWriter {
 public:
  AnswerWriter(WebServerShared& shared, WatchedSocket& socket, AnswerOutlet& outlet)
      : shared_(shared), socket_(socket), outlet_(outlet) {}

  /// Readies it for another answer.
  void prepare(const AnswerTerms& terms);
  /// The terms of the last answer; one that closes the connection says so.
  [[nodiscard]] const AnswerTerms& terms() const { return terms_; }
  [[nodiscard]] bool begun() const { return framing_ != Framing::kNone; }

  // The calls of an exchange, as http/web_server.hpp describes them.
  void respond(int status, std::span<const WebHeader> headers, std::string_view body);
  void begin(int status, std::span<const WebHeader> headers);
  void flush() { outlet_.put({}); }
  void send(std::string_view bytes);
  void end();

 private:
  enum class Framing : std::uint8_t { kNone, kWhole, kChunked, kToEnd };

  void start_head(int status, std::span<const WebHeader> headers);

  WebServerShared& shared_;
  WatchedSocket& socket_;
  AnswerOutlet& outlet_;
  AnswerTerms terms_;
  Framing framing_ = Framing::kNone;  ///< kNone: not begun
};

}  // namespace orrery
