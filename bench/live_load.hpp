// bench/live_load.hpp - clients that load a controller for a benchmark.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "api/grpc/client.hpp"
#include "bench/figure.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

inline constexpr int kLoadClients = 64;
/// Load under which a user's call has to be quick.
inline constexpr double kLoadPerSecond = 2'000;

template <class Response>
Response call_or_exit(Client& client, const char* method,
                      const google::protobuf::MessageLite& request) {
  Result<Response> answer = client.call<Response>(method, request);
  if (answer) return *std::move(answer);
  fmt::print(stderr, "benchmark: {}: {}\n", method, answer.error().text());
  std::exit(1);
}

/// Jobs that do nothing, on this many accelerators each: one, or an array of them.
struct LoadJob {
  std::uint32_t accelerators = 8;
  int count = 1;
  std::string command = R"("true")";  ///< its words
  std::string more;                   ///< further lines of its file
};

inline void pause(double seconds) { (void)::usleep(static_cast<useconds_t>(seconds * 1e6)); }

inline std::uint64_t submit_load(Client& client, const std::string& request, const LoadJob& job) {
  v1::SubmitJobRequest asked;
  asked.set_request_id(request);
  asked.set_spec(
      fmt::format("apiVersion: orrery/v1\nkind: Batch\nname: bench\n"
                  "roles: [{{accelerators: {}}}]\nlaunch: {{command: [{}]}}\n{}{}",
                  job.accelerators, job.command, job.more,
                  job.count > 1 ? fmt::format("array: {{count: {}}}\n", job.count) : ""));
  return call_or_exit<v1::SubmitJobResponse>(client, "SubmitJob", asked).id();
}

struct LoadResult {
  double rate = 0;  ///< submissions a second
  double read_p99_ms = 0;
};

/// The joint submissions of the 64 clients.
struct Load {
  std::string name;  ///< of their requests, which no other load of the cluster has
  int submissions = 0;
  double per_second = std::numeric_limits<double>::infinity();  ///< at most so many
};

/// 64 clients that submit, and one that lists 100 jobs repeatedly.
template <class MakeClient>
LoadResult submit_together(const MakeClient& make_client, const Load& load) {
  std::atomic<int> next = 0;
  std::atomic<bool> over = false;
  std::vector<double> reads;
  std::thread reader([&] {
    const std::unique_ptr<Client> client = make_client();
    v1::ListJobsRequest asked;
    asked.set_page_size(100);
    while (!over) {
      reads.push_back(seconds_of(
          [&] { (void)call_or_exit<v1::ListJobsResponse>(*client, "ListJobs", asked); }));
    }
  });
  std::vector<std::thread> clients;
  clients.reserve(kLoadClients);
  const RealClock clock;
  const Instant begin = clock.now_monotonic();
  const double seconds = seconds_of([&] {
    for (int at = 0; at < kLoadClients; ++at) {
      clients.emplace_back([&] {
        const std::unique_ptr<Client> client = make_client();
        for (int i = next++; i < load.submissions; i = next++) {
          const double early =
              i / load.per_second - (clock.now_monotonic() - begin).count_seconds();
          if (early > 0) pause(early);
          (void)submit_load(*client, fmt::format("{}-{}", load.name, i), {});
        }
      });
    }
    for (std::thread& client : clients) client.join();
  });
  over = true;
  reader.join();
  std::sort(reads.begin(), reads.end());
  return {load.submissions / seconds, reads[reads.size() * 99 / 100] * 1e3};
}

}  // namespace orrery
