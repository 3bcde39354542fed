// runtime/training/training_spec.hpp - what orrery-train is asked to train: model, text, batch,
// optimiser and checkpoints (kind: Training).
//
// Values, read once at the start of every rank; docs/training.md describes the keys. Invariant of a
// spec that was read: shards divide the batch, micro-batches divide a shard, the model is checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "runtime/trainer/model_part.hpp"
#include "runtime/trainer/transformer_config.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

struct TrainingData {
  std::vector<std::string> paths;     ///< files and directories
  std::vector<std::string> suffixes;  ///< suffixes of files in directories; none: all
  std::string tokenizer;              ///< a file with a SentencePiece model; "": tokens are bytes
  std::string cache;                  ///< a directory for tokens; "": the node's default
  /// Tokenizer::identity() of the tokenizer, once it was opened.
  std::string tokenizer_identity;
  SourcePosition where;
};

/// A step's sequences. They are divided once into shards, each computed by the rank or replica that
/// owns it, so the result does not depend on the number of ranks.
struct TrainingBatch {
  std::uint32_t sequences = 32;
  std::uint32_t shards = 1;
  std::uint32_t micro = 8;  ///< sequences computed at a time
  SourcePosition where;

  [[nodiscard]] std::uint32_t per_shard() const { return sequences / shards; }
  /// Number of micro-batches of a shard.
  [[nodiscard]] std::uint32_t micro_batches() const { return per_shard() / micro; }
};

/// How the model is divided. Ranks that together have all of it are a replica: tp x pp consecutive
/// ranks, so the number of replicas follows from the number of ranks.
struct TrainingLayout {
  std::uint32_t tp = 1;    ///< ranks that share each layer
  std::uint32_t pp = 1;    ///< stages, each of some layers
  std::uint32_t vpp = 1;   ///< chunks of a stage's layers, in different places of the model
  std::uint32_t ep = 1;    ///< groups of the tp ranks, each with some experts; divides tp
  std::uint32_t zero = 0;  ///< 1: replicas divide the optimiser's moments among themselves
  SourcePosition where;

  /// Number of ranks of a replica.
  [[nodiscard]] std::uint32_t ranks() const { return tp * pp; }
  /// The first of its parts.
  [[nodiscard]] ModelPart parts() const {
    return {.tensor_ranks = tp, .stages = pp, .chunks = vpp, .expert_ranks = ep};
  }
  /// Whether no rank has the whole state of the training.
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

/// What a spec states about how to compute it; the rest comes from a plan, if there is one.
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
  std::uint64_t checksum = 0;  ///< checksum of its text; equal on all ranks of an attempt

  [[nodiscard]] std::uint64_t checked_every() const {
    return verify_every.value_or(layout.cut() ? 0 : 100);
  }
  /// Steps between copies; 0 where each rank has the whole state, since its peers have it anyway.
  [[nodiscard]] std::uint64_t copied_every() const {
    return layout.cut() ? checkpoint.peer_every.value_or(10) : 0;
  }
  [[nodiscard]] std::uint64_t tokens_per_step() const {
    return std::uint64_t{batch.sequences} * static_cast<std::uint64_t>(model.sequence);
  }
};

/// Defaults where neither the spec nor the plan states a value: tp 1, pp 1, vpp 1, zero 0, and the
/// largest micro-batch up to 8 that divides a shard. Errors with file:line:column.
[[nodiscard]] Result<TrainingSpec> read_training_spec(
    const Document& document, const std::optional<ParallelPlan>& plan = std::nullopt);
/// Checks that a spec, as read or changed since, can be trained. Errors are those of
/// read_training_spec().
[[nodiscard]] Status check(const TrainingSpec& spec);

}  // namespace orrery
