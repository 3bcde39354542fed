// How fast events are encoded and decoded, compared with a copy of the same bytes.
#include <cstring>
#include <limits>
#include <vector>

#include "base/format/checksum.hpp"
#include "base/format/xxh3.hpp"
#include "bench/figure.hpp"
#include "control/codec/codec.hpp"
#include "control/log/journal.hpp"

namespace orrery {
namespace {

// Short rounds, so that the best of them was not interrupted.
constexpr int kTimes = 5'000;
constexpr int kRounds = 200;

/// A training job that may have three sizes on each of two types.
Event submission() {
  JobSubmitted event{.job = JobId(123'456), .request_id = "7b0f2c1e-4d1d-4c7b-9b9a-0d5d9f6d2a11"};
  JobRequest& request = event.submission.request;
  request.name = "llama-70b-pretrain-17";
  request.kind = JobKind::kTrain;
  request.tenant = TenantId(12);
  request.time_limit = Duration::hours(48);
  request.checkpoint_interval = Duration::minutes(20);
  request.checkpoint_cost = Duration::seconds(15);
  request.restart = Duration::minutes(5);
  request.class_id = ClassId(311);
  RoleRequest role{.name = "main", .devices_min = 64, .devices_max = 256, .work = WorkId(3)};
  role.steps = 100'000;
  for (const std::uint32_t type : {0u, 1u}) {
    for (const std::uint32_t devices : {256u, 128u, 64u}) {
      GangOption option;
      option.gang = {.type = FleetTypeId(type),
                     .devices = devices,
                     .node_devices = 8,
                     .host = {.cpu = 12'000, .memory = 128 << 10},
                     .sites = 0b111};
      option.plan = PlanKey{WorkId(3), FleetTypeId(type), devices};
      role.options.push_back(option);
    }
  }
  request.roles.push_back(std::move(role));
  return event;
}

/// The start of a gang on this many whole nodes.
Event start(std::uint32_t nodes) {
  JobStarted event{.job = JobId(123'456), .attempt = 1, .expected = Duration::hours(30)};
  PlacedGang gang{.host = {.cpu = 12'000, .memory = 128 << 10}};
  for (std::uint32_t node = 0; node < nodes; ++node) {
    gang.allocation.ranks.push_back({NodeId(5'000 + node), 0xff});
  }
  event.gangs.push_back(std::move(gang));
  event.terms.push_back({.length = Duration::hours(30), .ratio = 1.02, .draw = Watts(1180)});
  return event;
}

template <class Call>
double nanoseconds_each(Call&& call) {
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    best = std::min(best, seconds_of([&] {
                      for (int i = 0; i < kTimes; ++i) call();
                    }));
  }
  return best / kTimes * 1e9;
}

struct Subject {
  std::string name;
  Event event;
  std::optional<double> target;
};

void measure(const Subject& subject) {
  Encoder encoder;
  const double encoding = nanoseconds_each([&] {
    encoder.clear();
    encode(subject.event, encoder);
  });
  const std::string bytes(encoder.bytes());
  std::vector<char> copy(bytes.size());
  const double copying = nanoseconds_each([&] {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    asm volatile("" : : "r"(copy.data()) : "memory");
  });
  const std::string name = fmt::format("{} of {} bytes", subject.name, bytes.size());
  print_figure({.bench = "codec",
                .name = "encode " + name,
                .value = encoding,
                .unit = "ns",
                .target = subject.target,
                .peer = "memcpy of the bytes",
                .peer_value = copying});
  const double decoding = nanoseconds_each([&] {
    const auto event = decode_event({.type = subject.event.index(), .fields = bytes});
    if (!event) std::abort();
  });
  print_figure({.bench = "codec", .name = "decode " + name, .value = decoding, .unit = "ns"});
  Journal journal;
  const double appending =
      nanoseconds_each([&] { journal.append(Instant::from_ns(1), subject.event); });
  print_figure({.bench = "codec", .name = "hash " + name, .value = appending, .unit = "ns"});
}

void measure_checksum() {
  const std::string bytes(1 << 14, 'x');
  std::uint64_t chain = 0;
  const double earlier = nanoseconds_each([&] { chain = checksum(bytes, chain); });
  const double present = nanoseconds_each([&] { chain = xxh3(bytes, chain); });
  if (chain == 0) std::abort();
  print_figure({.bench = "codec",
                .name = "checksum",
                .value = present / (1 << 10),
                .unit = "ns per 16 bytes",
                .peer = "the checksum of journals of format 1",
                .peer_value = earlier / (1 << 10)});
}

}  // namespace
}  // namespace orrery

int main() {
  using namespace orrery;
  measure({"JobSubmitted", submission(), 300});
  measure({"JobRunning", JobRunning{JobId(123'456)}, 50});
  measure({"NodeChanged",
           NodeChanged{NodeId(1'234),
                       NodeHealth::kLost,
                       {FaultLayer::kHost, NodeId(1'234), "5 heartbeats missed"}},
           50});
  measure({"JobStarted on 1 node", start(1), std::nullopt});
  measure({"JobStarted on 512 nodes", start(512), std::nullopt});
  measure_checksum();
}
