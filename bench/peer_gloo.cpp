// The peer of bench_collectives over sockets: Gloo's all-reduce of float, in place, between two
// processes over its TCP transport on loopback; of its algorithms the fastest at each size.
// "bytes seconds" a line, the algorithm on standard error.
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/figure.hpp"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;

double median_of(gloo::Algorithm& algorithm, std::size_t bytes) {
  std::vector<double> each(bytes >= (4u << 20) ? 15 : 2000);
  for (double& seconds : each) seconds = orrery::seconds_of([&] { algorithm.run(); });
  const auto middle = each.begin() + static_cast<long>(each.size() / 2);
  std::nth_element(each.begin(), middle, each.end());
  return *middle;
}

void run_rank(int rank, const std::string& folder) {
  gloo::rendezvous::FileStore store(folder);
  const auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
  gloo::transport::tcp::attr attributes("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  for (const std::size_t bytes : {1u << 10, 16u << 10, 256u << 10, 4u << 20, 64u << 20}) {
    std::vector<float> values(bytes / sizeof(float), 1);
    const std::vector<float*> in_out{values.data()};
    const int count = static_cast<int>(values.size());
    double best = 0;
    const char* which = "";
    const auto measure = [&](const char* name, gloo::Algorithm&& algorithm) {
      const double seconds = median_of(algorithm, bytes);
      if (best != 0 && seconds >= best) return;
      best = seconds;
      which = name;
    };
    measure("ring", gloo::AllreduceRing<float>(context, in_out, count));
    measure("ring, chunked", gloo::AllreduceRingChunked<float>(context, in_out, count));
    measure("halving-doubling", gloo::AllreduceHalvingDoubling<float>(context, in_out, count));
    if (rank != 0) continue;
    std::printf("%zu %.9f\n", bytes, best);
    std::fprintf(stderr, "Gloo, %zu bytes: %s\n", bytes, which);
  }
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "peer_gloo_XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const pid_t other = ::fork();
  run_rank(other == 0 ? 1 : 0, folder);
  std::fflush(stdout);
  if (other == 0) ::_exit(0);
  int status = 0;
  ::waitpid(other, &status, 0);
  std::filesystem::remove_all(folder);
  return status == 0 ? 0 : 1;
}
