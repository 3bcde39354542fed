#include "verbs/service_simulation/request_option.hpp"

#include "verbs/option_text.hpp"
#include "workload/requests/request_reader.hpp"

namespace orrery {

Result<RequestTrace> load_request_option(const RequestOption& asked) {
  std::string path = asked.requests;
  RequestOptions options{.seed = asked.seed};
  const std::size_t colon = path.rfind(':');
  if (colon != std::string::npos) {
    Result<RequestFormat> format = word_option<RequestFormat>("requests", path.substr(colon + 1));
    if (!format) return forward_error(format);
    options.format = *format;
    path.resize(colon);
  }
  const auto text = asked.files.texts.find(path);
  Result<RequestTrace> trace = text == asked.files.texts.end()
                                   ? load_requests(asked.files.path(path), options)
                                   : read_requests(text->second, text->first, options);
  if (!trace || asked.half.empty()) return trace;
  Result<TraceHalf> half = word_option<TraceHalf>("half", asked.half);
  if (!half) return forward_error(half);
  keep_half(*trace, *half);
  if (trace->requests.empty()) return wrong("half", "it has no request");
  return trace;
}

}  // namespace orrery
