// base/gzip.hpp - text that came compressed by gzip (RFC 1952), inflated by zlib.
//
// Pure: bytes in, bytes out. Whoever reads a file asks is_gzip() of its first bytes, so that the
// name of the file decides nothing. Cost: O(bytes), about 300 MB/s of what comes out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace orrery {

/// Whether the bytes begin as every gzip file does.
[[nodiscard]] bool is_gzip(std::string_view bytes);

/// What was compressed, of one member or of several behind each other. Errors (without position):
/// the bytes are no gzip, end too early, are damaged (by their checksum), or hold more than
/// `size_max` bytes, however few they are themselves.
[[nodiscard]] Result<std::string> gunzip(std::string_view bytes, std::size_t size_max);

}  // namespace orrery
