#include "runtime/training/training_spec.hpp"

#include <algorithm>

#include "base/text/utf8.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/ranks/planned_layout.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

template <class Visitor, SameStruct<TrainingData> Self>
void describe(Visitor& visitor, Self& data) {
  visitor.required("paths", data.paths);
  visitor.optional("suffixes", data.suffixes);
  visitor.optional("tokenizer", data.tokenizer);
  visitor.optional("cache", data.cache);
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
  visitor.optional("vpp", layout.vpp);
  visitor.optional("ep", layout.ep);
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
  visitor.optional("peer_every", checkpoint.peer_every);
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
constexpr std::uint32_t kUsualMicro = 8;

bool has(const DocumentNode& mapping, std::string_view key) {
  return std::ranges::any_of(mapping.entries(), [key](const DocumentNode::Entry& entry) {
    return entry.key.text() == key;
  });
}

/// Returns which layout values a spec states.
StatedLayout stated_by(const DocumentNode& root, const TrainingSpec& spec) {
  StatedLayout stated;
  for (const DocumentNode::Entry& part : root.entries()) {
    const std::string_view of = part.key.text();
    if (of == "layout" && has(part.value, "tp")) stated.tp = spec.layout.tp;
    if (of == "layout" && has(part.value, "pp")) stated.pp = spec.layout.pp;
    if (of == "layout" && has(part.value, "vpp")) stated.vpp = spec.layout.vpp;
    if (of == "layout" && has(part.value, "ep")) stated.ep = spec.layout.ep;
    if (of == "layout" && has(part.value, "zero")) stated.zero = spec.layout.zero;
    if (of == "batch" && has(part.value, "micro")) stated.micro = spec.batch.micro;
    if (of == "model" && has(part.value, "recompute")) stated.recompute = spec.model.recompute;
  }
  return stated;
}

/// Returns the largest micro-batch up to kUsualMicro that divides a shard.
std::uint32_t usual_micro(const TrainingBatch& batch) {
  for (std::uint32_t micro = kUsualMicro; micro > 1; --micro) {
    if (batch.shards > 0 && batch.per_shard() % micro == 0) return micro;
  }
  return 1;
}

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

/// Checks the layout. Precondition: the model is checked.
Status check_layout(const TrainingSpec& spec) {
  const TrainingLayout& layout = spec.layout;
  TransformerConfig model = spec.model;
  model.where = layout.where;
  if (Status cut = check_parts(model, layout.parts()); !cut) return cut;
  if (layout.vpp > 1 && spec.batch.micro_batches() % layout.pp != 0) {
    return input_error(layout.where,
                       fmt::format("layout.vpp: with {} chunks a stage, the {} micro-batches of a "
                                   "shard must be a multiple of pp {}",
                                   layout.vpp, spec.batch.micro_batches(), layout.pp));
  }
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

Result<TrainingSpec> read_training_spec(const Document& document,
                                        const std::optional<ParallelPlan>& plan) {
  TrainingSpec spec;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, spec, {}); !read) return forward_error(read);
  if (spec.api_version != "orrery/v1" || spec.kind != "Training") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Training, found {} and {}",
                    printable(spec.api_version, 60), printable(spec.kind, 60)));
  }
  spec.where = root.position();
  spec.stated = stated_by(root, spec);
  if (!spec.stated.micro) spec.batch.micro = usual_micro(spec.batch);
  if (plan) {
    if (Status followed = follow(*plan, spec); !followed) return forward_error(followed);
  }
  if (Status good = check(spec); !good) return forward_error(good);
  return spec;
}

Status check(const TrainingSpec& spec) {
  if (spec.data.paths.empty()) return input_error(spec.data.where, "data.paths: at least one");
  if (spec.steps == 0) return input_error(spec.where, "steps: at least 1");
  if (spec.checkpoint.keep == 0 || spec.checkpoint.every == 0) {
    return input_error(spec.where, "checkpoint: keep and every are at least 1");
  }
  if (Status good = check_batch(spec.batch); !good) return good;
  if (Status good = check(spec.model); !good) return good;
  if (spec.data.tokenizer.empty() && spec.model.vocab != ByteTokenizer::kKinds) {
    return input_error(spec.model.where,
                       fmt::format("model.vocab: expected {}, as a token is a byte; found {}",
                                   ByteTokenizer::kKinds, spec.model.vocab));
  }
  if (Status good = check_layout(spec); !good) return good;
  return check_precision(spec.model.precision);
}

}  // namespace orrery
