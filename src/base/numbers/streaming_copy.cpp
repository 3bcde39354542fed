#include "base/numbers/streaming_copy.hpp"

#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace orrery {

#ifdef __SSE2__

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;  ///< at once

void copy_line(char* to, const std::byte* from) {
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  auto* const target = reinterpret_cast<__m128i*>(to);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

}  // namespace

void streaming_copy(char* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kGroup = kPages * kPage;
  std::size_t at = 0;
  for (; at + 2 * kGroup <= bytes; at += kGroup) {
    for (std::size_t line = at; line < at + kPage; line += kLine) {
      for (std::size_t page = 0; page < kGroup; page += kPage) {
        _mm_prefetch(from + line + page + kGroup, _MM_HINT_T0);
        copy_line(to + line + page, from + line + page);
      }
    }
  }
  for (; at + kLine <= bytes; at += kLine) copy_line(to + at, from + at);
  _mm_sfence();
  if (bytes > at) std::memcpy(to + at, from + at, bytes - at);
}

#else

void streaming_copy(char* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#endif

}  // namespace orrery
