// base/format/gzip.hpp - inflates text that is compressed by gzip (RFC 1952), with zlib.
//
// Pure: bytes in, bytes out. A reader of a file calls is_gzip() on its first bytes, so that the
// name of the file decides nothing. Cost: O(bytes), about 300 MB/s of output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace orrery {

/// Whether the bytes begin as every gzip file does.
[[nodiscard]] bool is_gzip(std::string_view bytes);

/// Inflates one member or several consecutive ones. Errors (without position): the bytes are no
/// gzip, end too early, are damaged (by their checksum), or inflate to more than `size_max` bytes.
[[nodiscard]] Result<std::string> gunzip(std::string_view bytes, std::size_t size_max);

}  // namespace orrery
