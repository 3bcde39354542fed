// http/message_parser.hpp - HTTP/1.x messages out of bytes as they arrive, by Boost.Beast's parser.
//
// A connection owns one parser and begins it anew for each message. Bytes may arrive in any pieces:
// what read() has not consumed is given again in front of what follows. The parser keeps no bytes;
// head and body go to the message that begin() names, which outlives the reading. No exceptions.
// Invariant: after kDone or a fault no byte is consumed. Cost: O(bytes), one copy of the body.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http/web_client.hpp"
#include "http/web_request.hpp"

namespace orrery {

struct MessageLimits {
  std::size_t header_bytes_max = std::size_t{64} << 10;
  std::uint64_t body_bytes_max = std::uint64_t{16} << 20;
};

enum class MessagePart : std::uint8_t {
  kHead,  ///< some of the head is missing
  kBody,  ///< the head is complete
  kDone,
  kFault,
};

enum class MessageFault : std::uint8_t { kNone, kMalformed, kHeaderTooLarge, kBodyTooLarge };

/// How to go on with the connection after a message.
enum class Persistence : std::uint8_t { kKeep, kClose };

class RequestParser {
 public:
  explicit RequestParser(const MessageLimits& limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// Begins a message, of which nothing is read yet. `request` is empty, and filled by read().
  void begin(WebRequest& request);
  /// Returns the number of bytes consumed. Precondition: begun.
  [[nodiscard]] std::size_t read(std::string_view bytes);

  [[nodiscard]] MessagePart part() const;
  [[nodiscard]] MessageFault fault() const;
  /// What is wrong with the message, for a person.
  [[nodiscard]] std::string fault_text() const;
  /// Whether the client wants the connection kept. Precondition: the head is complete.
  [[nodiscard]] Persistence persistence() const;
  /// Whether the client understands HTTP/1.1. Precondition: the head is complete.
  [[nodiscard]] bool is_http11() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether the answer has a body by the method of its request.
enum class AnswerBody : std::uint8_t { kAsFramed, kNone };

class ResponseParser {
 public:
  explicit ResponseParser(const MessageLimits& limits);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  /// Begins an answer, interim ones (1xx) as well. `head` is empty.
  void begin(WebResponseHead& head, AnswerBody body);
  /// Returns the number of bytes consumed; appends the bytes of the body to `body`.
  [[nodiscard]] std::size_t read(std::string_view bytes, std::string& body);
  /// The end of the connection, which may end the body. Returns whether the answer is complete.
  [[nodiscard]] bool finish();

  [[nodiscard]] MessagePart part() const;
  [[nodiscard]] std::string fault_text() const;
  [[nodiscard]] Persistence persistence() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery
