// workload/node_calibration.hpp - what the pieces of a training step take on the CPUs of one
// machine, measured while as many ranks are busy as a job will have (kind: NodeCalibration).
//
// Filled by runtime/training/node_probe.hpp, kept as a YAML file by `orrery calibrate-node`, priced
// with by perf/training/local_training.hpp. Plain values. Invariant of one that was read: ranks
// ascend, and each entry has what a fit needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// A language model as the reference trainer shapes it.
struct TrainedShape {
  std::int64_t layers = 1;
  std::int64_t width = 256;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 4;
  std::int64_t ffn = 1024;
  std::int64_t vocab = 256;
  std::int64_t sequence = 128;  ///< tokens
  bool gated = false;           ///< a Llama; else a GPT
  bool tied = true;             ///< the head's weight is the token embedding
};

/// The shape as a Model of the cost model.
[[nodiscard]] Model model_of(const TrainedShape& shape);

/// y = x W of rows x inner and inner x columns with both products of its gradient: three products.
struct MeasuredProduct {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  FlopsPerSecond rate;  ///< of one rank
};

/// Causal attention of one sequence.
struct MeasuredAttention {
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t head_width = 0;
  Seconds forward;
  Seconds backward;
};

/// Loss and gradient of a micro-batch of `sequences`.
struct MeasuredModel {
  TrainedShape shape;
  std::int64_t sequences = 0;
  Seconds gradient;
};

/// An all-reduce takes latency + bytes / bandwidth.
struct MeasuredExchange {
  Seconds latency;
  BytesPerSecond bandwidth;
};

/// Measurements of one rank while `ranks` of them do the same.
struct BusyRanks {
  std::uint32_t ranks = 1;
  std::vector<MeasuredProduct> products;
  std::vector<MeasuredAttention> attention;
  std::vector<MeasuredModel> models;  ///< of each family at least two that differ in layers alone
  Seconds optimizer;                  ///< of a million weights
  BytesPerSecond copy;                ///< copied, not read and written
  std::optional<MeasuredExchange> shared_memory;  ///< none with one rank
  std::optional<MeasuredExchange> sockets;
  BytesPerSecond durable_write;  ///< of all ranks together
};

struct CalibratedMachine {
  std::string processor;  ///< its model
  std::uint32_t cores = 0;
  std::string products;   ///< what multiplies: "oneDNN 2.6.3, avx512_core_amx"
  std::string precision;  ///< of the products: "float32" or "bfloat16"
  Instant measured;
};

struct NodeCalibration {
  std::string api_version = "orrery/v1";
  std::string kind = "NodeCalibration";
  CalibratedMachine machine;
  std::vector<BusyRanks> busy;
};

/// Errors with file:line:column: no calibration, figures that are not positive, too few of them.
[[nodiscard]] Result<NodeCalibration> read_node_calibration(const Document& document);

/// What read_node_calibration() reads back.
[[nodiscard]] std::string node_calibration_yaml(const NodeCalibration& calibration);
/// Numbers in base units.
[[nodiscard]] Json node_calibration_json(const NodeCalibration& calibration);

}  // namespace orrery
