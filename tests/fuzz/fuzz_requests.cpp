// tests/fuzz/fuzz_requests.cpp - any bytes as requests to models, rates, a file of kind Requests or
// the pace of an engine: the first byte picks which. Requests that are read are written and read
// again, and where they are few they are played: each ends once.
#include <array>

#include "base/assert.hpp"
#include "tests/fuzz/first_byte.hpp"
#include "twin/serving/pace_file.hpp"
#include "twin/serving/service_run.hpp"
#include "workload/requests/request_reader.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPlayedMax = 50;

void play(const RequestTrace& trace) {
  ServiceSetup setup;
  setup.groups.push_back({.count = 2,
                          .rules = {.sequences_max = 4, .step_tokens = 512, .kv_blocks = 1000},
                          .cost = {.step_s = 0.01, .prompt_token_s = 1e-4}});
  const ServiceFigures figures = run_service(trace, setup);
  ORRERY_ASSERT(
      figures.all.completed + figures.all.shed + figures.all.failed == trace.requests.size(),
      "each request ends once");
}

void check(const Result<RequestTrace>& trace) {
  if (!trace) return;
  const Result<RequestTrace> again = read_requests(write_requests(*trace), "written", {});
  ORRERY_ASSERT(again, "what is written are requests");
  ORRERY_ASSERT(again->requests.size() == trace->requests.size(), "as many");
  ORRERY_ASSERT(again->blocks == trace->blocks, "with as many blocks");
  if (trace->requests.size() <= kPlayedMax) play(*trace);
}

void read_azure(std::string_view bytes) {
  check(read_requests(bytes, "fuzz", {.format = RequestFormat::kAzure}));
}
void read_mooncake(std::string_view bytes) {
  check(read_requests(bytes, "fuzz", {.format = RequestFormat::kMooncake}));
}
void read_rate_windows(std::string_view bytes) { static_cast<void>(read_rates(bytes, "fuzz")); }
void read_spec(std::string_view bytes) {
  const Result<Document> document = Document::parse(bytes, "fuzz");
  if (document) static_cast<void>(read_request_spec(*document));
}
void read_any_pace(std::string_view bytes) { static_cast<void>(read_pace(bytes, "fuzz")); }

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  constexpr std::array<TaggedReader, 5> kReaders = {{{'a', read_azure},
                                                     {'m', read_mooncake},
                                                     {'r', read_rate_windows},
                                                     {'s', read_spec},
                                                     {'p', read_any_pace}}};
  return read_by_first_byte(data, size, kReaders);
}
