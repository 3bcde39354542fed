// runtime/text/token_array.hpp - many tokens in two or four bytes each, in memory or in a mapped
// file.
//
// Made by token_cache or token_file. A value that shares ownership of its memory; immutable, safe
// to read from every thread. Cost: copying copies a pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace orrery {

/// Returns the bytes of a token, lowest byte first: 2 if `kinds` of them fit, 4 otherwise.
[[nodiscard]] std::size_t token_width(std::int64_t kinds);

/// Appends the bytes of tokens to `to`. Precondition: each token fits into `width` bytes.
void pack_tokens(std::span<const std::int32_t> tokens, std::size_t width, std::string& to);

class TokenArray {
 public:
  /// `bytes` live as long as `owner`. Precondition: they are whole tokens.
  TokenArray(std::shared_ptr<const void> owner, std::span<const char> bytes, std::size_t width)
      : owner_(std::move(owner)), bytes_(bytes), width_(width) {}
  /// Makes an array of bytes from pack_tokens().
  [[nodiscard]] static TokenArray of(std::string bytes, std::size_t width);

  [[nodiscard]] std::int64_t size() const {
    return static_cast<std::int64_t>(bytes_.size() / width_);
  }
  /// Fills `out` with the tokens from `begin` on. Precondition: there are so many. O(tokens).
  void read(std::int64_t begin, std::span<std::int32_t> out) const;
  /// Returns the highest token; -1 if there are none. O(tokens).
  [[nodiscard]] std::int64_t highest() const;

 private:
  std::shared_ptr<const void> owner_;
  std::span<const char> bytes_;
  std::size_t width_;
};

}  // namespace orrery
