#include "runtime/training/node_probe.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "base/numbers/rng.hpp"
#include "runtime/checkpoint/durable_file.hpp"
#include "runtime/checkpoint/prefaulted_memory.hpp"
#include "runtime/elastic/member_group.hpp"
#include "runtime/kernels/attention.hpp"
#include "runtime/trainer/adamw.hpp"
#include "runtime/trainer/gradient_norm.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

/// Rows and widths of the measured products: those of a micro-batch of a small job, and of small
/// models.
constexpr std::int64_t kRows = 512;
constexpr std::array<std::int64_t, 6> kWidths{64, 128, 192, 384, 768, 1536};

constexpr std::array<MeasuredAttention, 4> kAttentions{{
    {.sequence = 128, .heads = 8, .head_width = 32},
    {.sequence = 128, .heads = 4, .head_width = 64},
    {.sequence = 512, .heads = 8, .head_width = 32},

    {.sequence = 256, .heads = 4, .head_width = 128},
}};

/// One model of few layers and one of more are measured for each family.
constexpr std::array<TransformerFamily, 2> kFamilies{TransformerFamily::kGpt,
                                                     TransformerFamily::kLlama};
constexpr std::array<std::int64_t, 2> kLayers{1, 3};

constexpr std::size_t kSmallSum = 4096;

/// How much is measured, and for how long.
struct ProbeSizes {
  std::size_t products = kWidths.size();
  std::size_t attentions = kAttentions.size();
  std::int64_t width = 256;    ///< width of the measured models
  std::int64_t sequences = 4;  ///< sequences of a micro-batch
  std::int64_t sequence = 128;
  std::size_t copy_bytes = 16 << 20;
  std::size_t sum_bytes = 8 << 20;
  std::uint64_t write_bytes = 32 << 20;  ///< total of all ranks
  Duration window = Duration::milliseconds(60);
  int rounds = 3;
};

ProbeSizes sizes_of(ProbeEffort effort) {
  if (effort == ProbeEffort::kWhole) return {};
  return {.products = 3,
          .attentions = 2,
          .width = 128,
          .sequences = 1,
          .sequence = 64,
          .copy_bytes = 1 << 20,
          .sum_bytes = 1 << 18,
          .write_bytes = 1 << 20,
          .window = Duration::milliseconds(5),
          .rounds = 1};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Returns numbers of either sign, none so small that CPUs are slow with them (denormals);
/// generated quickly, because there are many.
AlignedFloats small_numbers(std::int64_t count) {
  AlignedFloats numbers(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& number : numbers) {
    state = state * 1'664'525 + 1'013'904'223;
    number = (static_cast<float>(state >> 24) - 127.5F) * 1e-4F;
  }
  return numbers;
}

/// The three products of one linear layer, with operands ordered as in the trainer.
class LinearPiece {
 public:
  LinearPiece(std::int64_t width, ProductPrecision precision)
      : width_(width),
        x_(small_numbers(kRows * width)),
        weight_(small_numbers(width * width)),
        out_(static_cast<std::size_t>(kRows * width)),
        gradient_(static_cast<std::size_t>(width * width)),
        products_(precision) {}

  void run() {
    const MatrixOperand x{x_.data(), width_};
    const MatrixOperand weight{weight_.data(), width_};
    multiply({kRows, width_, width_, x, weight, out_.data(), width_, 1, 1});
    multiply({width_, width_, kRows, turned(x), x, gradient_.data(), width_, 1, 1});
    multiply({kRows, width_, width_, x, turned(weight), out_.data(), width_, 1, 0});
  }

 private:
  static MatrixOperand turned(MatrixOperand operand) {
    operand.order = MatrixOperand::Order::kTransposed;
    return operand;
  }
  void multiply(const FloatProduct& product) { products_.multiply(product); }

  std::int64_t width_;
  AlignedFloats x_;
  AlignedFloats weight_;
  AlignedFloats out_;
  AlignedFloats gradient_;
  MatrixMultiplier products_;
};

class AttentionPiece {
 public:
  AttentionPiece(const MeasuredAttention& size, ProductPrecision precision)
      : time_(size.sequence),
        products_(precision),
        attention_(
            {.width = size.heads * size.head_width, .heads = size.heads, .sequence = size.sequence},
            products_),
        qkv_(small_numbers(3 * count(size))),
        out_(small_numbers(count(size))),
        gradient_(qkv_.size()),
        peak_(static_cast<std::size_t>(size.sequence * size.heads)),
        inverse_sum_(peak_.size()) {}

  void forward() { attention_.forward({1, time_}, rows()); }
  void backward() {
    attention_.backward({1, time_}, rows(), {.out = out_.data(), .qkv = gradient_.data()});
  }

 private:
  static std::int64_t count(const MeasuredAttention& size) {
    return size.sequence * size.heads * size.head_width;
  }
  AttentionRows rows() {
    return {.qkv = qkv_.data(),
            .out = out_.data(),
            .peak = peak_.data(),
            .inverse_sum = inverse_sum_.data()};
  }

  std::int64_t time_;
  MatrixMultiplier products_;
  CausalAttention attention_;
  AlignedFloats qkv_;
  AlignedFloats out_;
  AlignedFloats gradient_;
  AlignedFloats peak_;
  AlignedFloats inverse_sum_;
};

/// A micro-batch of random bytes, and an optimiser step on its gradient.
class ModelPiece {
 public:
  ModelPiece(const TransformerConfig& config, std::int64_t sequences)
      : model_(config, sequences),
        parameters_(small_numbers(static_cast<std::int64_t>(model_.layout().size()))),
        gradient_(parameters_),
        first_moment_(gradient_.size()),
        second_moment_(gradient_.size()),
        tokens_(static_cast<std::size_t>(sequences * (config.sequence + 1))) {
    Rng rng(2);
    const auto vocab = static_cast<std::uint64_t>(config.vocab);
    for (std::int32_t& token : tokens_) token = static_cast<std::int32_t>(rng.below(vocab));
  }

  [[nodiscard]] std::size_t weights() const { return parameters_.size(); }
  void gradient() { model_.loss_and_gradient(parameters_, tokens_, gradient_, 1); }
  /// Does a step with a learning rate of 0: the model does not change.
  void update() {
    const auto scale = static_cast<float>(clip_factor(gradient_norm(gradient_), 1));
    orrery::update({.weight_decay = 0}, model_.layout(),
                   {0, parameters_, gradient_, first_moment_, second_moment_},
                   {.rate = 0, .gradient_scale = scale});
  }

 private:
  TrainableTransformer model_;
  AlignedFloats parameters_;
  AlignedFloats gradient_;
  AlignedFloats first_moment_;
  AlignedFloats second_moment_;
  std::vector<std::int32_t> tokens_;
};

/// What is measured: the request, and the sizes for its effort.
struct Measuring {
  const NodeProbe& probe;
  ProbeSizes sizes;

  [[nodiscard]] TransformerConfig model(TransformerFamily family, std::int64_t layers) const {
    TransformerConfig config{.family = family,
                             .layers = layers,
                             .width = sizes.width,
                             .sequence = sizes.sequence,
                             .precision = probe.precision};
    if (family == TransformerFamily::kGpt) return config;
    config.ffn = sizes.width / 2 * 5;  // three matrices have about as many weights
    config.tied_embedding = false;
    return config;
  }
};

/// What a rank repeats, in the order in which take_pieces() reads the seconds per repetition.
class RankPieces {
 public:
  using Run = std::function<void()>;

  explicit RankPieces(const Measuring& measuring)
      : from_(measuring.sizes.copy_bytes, 'a'), to_(from_.size(), 'b') {
    const ProductPrecision precision = measuring.probe.precision;
    for (const std::int64_t width : std::span(kWidths).first(measuring.sizes.products)) {
      auto& linear = linears_.emplace_back(std::make_unique<LinearPiece>(width, precision));
      runs_.emplace_back([piece = linear.get()] { piece->run(); });
    }
    for (const MeasuredAttention& size : std::span(kAttentions).first(measuring.sizes.attentions)) {
      auto& one = attentions_.emplace_back(std::make_unique<AttentionPiece>(size, precision));
      runs_.emplace_back([piece = one.get()] { piece->forward(); });
      runs_.emplace_back([piece = one.get()] { piece->backward(); });
    }
    for (const TransformerFamily family : kFamilies) {
      for (const std::int64_t layers : kLayers) {
        auto& model = models_.emplace_back(std::make_unique<ModelPiece>(
            measuring.model(family, layers), measuring.sizes.sequences));
        runs_.emplace_back([piece = model.get()] { piece->gradient(); });
      }
    }
    runs_.emplace_back([piece = models_.back().get()] { piece->update(); });
    runs_.emplace_back([this] {
      std::memcpy(to_.data(), from_.data(), from_.size());
      from_[0] = to_.back();
    });
  }

  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  [[nodiscard]] std::size_t updated_weights() const { return models_.back()->weights(); }

 private:
  std::vector<std::unique_ptr<LinearPiece>> linears_;
  std::vector<std::unique_ptr<AttentionPiece>> attentions_;
  std::vector<std::unique_ptr<ModelPiece>> models_;
  std::vector<char> from_;
  std::vector<char> to_;
  std::vector<Run> runs_;
};

double seconds_of_one(const Clock& clock, Duration window, const RankPieces::Run& run) {
  const Instant begin = clock.now_monotonic();
  Instant now = begin;
  double times = 0;
  do {
    run();
    times += 1;
    now = clock.now_monotonic();
  } while (now - begin < window);
  return (now - begin).count_seconds() / times;
}

/// Returns for each piece the median over the rounds of the mean over all ranks.
std::vector<double> measure_pieces(const Clock& clock, const ProbeSizes& sizes,
                                   std::vector<std::unique_ptr<RankPieces>>& ranks) {
  const std::size_t pieces = ranks.front()->runs().size();
  std::vector<std::vector<double>> means(pieces);
  std::vector<double> seconds(ranks.size());
  const auto account = [&, next = std::size_t{0}]() mutable noexcept {
    double sum = 0;
    for (double& each : seconds) sum += std::exchange(each, 0);
    if (sum > 0) means[next++ % pieces].push_back(sum / static_cast<double>(ranks.size()));
  };
  std::barrier together(static_cast<std::ptrdiff_t>(ranks.size()), account);
  const auto body = [&](std::size_t rank) {
    const std::vector<RankPieces::Run>& runs = ranks[rank]->runs();
    for (const RankPieces::Run& run : runs) run();  // creates kernels and touches memory
    for (std::size_t i = 0; i < pieces * static_cast<std::size_t>(sizes.rounds); ++i) {
      together.arrive_and_wait();
      seconds[rank] = seconds_of_one(clock, sizes.window, runs[i % pieces]);
    }
    together.arrive_and_wait();
  };
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
  std::vector<double> result;
  result.reserve(pieces);
  for (std::vector<double>& each : means) result.push_back(median(std::move(each)));
  return result;
}

/// Assigns the seconds of RankPieces to their names.
BusyRanks take_pieces(const std::vector<double>& seconds, const RankPieces& pieces,
                      const Measuring& measuring) {
  const ProbeSizes& sizes = measuring.sizes;
  BusyRanks busy;
  auto next = seconds.begin();
  for (const std::int64_t width : std::span(kWidths).first(sizes.products)) {
    const auto operations = static_cast<double>(6 * kRows * width * width);
    busy.products.push_back({kRows, width, width, FlopsPerSecond(operations / *next++)});
  }
  for (MeasuredAttention attention : std::span(kAttentions).first(sizes.attentions)) {
    attention.forward = Seconds(*next++);
    attention.backward = Seconds(*next++);
    busy.attention.push_back(attention);
  }
  for (const TransformerFamily family : kFamilies) {
    for (const std::int64_t layers : kLayers) {
      busy.models.push_back(
          {shape_of(measuring.model(family, layers)), sizes.sequences, Seconds(*next++)});
    }
  }
  busy.optimizer = Seconds(*next++ * 1e6 / static_cast<double>(pieces.updated_weights()));
  busy.copy = BytesPerSecond(static_cast<double>(sizes.copy_bytes) / *next++);
  return busy;
}

// --- Exchange -----------------------------------------------------------------------------------

enum class ExchangePath { kMemory, kSockets };

GroupSettings settings_of(std::uint32_t world, ExchangePath path) {
  GroupSettings settings;
  settings.gang = "calibrate-node";
  settings.world = world;

  settings.addresses = {"127.0.0.1"};

  settings.share_memory = path == ExchangePath::kMemory;
  settings.meeting = Duration::seconds(20);
  return settings;
}

/// Returns a port that the kernel chooses, so that two probes never connect to each other.
Result<std::uint16_t> free_port() {
  const auto mesh = PeerMesh::listen({.address = "127.0.0.1", .first = 0, .count = 1});
  if (!mesh) return tl::unexpected(mesh.error());
  const std::string at = mesh->endpoint();
  return static_cast<std::uint16_t>(std::min(std::stoi(at.substr(at.rfind(':') + 1)), 65000));
}

/// Returns the seconds of one all-reduce of `bytes` bytes; nothing: a rank was lost.
std::optional<double> sum_seconds(const Clock& clock, Duration window, MemberGroup& group,
                                  std::size_t bytes) {
  const Elements all(group.workspace().first(bytes), SumType::kFloat32);
  std::vector<double> each;
  // The number is fixed, because ranks cannot agree on the time.
  const auto times = static_cast<int>(
      std::clamp(window.count_seconds() * (bytes > kSmallSum ? 300.0 : 3000.0), 3.0, 1000.0));
  each.reserve(static_cast<std::size_t>(times));
  for (int i = 0; i < times; ++i) {
    const Instant begin = clock.now_monotonic();
    if (!group.communicator().all_reduce(all)) return std::nullopt;
    each.push_back((clock.now_monotonic() - begin).count_seconds());
  }
  return median(std::move(each));
}

Result<MeasuredExchange> measure_exchange(const Clock& clock, const ProbeSizes& sizes,
                                          GroupSettings common) {
  Result<std::uint16_t> port = free_port();
  if (!port) return forward_error(port);
  common.port = *port;
  common.workspace_bytes = sizes.sum_bytes;

  std::vector<Status> ends(common.world);
  std::optional<double> small;
  std::optional<double> large;
  const auto body = [&](std::uint32_t rank) {
    GroupSettings settings = common;
    settings.rank = rank;
    settings.cookie = std::uint64_t{common.port} * 1000 + rank + 1;
    auto group = MemberGroup::found(clock, settings, 0);
    if (!group) {
      ends[rank] = tl::unexpected(group.error());
      return;
    }
    const auto little = sum_seconds(clock, sizes.window, **group, kSmallSum);
    const auto much = sum_seconds(clock, sizes.window, **group, sizes.sum_bytes);
    if (rank == 0) {
      small = little;
      large = much;
    }
    (*group)->farewell();
  };
  std::vector<std::thread> threads;
  threads.reserve(common.world);
  for (std::uint32_t rank = 0; rank < common.world; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
  for (const Status& end : ends) {
    if (!end) return tl::unexpected(end.error());
  }
  if (!small || !large) return environment_error("the ranks of the exchange lost each other");
  const double more = std::max(*large - *small, 1e-9);
  return MeasuredExchange{Seconds(*small),
                          BytesPerSecond(static_cast<double>(sizes.sum_bytes - kSmallSum) / more)};
}

// --- Disk ---------------------------------------------------------------------------------------

/// Writes one file of a rank durably and removes it again.
Status write_durably(const std::string& path, std::uint64_t bytes) {
  PrefaultedMemory memory;
  if (Status room = memory.reserve(bytes); !room) return room;
  auto file = DurableFile::create({.path = path, .bytes = bytes});
  if (!file) return tl::unexpected(file.error());
  constexpr std::uint64_t kBlock = 1 << 20;
  Status done;
  for (std::uint64_t at = 0; at < bytes && done; at += kBlock) {
    done = file->write(at, {memory.data() + at, std::min(kBlock, bytes - at)});
  }
  if (done) done = file->finish();
  ::unlink(path.c_str());
  return done;
}

Result<BytesPerSecond> measure_disk(const Clock& clock, const Measuring& measuring,
                                    std::uint32_t ranks) {
  const std::uint64_t bytes = aligned_bytes(measuring.sizes.write_bytes / ranks);
  std::vector<Status> ends(ranks);
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  const Instant begin = clock.now_monotonic();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&ends, &measuring, bytes, rank] {
      ends[rank] = write_durably(
          fmt::format("{}/.orrery-calibrate-{}-{}", measuring.probe.directory, ::getpid(), rank),
          bytes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = (clock.now_monotonic() - begin).count_seconds();
  for (const Status& end : ends) {
    if (!end) return tl::unexpected(end.error());
  }
  return BytesPerSecond(static_cast<double>(bytes * ranks) / seconds);
}

Result<BusyRanks> probe_ranks(const Clock& clock, const Measuring& measuring, std::uint32_t count) {
  std::vector<std::unique_ptr<RankPieces>> ranks(count);
  for (auto& each : ranks) each = std::make_unique<RankPieces>(measuring);
  BusyRanks busy =
      take_pieces(measure_pieces(clock, measuring.sizes, ranks), *ranks.front(), measuring);
  busy.ranks = count;
  ranks.clear();
  Result<BytesPerSecond> disk = measure_disk(clock, measuring, count);
  if (!disk) return forward_error(disk);
  busy.durable_write = *disk;
  if (count == 1) return busy;
  for (const ExchangePath path : {ExchangePath::kMemory, ExchangePath::kSockets}) {
    Result<MeasuredExchange> exchange =
        measure_exchange(clock, measuring.sizes, settings_of(count, path));
    if (!exchange) return forward_error(exchange);
    (path == ExchangePath::kMemory ? busy.shared_memory : busy.sockets) = *exchange;
  }
  return busy;
}

}  // namespace

std::vector<std::uint32_t> rank_counts(std::uint32_t most) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

Result<std::vector<BusyRanks>> probe_node(const Clock& clock, const NodeProbe& probe) {
  std::vector<BusyRanks> busy;
  busy.reserve(probe.ranks.size());
  for (const std::uint32_t count : probe.ranks) {
    Result<BusyRanks> one = probe_ranks(clock, {probe, sizes_of(probe.effort)}, count);
    if (!one) return forward_error(one);
    busy.push_back(*std::move(one));
  }
  return busy;
}

TrainedShape shape_of(const TransformerConfig& config) {
  return {.layers = config.layers,
          .width = config.width,
          .heads = config.heads,
          .kv_heads = config.key_value_heads(),
          .ffn = config.inner_width(),
          .vocab = config.vocab,
          .sequence = config.sequence,
          .gated = config.family == TransformerFamily::kLlama,
          .tied = config.tied_embedding};
}

}  // namespace orrery
