// runtime/training/training_spec.hpp - what orrery-train is asked to train: model, text, batch,
// optimiser and checkpoints (kind: Training).
//
// Values, read once at the start of every rank; docs/training.md describes the keys. Invariant of
// one that was read: shards divide the batch, micro-batches divide a shard, the model is checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/document.hpp"
#include "base/field_reader.hpp"
#include "runtime/trainer/model_part.hpp"
#include "runtime/trainer/transformer_config.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

struct TrainingData {
  std::vector<std::string> paths;     ///< files and directories
  std::vector<std::string> suffixes;  ///< of files in directories; none: all
  std::string tokenizer;              ///< a file with a SentencePiece model; "": tokens are bytes
  std::string cache;                  ///< a directory for tokens; "": as the node has it
  /// Of the tokenizer, once it was opened: Tokenizer::identity().
  std::string tokenizer_identity;
  SourcePosition where;
};

/// A step's sequences. They are cut once into shards; whoever owns a shard computes it alone, so
/// the result does not depend on how many ranks there are.
struct TrainingBatch {
  std::uint32_t sequences = 32;
  std::uint32_t shards = 1;
  std::uint32_t micro = 8;  ///< sequences computed at a time
  SourcePosition where;

  [[nodiscard]] std::uint32_t per_shard() const { return sequences / shards; }
  /// Of a shard.
  [[nodiscard]] std::uint32_t micro_batches() const { return per_shard() / micro; }
};

/// How the model is shared out. Ranks that together have all of it are a replica: tp x pp of them
/// in a row, so the number of replicas follows from that of ranks.
struct TrainingLayout {
  std::uint32_t tp = 1;    ///< ranks that share each layer
  std::uint32_t pp = 1;    ///< stages, each of some layers
  std::uint32_t vpp = 1;   ///< chunks of a stage's layers, in different places of the model
  std::uint32_t ep = 1;    ///< groups of those of tp that each have some experts; divides tp
  std::uint32_t zero = 0;  ///< 1: replicas share the optimiser's moments out among themselves
  SourcePosition where;

  /// Of a replica.
  [[nodiscard]] std::uint32_t ranks() const { return tp * pp; }
  /// The first of its parts.
  [[nodiscard]] ModelPart parts() const {
    return {.tensor_ranks = tp, .stages = pp, .chunks = vpp, .expert_ranks = ep};
  }
  /// Nobody has the whole state of the training.
  [[nodiscard]] bool cut() const { return ranks() > 1 || zero > 0; }
};

struct TrainingOptimizer {
  double peak_rate = 1e-3;
  double lowest_rate = 1e-4;
  std::uint64_t warmup = 10;  ///< steps
  double beta1 = 0.9;
  double beta2 = 0.95;
  double weight_decay = 0.1;
  double clip = 1;  ///< longest gradient; 0: any
};

struct TrainingCheckpoint {
  std::string directory = "checkpoints";
  std::uint64_t every = 50;  ///< steps; the last is always saved
  std::uint32_t keep = 2;
  /// Steps between copies in the memory of other ranks; 0: none. Absent: see copied_every().
  std::optional<std::uint64_t> peer_every;
};

/// What a spec states of how it is computed; the rest is a plan's, where there is one.
struct StatedLayout {
  std::optional<std::uint32_t> tp;
  std::optional<std::uint32_t> pp;
  std::optional<std::uint32_t> vpp;
  std::optional<std::uint32_t> ep;
  std::optional<std::uint32_t> zero;
  std::optional<std::uint32_t> micro;
  std::optional<ActivationRecompute> recompute;
};

struct TrainingSpec {
  std::string api_version = "orrery/v1";
  std::string kind = "Training";
  std::string name = "training";
  TransformerConfig model;
  TrainingData data;
  TrainingBatch batch;
  TrainingLayout layout;
  StatedLayout stated;
  TrainingOptimizer optimizer;
  TrainingCheckpoint checkpoint;
  std::uint64_t steps = 100;
  std::uint64_t seed = 1;
  std::uint64_t evaluate_every = 0;  ///< steps; 0: at the end alone
  std::uint32_t evaluate_sequences = 16;
  /// Steps whose gradients are checked; 0: never. Absent: see checked_every().
  std::optional<std::uint64_t> verify_every;
  std::string output = "out";  ///< loss.csv, events.jsonl, summary.json
  SourcePosition where;
  std::uint64_t checksum = 0;  ///< of its text: ranks of an attempt have the same

  [[nodiscard]] std::uint64_t checked_every() const {
    return verify_every.value_or(layout.cut() ? 0 : 100);
  }
  /// Where each rank has all of the state, its peers have it anyway.
  [[nodiscard]] std::uint64_t copied_every() const {
    return layout.cut() ? checkpoint.peer_every.value_or(10) : 0;
  }
  [[nodiscard]] std::uint64_t tokens_per_step() const {
    return std::uint64_t{batch.sequences} * static_cast<std::uint64_t>(model.sequence);
  }
};

/// What neither the spec nor the plan says is tp 1, pp 1, vpp 1, zero 0, and the largest
/// micro-batch up to 8 that divides a shard. Errors with file:line:column.
[[nodiscard]] Result<TrainingSpec> read_training_spec(
    const Document& document, const std::optional<ParallelPlan>& plan = std::nullopt);
/// Whether what was read, or set since, can be trained. The same errors.
[[nodiscard]] Status check(const TrainingSpec& spec);

}  // namespace orrery
