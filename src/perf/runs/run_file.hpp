// perf/runs/run_file.hpp - a file of published training and serving runs, row by row.
//
// {"rows": [...]} or a bare list. A row with `input_tokens`, `output_tokens` or `engine` is a
// serving run. Of a training row only model, accel, n, cluster, par, mbs, gbs, seq, recompute,
// precision, flash_attn, task and release count; of a serving row model, accel, n, par, engine,
// engine_version, precision, input_tokens, output_tokens, concurrency, max_batch, request_rate and
// scenario. `id` is echoed. All other keys (results, sources, notes, folds...) change nothing.
// A bad row does not stop the file. Runs point into the catalog, which must outlive them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"
#include "perf/machine/machine.hpp"
#include "perf/runs/run_cluster.hpp"
#include "perf/runs/run_text.hpp"
#include "perf/training/training_job.hpp"
#include "workload/models/model_catalog.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// A layout as far as a row gives it; none: not given, or text such as "see recipe".
struct StatedPlan {
  std::optional<std::uint32_t> tp;
  std::optional<std::uint32_t> pp;
  std::optional<std::uint32_t> vpp;
  /// All data-parallel ranks; where `fsdp` is a second axis beside `dp`, their product.
  std::optional<std::uint32_t> dp;
  std::optional<std::uint32_t> cp;
  std::optional<std::uint32_t> ep;
  std::optional<std::uint32_t> zero;   ///< 3 whenever `fsdp` or `fsdp_group` is above 1
  std::optional<std::uint32_t> shard;  ///< ranks of `dp` one copy of the state is sharded over; > 1
  std::optional<std::uint32_t> attention_dp;
  std::optional<std::uint32_t> moe_tp;
  std::optional<SequenceParallel> sequence_parallel;

  friend bool operator==(const StatedPlan&, const StatedPlan&) = default;
};

struct TrainingRun {
  std::string id;
  Model model;
  Tokens sequence;
  const Accelerator* accelerator = nullptr;
  std::optional<Watts> power_limit;
  std::uint64_t count = 0;  ///< accelerators
  /// Ranks an accelerator runs: 2 where the layout counts cores (Trainium1), else 1.
  std::uint32_t ranks_per_accelerator = 1;
  ClusterFacts cluster;
  StatedPlan plan;
  std::optional<double> micro_batch;  ///< sequences a data-parallel rank; TPU rows: a device
  std::optional<double> global_batch;
  StatedRecompute recompute;
  TrainingPrecision precision;
  AttentionKernel attention = AttentionKernel::kFlash;
  TrainingTask task = TrainingTask::kPretrain;
  std::optional<double> release;  ///< years since 2020
  std::vector<std::string> warnings;
  SourcePosition where;

  /// Whether layout and batch are given, so that a step time needs no guess but recomputation.
  [[nodiscard]] bool complete() const {
    return plan.tp && plan.pp && plan.dp && micro_batch && global_batch;
  }
};

struct ServingRun {
  enum Scenario { kOffline, kServer, kSingle };

  std::string id;
  Model model;
  const Accelerator* accelerator = nullptr;
  std::optional<Watts> power_limit;
  std::uint64_t count = 0;
  std::optional<JoinedDomains> joined;  ///< where an instance may span several; none: it is in one
  std::uint32_t ranks_per_accelerator = 1;
  std::uint32_t copies = 1;  ///< of the stated layout, that fill the accelerators
  StatedPlan
      plan;  ///< dp is that of the row, or, where it leaves devices over, of the replicas too
  ServingEngine engine;  ///< as far as its texts are known
  std::string engine_text;
  std::string version_text;
  std::optional<NumberFormat> weights;
  std::optional<NumberFormat> kv;
  std::optional<NumberFormat> activations;
  std::optional<double> input_tokens;   ///< a request
  std::optional<double> output_tokens;  ///< a request
  std::optional<double> concurrency;    ///< requests kept in flight over the whole system
  std::optional<double> max_batch;      ///< sequences running at once, a replica
  std::optional<double> request_rate;   ///< offered requests a second
  Scenario scenario = kOffline;
  std::vector<std::string> warnings;
  SourcePosition where;

  /// Whether the engine's request sizes and the layout are given.
  [[nodiscard]] bool complete() const {
    return plan.tp && plan.pp && input_tokens && output_tokens && weights;
  }
};

struct BadRow {
  std::string id;
  Error error;
};

using Run = std::variant<TrainingRun, ServingRun, BadRow>;

/// What the names of a file are looked up in.
struct RunCatalogs {
  const Catalog& hardware;
  const ModelCatalog& models;
};

class RunFile {
 public:
  /// Errors: an unreadable file, text that is no JSON or YAML, or no list of rows.
  /// Cost: O(bytes + rows x names).
  [[nodiscard]] static Result<RunFile> load(const std::string& path, const Catalog& hardware,
                                            const ModelCatalog& models);
  [[nodiscard]] static Result<RunFile> parse(std::string_view text, std::string file,
                                             const RunCatalogs& catalogs);

  /// In file order, one a row.
  std::vector<Run> runs;
};

}  // namespace orrery
