// workload/requests/request_reader.hpp - traces of requests to models, read from their files.
//
//   azure     CSV: TIMESTAMP,ContextTokens,GeneratedTokens (Azure's traces of 2023 and 2024)
//   mooncake  a JSON object a line: timestamp (ms), input_length, output_length, hash_ids
//   servegen  CSV of rates: t_s,rate_req_per_s[,..]; requests and their lengths are drawn
//   orrery    a file of kind Requests (workload/requests/request_generator.hpp)
//
// Text or gzip, told apart by the first bytes. Pure but for load_requests(). Cost: O(bytes), and
// O(requests) where they are drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workload/requests/request_generator.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

enum class RequestFormat : std::uint8_t { kAzure, kMooncake, kServegen, kOrrery };

inline std::array<EnumWord<RequestFormat>, 4> enum_words(RequestFormat) {
  return {{{"azure", RequestFormat::kAzure},
           {"mooncake", RequestFormat::kMooncake},
           {"servegen", RequestFormat::kServegen},
           {"orrery", RequestFormat::kOrrery}}};
}

struct RequestOptions {
  std::optional<RequestFormat> format;  ///< none: guessed from the first line
  std::uint64_t seed = 1;               ///< of what is drawn
};

/// Errors, with file:line:column: no known format, a column or key missing, a row that does not
/// fit, times that go back, no request at all. A file of kind Requests that names a file of rates
/// needs load_requests().
[[nodiscard]] Result<RequestTrace> read_requests(std::string_view bytes, const std::string& file,
                                                 const RequestOptions& options);
/// Reads a file, and the file of rates that one of kind Requests names, beside it.
[[nodiscard]] Result<RequestTrace> load_requests(const std::string& path,
                                                 const RequestOptions& options);

/// Reads rates by time, as ServeGen's: t_s,rate_req_per_s. Errors, with file:line:column.
[[nodiscard]] Result<std::vector<RateWindow>> read_rates(std::string_view bytes,
                                                         const std::string& file);

}  // namespace orrery
