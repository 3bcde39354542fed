#include "runtime/text/token_array.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/little_endian.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kShort = std::int64_t{1} << 16;

template <class Word>
void pack(std::span<const std::int32_t> tokens, std::string& to) {
  const std::size_t before = to.size();
  to.resize(before + tokens.size() * sizeof(Word));
  char* at = to.data() + before;
  for (const std::int32_t token : tokens) {
    store_little_endian(static_cast<Word>(token), at);
    at += sizeof(Word);
  }
}

template <class Word>
void unpack(const char* from, std::span<std::int32_t> out) {
  for (std::int32_t& token : out) {
    token = static_cast<std::int32_t>(load_little_endian<Word>(from));
    from += sizeof(Word);
  }
}

template <class Word>
std::int64_t highest_of(std::span<const char> bytes) {
  std::int64_t most = -1;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Word)) {
    most = std::max<std::int64_t>(most, load_little_endian<Word>(bytes.data() + at));
  }
  return most;
}

}  // namespace

std::size_t token_width(std::int64_t kinds) {
  return kinds <= kShort ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
}

void pack_tokens(std::span<const std::int32_t> tokens, std::size_t width, std::string& to) {
  width == sizeof(std::uint16_t) ? pack<std::uint16_t>(tokens, to)
                                 : pack<std::uint32_t>(tokens, to);
}

TokenArray TokenArray::of(std::string bytes, std::size_t width) {
  const auto kept = std::make_shared<const std::string>(std::move(bytes));
  return {kept, std::span(kept->data(), kept->size()), width};
}

void TokenArray::read(std::int64_t begin, std::span<std::int32_t> out) const {
  ORRERY_ASSERT(begin >= 0 && begin + static_cast<std::int64_t>(out.size()) <= size(),
                "the tokens are there");
  const char* from = bytes_.data() + static_cast<std::size_t>(begin) * width_;
  width_ == sizeof(std::uint16_t) ? unpack<std::uint16_t>(from, out)
                                  : unpack<std::uint32_t>(from, out);
}

std::int64_t TokenArray::highest() const {
  return width_ == sizeof(std::uint16_t) ? highest_of<std::uint16_t>(bytes_)
                                         : highest_of<std::uint32_t>(bytes_);
}

}  // namespace orrery
