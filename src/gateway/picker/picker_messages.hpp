// gateway/picker/picker_messages.hpp - what an endpoint picker reads of Envoy's messages, and the
// messages that it answers.
//
// Functions over values; the names of headers and metadata are those of the Gateway API Inference
// Extension's endpoint picker protocol.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/error_answer.hpp"
#include "http/web_headers.hpp"
#include "orrery/ext_proc.pb.h"

namespace orrery {

namespace ext_proc = envoy::service::ext_proc::v3;

/// The first value of a header, which Envoy names in lower case; none: it is absent.
[[nodiscard]] std::optional<std::string_view> header_of(const ext_proc::HttpHeaders& headers,
                                                        std::string_view name);

/// The endpoints from which a picker must choose; none: any.
[[nodiscard]] std::optional<std::vector<std::string>> subset_of(
    const ext_proc::ProcessingRequest& message);
/// The endpoint that served a request; empty: Envoy does not say.
[[nodiscard]] std::string_view served_of(const ext_proc::ProcessingRequest& message);

/// Adds a header to a mutation in the place of those of its name.
void set_header(ext_proc::HeaderMutation& mutation, std::string_view name, std::string_view value);

/// Where a request goes.
struct PickedRoute {
  std::string endpoints;  ///< "IP:PORT[,IP:PORT..]", the ones behind the first are fallbacks
  std::string_view request_id;
  enum class Authorization : std::uint8_t { kStays, kRemoved } authorization;
};

/// Puts a route into an answer: into `common`, a part of `answer`, and its dynamic metadata.
void set_route(const PickedRoute& route, ext_proc::ProcessingResponse& answer,
               ext_proc::CommonResponse& common);

/// An answer to the client in the place of a replica's.
[[nodiscard]] ext_proc::ProcessingResponse immediate_answer(int status,
                                                            std::span<const WebHeader> headers,
                                                            std::string_view body);

/// Whether a stream of pieces of a body ends with their last one.
enum class BodyEnd : std::uint8_t { kOpen, kEnded };

/// A body in pieces that Envoy takes, at least one.
[[nodiscard]] std::vector<ext_proc::StreamedBodyResponse> pieces_of(std::string_view body,
                                                                    BodyEnd end);

}  // namespace orrery
