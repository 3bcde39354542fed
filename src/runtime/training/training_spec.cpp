#include "runtime/training/training_spec.hpp"

#include "base/utf8.hpp"
#include "runtime/trainer/gemm.hpp"

namespace orrery {

template <class Visitor, SameStruct<TrainingData> Self>
void describe(Visitor& visitor, Self& data) {
  visitor.required("paths", data.paths);
  visitor.optional("suffixes", data.suffixes);
}

template <class Visitor, SameStruct<TrainingBatch> Self>
void describe(Visitor& visitor, Self& batch) {
  visitor.optional("sequences", batch.sequences);
  visitor.optional("shards", batch.shards);
  visitor.optional("micro", batch.micro);
}

template <class Visitor, SameStruct<TrainingLayout> Self>
void describe(Visitor& visitor, Self& layout) {
  visitor.optional("tp", layout.tp);
  visitor.optional("pp", layout.pp);
  visitor.optional("zero", layout.zero);
}

template <class Visitor, SameStruct<TrainingOptimizer> Self>
void describe(Visitor& visitor, Self& optimizer) {
  visitor.optional("peak_rate", optimizer.peak_rate);
  visitor.optional("lowest_rate", optimizer.lowest_rate);
  visitor.optional("warmup", optimizer.warmup);
  visitor.optional("beta1", optimizer.beta1);
  visitor.optional("beta2", optimizer.beta2);
  visitor.optional("weight_decay", optimizer.weight_decay);
  visitor.optional("clip", optimizer.clip);
}

template <class Visitor, SameStruct<TrainingCheckpoint> Self>
void describe(Visitor& visitor, Self& checkpoint) {
  visitor.optional("directory", checkpoint.directory);
  visitor.optional("every", checkpoint.every);
  visitor.optional("keep", checkpoint.keep);
}

template <class Visitor, SameStruct<TrainingSpec> Self>
void describe(Visitor& visitor, Self& spec) {
  visitor.required("apiVersion", spec.api_version);
  visitor.required("kind", spec.kind);
  visitor.required("name", spec.name);
  visitor.required("model", spec.model);
  visitor.required("data", spec.data);
  visitor.optional("batch", spec.batch);
  visitor.optional("layout", spec.layout);
  visitor.optional("optimizer", spec.optimizer);
  visitor.optional("checkpoint", spec.checkpoint);
  visitor.optional("steps", spec.steps);
  visitor.optional("seed", spec.seed);
  visitor.optional("evaluate_every", spec.evaluate_every);
  visitor.optional("evaluate_sequences", spec.evaluate_sequences);
  visitor.optional("verify_every", spec.verify_every);
  visitor.optional("output", spec.output);
}

namespace {

constexpr std::uint32_t kShardsMax = 64;
constexpr std::int64_t kByteTokens = 256;

Status check_batch(const TrainingBatch& batch) {
  if (batch.shards == 0 || batch.shards > kShardsMax) {
    return input_error(batch.where, fmt::format("batch.shards: from 1 to {}", kShardsMax));
  }
  if (batch.sequences == 0 || batch.sequences % batch.shards != 0) {
    return input_error(batch.where, fmt::format("batch.sequences: {} are not {} equal shards",
                                                batch.sequences, batch.shards));
  }
  if (batch.micro == 0 || batch.per_shard() % batch.micro != 0) {
    return input_error(batch.where,
                       fmt::format("batch.micro: a shard's {} sequences are no whole number of {}",
                                   batch.per_shard(), batch.micro));
  }
  return {};
}

/// Of a checked model.
Status check_layout(const TrainingSpec& spec) {
  const TrainingLayout& layout = spec.layout;
  TransformerConfig model = spec.model;
  model.where = layout.where;
  if (Status cut = check_parts(model, layout.parts()); !cut) return cut;
  if (layout.zero > 1) {
    return input_error(layout.where,
                       fmt::format("layout.zero: expected 0 or 1, found {}", layout.zero));
  }
  if (layout.cut() && spec.checked_every() > 0) {
    return input_error(
        layout.where, fmt::format("layout: gradients of a layout with tp {}, pp {} and zero {} are "
                                  "not checked on other ranks; verify_every: expected 0, found {}",
                                  layout.tp, layout.pp, layout.zero, spec.checked_every()));
  }
  return {};
}

}  // namespace

Result<TrainingSpec> read_training_spec(const Document& document) {
  TrainingSpec spec;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, spec, {}); !read) return forward_error(read);
  if (spec.api_version != "orrery/v1" || spec.kind != "Training") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Training, found {} and {}",
                    printable(spec.api_version, 60), printable(spec.kind, 60)));
  }
  if (spec.data.paths.empty()) return input_error(spec.data.where, "data.paths: at least one");
  if (spec.steps == 0) return input_error(root.position(), "steps: at least 1");
  if (spec.checkpoint.keep == 0 || spec.checkpoint.every == 0) {
    return input_error(root.position(), "checkpoint: keep and every are at least 1");
  }
  if (Status good = check_batch(spec.batch); !good) return forward_error(good);
  if (Status good = check(spec.model); !good) return forward_error(good);
  if (spec.model.vocab != kByteTokens) {
    return input_error(spec.model.where,
                       fmt::format("model.vocab: expected {}, as a token is a byte; found {}",
                                   kByteTokens, spec.model.vocab));
  }
  if (Status good = check_layout(spec); !good) return forward_error(good);
  if (Status good = check_precision(spec.model.precision); !good) return forward_error(good);
  return spec;
}

}  // namespace orrery
