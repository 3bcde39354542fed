#include "tokens/incremental_decoder.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

/// Bytes at the end of a text that may begin `stop`.
std::size_t open_tail(std::string_view text, std::string_view stop) {
  for (std::size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size) {
    if (text.ends_with(stop.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

IncrementalDecoder::IncrementalDecoder(const Tokenizer& tokenizer, Options options)
    : joiner_(tokenizer, options.special), stops_(std::move(options.stops)) {
  std::erase(stops_, "");
}

std::string IncrementalDecoder::add(std::int32_t token) {
  if (stop_) return {};
  joiner_.add(token, held_);
  return release(End::kOpen);
}

std::string IncrementalDecoder::finish() {
  if (stop_) return {};
  joiner_.finish(held_);
  return release(End::kFinal);
}

std::string IncrementalDecoder::release(End end) {
  std::size_t begin = std::string::npos;
  std::size_t complete = std::string::npos;
  std::size_t open = 0;
  for (const std::string& stop : stops_) {
    const std::size_t at = held_.find(stop);
    if (end == End::kOpen) open = std::max(open, open_tail(held_, stop));
    if (at == std::string::npos) continue;
    if (std::pair(at + stop.size(), at) < std::pair(complete, begin)) {
      begin = at;
      complete = at + stop.size();
      stop_ = stop;
    }
  }
  std::string text = held_.substr(0, stop_ ? begin : held_.size() - open);
  held_.erase(0, stop_ ? held_.size() : text.size());
  return text;
}

}  // namespace orrery
