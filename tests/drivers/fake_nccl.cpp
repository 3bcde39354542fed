// A stand-in for NCCL and the CUDA runtime in one library, on memory of this process: ranks are its
// threads. An operation is done when its last rank has queued it, whichever rank asks.
// `fake_nccl_fail` makes later queries fail; `fake_nccl_aborted` counts aborts; `fake_nccl_open`
// counts what is neither aborted nor destroyed.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace {

constexpr int kInvalidArgument = 4;
constexpr int kInProgress = 7;

struct Stream {
  int queued = 0;
};

struct Clique;
struct Comm {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  std::size_t operations = 0;
  bool finalized = false;
};

enum class What { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

/// A rank's part of an operation.
struct Part {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;
  int type = 0;
  Stream* stream = nullptr;
};

struct Operation {
  What what = What::kAllReduce;
  int root = 0;
  std::map<int, Part> parts;
};

struct Clique {
  int ranks = 0;
  int joined = 0;
  int finalized = 0;
  std::map<std::size_t, Operation> operations;
  std::map<std::pair<int, int>, std::deque<Part>> sent;
  std::map<std::pair<int, int>, std::deque<Part>> awaited;
};

std::mutex mutex;
std::map<std::uint64_t, std::shared_ptr<Clique>> cliques;
std::uint64_t last_id = 0;
int failure = 0;
int aborted = 0;
std::map<Comm*, std::unique_ptr<Comm>> comms;
std::map<Stream*, std::unique_ptr<Stream>> streams;

std::size_t bytes_of(int type) { return type == 9 ? 2 : type == 1 ? 1 : 4; }

template <class Element>
void add(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Element one{};
    Element sum{};
    std::memcpy(&one, from + i * sizeof one, sizeof one);
    std::memcpy(&sum, to + i * sizeof sum, sizeof sum);
    sum = static_cast<Element>(sum + one);
    std::memcpy(to + i * sizeof sum, &sum, sizeof sum);
  }
}

void add_bfloat16(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t halves[2];
    std::memcpy(&halves[0], from + 2 * i, 2);
    std::memcpy(&halves[1], to + 2 * i, 2);
    float values[2];
    for (int side = 0; side < 2; ++side) {
      const std::uint32_t bits = std::uint32_t{halves[side]} << 16;
      std::memcpy(&values[side], &bits, sizeof bits);
    }
    const float sum = values[0] + values[1];
    std::uint32_t bits = 0;
    std::memcpy(&bits, &sum, sizeof bits);
    const auto half = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(to + 2 * i, &half, 2);
  }
}

void add_all(int type, const std::byte* from, std::byte* to, std::size_t count) {
  if (type == 7) return add<float>(from, to, count);
  if (type == 2) return add<std::uint32_t>(from, to, count);
  add_bfloat16(from, to, count);
}

void carry_out(Operation& operation) {
  const Part& any = operation.parts.begin()->second;
  const std::size_t bytes = any.count * bytes_of(any.type);
  const std::size_t ranks = operation.parts.size();
  // What is read is copied first: operations are in place.
  std::vector<std::byte> whole;
  if (operation.what == What::kBroadcast) {
    whole.assign(operation.parts[operation.root].in, operation.parts[operation.root].in + bytes);
  } else if (operation.what == What::kAllGather) {
    for (const auto& [rank, part] : operation.parts) {
      whole.insert(whole.end(), part.in, part.in + bytes);
    }
  } else {
    const std::size_t parts = operation.what == What::kReduceScatter ? ranks : 1;
    whole.resize(bytes * parts);
    for (const auto& [rank, part] : operation.parts) {
      if (rank == 0) {
        std::memcpy(whole.data(), part.in, whole.size());
      } else {
        add_all(any.type, part.in, whole.data(), any.count * parts);
      }
    }
  }
  for (auto& [rank, part] : operation.parts) {
    if (operation.what == What::kReduceScatter) {
      std::memcpy(part.out, whole.data() + static_cast<std::size_t>(rank) * bytes, bytes);
    } else {
      std::memcpy(part.out, whole.data(), whole.size());
    }
    --part.stream->queued;
  }
}

int queue(Comm* comm, What what, int root, const Part& part) {
  const std::lock_guard lock(mutex);
  Clique& clique = *comm->clique;
  if (clique.joined < clique.ranks) return kInvalidArgument;  // not before it is ready
  ++part.stream->queued;
  Operation& operation = clique.operations[comm->operations];
  operation.what = what;
  operation.root = root;
  operation.parts[comm->rank] = part;
  if (static_cast<int>(operation.parts.size()) == clique.ranks) {
    carry_out(operation);
    clique.operations.erase(comm->operations);
  }
  ++comm->operations;
  return kInProgress;
}

void match(Clique& clique, std::pair<int, int> way) {
  auto& sent = clique.sent[way];
  auto& awaited = clique.awaited[way];
  while (!sent.empty() && !awaited.empty()) {
    std::memcpy(awaited.front().out, sent.front().in,
                sent.front().count * bytes_of(sent.front().type));
    --sent.front().stream->queued;
    --awaited.front().stream->queued;
    sent.pop_front();
    awaited.pop_front();
  }
}

struct UniqueId {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

}  // namespace

extern "C" {

int ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(mutex);
  ++last_id;
  std::memcpy(id->bytes, &last_id, sizeof last_id);
  return 0;
}

int ncclCommInitRankConfig(Comm** comm, int ranks, UniqueId id, int rank, const Config* config) {
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->size < sizeof *config) {
    return kInvalidArgument;
  }
  const std::lock_guard lock(mutex);
  std::uint64_t key = 0;
  std::memcpy(&key, id.bytes, sizeof key);
  auto& clique = cliques[key];
  if (clique == nullptr) clique = std::make_shared<Clique>();
  clique->ranks = ranks;
  ++clique->joined;
  auto made = std::make_unique<Comm>(Comm{clique, rank});
  *comm = made.get();
  comms[made.get()] = std::move(made);
  return kInProgress;
}

int ncclCommGetAsyncError(Comm* comm, int* state) {
  const std::lock_guard lock(mutex);
  const Clique& clique = *comm->clique;
  const bool ready =
      comm->finalized ? clique.finalized == clique.ranks : clique.joined == clique.ranks;
  *state = failure != 0 ? failure : ready ? 0 : kInProgress;
  return 0;
}

int ncclCommFinalize(Comm* comm) {
  const std::lock_guard lock(mutex);
  comm->finalized = true;
  ++comm->clique->finalized;
  return kInProgress;
}

int ncclCommDestroy(Comm* comm) {
  const std::lock_guard lock(mutex);
  comms.erase(comm);
  return 0;
}

int ncclCommAbort(Comm* comm) {
  const std::lock_guard lock(mutex);
  comms.erase(comm);
  ++aborted;
  return 0;
}

const char* ncclGetErrorString(int code) {
  return code == 6 ? "remote process exited" : "another error";
}

int ncclGroupStart() { return 0; }
int ncclGroupEnd() { return 0; }

int ncclAllReduce(const std::byte* in, std::byte* out, std::size_t count, int type, int op,
                  Comm* comm, Stream* stream) {
  if (op != 0) return kInvalidArgument;
  return queue(comm, What::kAllReduce, 0, {in, out, count, type, stream});
}

int ncclReduceScatter(const std::byte* in, std::byte* out, std::size_t count, int type, int op,
                      Comm* comm, Stream* stream) {
  if (op != 0) return kInvalidArgument;
  return queue(comm, What::kReduceScatter, 0, {in, out, count, type, stream});
}

int ncclAllGather(const std::byte* in, std::byte* out, std::size_t count, int type, Comm* comm,
                  Stream* stream) {
  return queue(comm, What::kAllGather, 0, {in, out, count, type, stream});
}

int ncclBroadcast(const std::byte* in, std::byte* out, std::size_t count, int type, int root,
                  Comm* comm, Stream* stream) {
  return queue(comm, What::kBroadcast, root, {in, out, count, type, stream});
}

int ncclSend(const std::byte* in, std::size_t count, int type, int peer, Comm* comm,
             Stream* stream) {
  const std::lock_guard lock(mutex);
  ++stream->queued;
  comm->clique->sent[{comm->rank, peer}].push_back({in, nullptr, count, type, stream});
  match(*comm->clique, {comm->rank, peer});
  return 0;
}

int ncclRecv(std::byte* out, std::size_t count, int type, int peer, Comm* comm, Stream* stream) {
  const std::lock_guard lock(mutex);
  ++stream->queued;
  comm->clique->awaited[{peer, comm->rank}].push_back({nullptr, out, count, type, stream});
  match(*comm->clique, {peer, comm->rank});
  return 0;
}

int cudaSetDevice(int device) { return device < 8 ? 0 : 101; }

int cudaStreamCreateWithFlags(Stream** stream, unsigned flags) {
  if (flags != 1) return 1;
  const std::lock_guard lock(mutex);
  auto made = std::make_unique<Stream>();
  *stream = made.get();
  streams[made.get()] = std::move(made);
  return 0;
}

int cudaStreamQuery(Stream* stream) {
  const std::lock_guard lock(mutex);
  return stream->queued == 0 ? 0 : 600;
}

int cudaStreamDestroy(Stream* stream) {
  const std::lock_guard lock(mutex);
  streams.erase(stream);
  return 0;
}

void fake_nccl_fail(int code) {
  const std::lock_guard lock(mutex);
  failure = code;
}

int fake_nccl_aborted() {
  const std::lock_guard lock(mutex);
  return std::exchange(aborted, 0);
}

int fake_nccl_open() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(comms.size());
}

}  // extern "C"
