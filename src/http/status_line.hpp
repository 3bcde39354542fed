// http/status_line.hpp - the head of an HTTP/1.1 message as text.
//
// Functions that append to a string which its owner keeps for the next head. What would end a line
// of the head early is left out.
#pragma once

#include <string>
#include <string_view>

#include "http/web_headers.hpp"

namespace orrery {

/// The words of a status, "OK"; "Status" for one without words here.
[[nodiscard]] std::string_view reason_of_status(int status);
void append_status_line(std::string& head, int status);
/// Appends "name: value" and the end of the line; nothing where either holds CR, LF or NUL.
void append_header(std::string& head, const WebHeader& header);
void append_content_length(std::string& head, std::size_t size);

}  // namespace orrery
