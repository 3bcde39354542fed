#include "base/format/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

// 16 more than the largest window: a gzip header is expected, not one of zlib's own.
constexpr int kGzipWindow = 15 + 16;

class Inflater {
 public:
  explicit Inflater(std::string_view bytes) : rest_(bytes) {
    ORRERY_ASSERT(inflateInit2(&stream_, kGzipWindow) == Z_OK, "zlib has memory for its window");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  // Appends the next bytes. Z_OK, Z_STREAM_END behind the last member, or zlib's error.
  int append_to(std::string& text) {
    if (stream_.avail_in == 0) feed();
    stream_.next_out = reinterpret_cast<Bytef*>(block_);
    stream_.avail_out = sizeof block_;
    int code = inflate(&stream_, Z_NO_FLUSH);
    text.append(block_, sizeof block_ - stream_.avail_out);
    if (code == Z_STREAM_END && (stream_.avail_in > 0 || !rest_.empty())) {
      code = inflateReset(&stream_);  // another member follows
    }
    return code;
  }

 private:
  // zlib counts in 32 bits.
  void feed() {
    const std::size_t size = std::min<std::size_t>(rest_.size(), 1u << 30);
    // zlib reads through this pointer and does not write; its type is older than const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
    stream_.avail_in = static_cast<uInt>(size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  z_stream stream_{};
  char block_[1 << 16];
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::size_t size_max) {
  std::string text;
  Inflater inflater(bytes);
  int code = Z_OK;
  while (code == Z_OK && text.size() <= size_max) code = inflater.append_to(text);
  if (text.size() > size_max) {
    return input_error(
        {},
        fmt::format("the gzip file holds more than {} MiB, expected at most that", size_max >> 20));
  }
  if (code == Z_BUF_ERROR) return input_error({}, "the gzip file ends too early: is it whole?");
  if (code != Z_STREAM_END) {
    return input_error({}, is_gzip(bytes) ? "the gzip file is damaged" : "this is no gzip file");
  }
  return text;
}

}  // namespace orrery
