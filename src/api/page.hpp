// api/page.hpp - the page of a list that a request asks for.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace orrery {

inline constexpr std::uint32_t kPageUsual = 100;
inline constexpr std::uint32_t kPageMost = 1000;

/// The rows of a page: so many of those numbered from `first` on.
struct Page {
  std::uint64_t first = 0;
  std::uint32_t size = kPageUsual;
};

template <class Request>
Result<Page> page_of(const Request& request) {
  Page page;
  if (request.page_size() > kPageMost) {
    return input_error(
        {}, fmt::format("page_size is {}, expected at most {}", request.page_size(), kPageMost));
  }
  if (request.page_size() > 0) page.size = request.page_size();
  const std::string& token = request.page_token();
  if (token.empty()) return page;
  const char* end = token.data() + token.size();
  const auto [at, wrong] = std::from_chars(token.data(), end, page.first);
  if (wrong != std::errc() || at != end) {
    return input_error(
        {}, fmt::format("page_token is \"{}\", expected the next_page_token of an earlier page",
                        token));
  }
  return page;
}

}  // namespace orrery
