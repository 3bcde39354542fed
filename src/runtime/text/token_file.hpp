// runtime/text/token_file.hpp - the tokens of a text in a file that all ranks of a node map.
//
// A header of 80 bytes, then the tokens (TokenArray). The header, little endian: "orrtok1\n", the
// key (32 bytes), bytes of a token (4), kinds of tokens (4), tokens (8), the checksum of the tokens
// (8), 8 bytes that are zero, the checksum of all these (8). It is written last, so a torn file has
// none. One writer, any number of readers; a file that was finished is never written again. Cost of
// opening: reads the whole file once, which also brings it into the node's memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/text/token_array.hpp"

namespace orrery {

/// Identifies the tokens: SHA-256 of text and tokenizer, and the number of kinds of tokens.
struct TokenFileKey {
  std::array<unsigned char, 32> digest{};
  std::int64_t kinds = 0;
};

/// Opens a file. Errors: no such file; one that is torn, damaged, of another key, or contains an
/// invalid token.
[[nodiscard]] Result<TokenArray> open_token_file(const std::string& path, const TokenFileKey& key);

/// Writes a token file, from the start of an open file that is empty. Borrows the descriptor.
class TokenFileWriter {
 public:
  TokenFileWriter(int descriptor, const TokenFileKey& key);

  /// Errors: the system's reason, such as a full disk.
  [[nodiscard]] Status append(std::span<const std::int32_t> tokens);
  /// Returns when the appended tokens would survive a loss of power.
  [[nodiscard]] Status finish();

 private:
  [[nodiscard]] Status write(std::uint64_t offset, std::string_view bytes) const;
  [[nodiscard]] Status write_block(std::size_t size);

  int descriptor_;
  TokenFileKey key_;
  std::size_t width_;
  std::string waiting_;  ///< packed, not written yet
  std::uint64_t written_ = 0;
  std::uint64_t checksum_ = 0;
};

}  // namespace orrery
