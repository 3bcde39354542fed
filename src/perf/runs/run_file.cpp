#include "perf/runs/run_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "perf/runs/run_accelerator.hpp"
#include "perf/runs/run_model.hpp"
#include "perf/runs/run_plan.hpp"
#include "workload/models/config_keys.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kAcceleratorsMax = 1 << 28;
constexpr std::int64_t kSequenceMax = 1 << 30;
constexpr double kSmallest = 1e-6;
constexpr double kLargest = 1e12;

template <class Part>
void append(std::vector<Part>& to, std::vector<Part> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// ------------------------------------------------------------- what both kinds of rows say
/// Accelerators, their number and the layout over them.
struct Placement {
  AcceleratorText accelerator;
  std::uint64_t count = 0;
  PlanText plan;
};

Result<Placement> read_placement(ConfigKeys& keys, const Catalog& catalog,
                                 RunDevices::Cover cover) {
  const std::optional<std::string> text = keys.text("accel");
  if (!text) keys.missing({"accel"});
  const std::int64_t count = keys.required({"n"}, {1, kAcceleratorsMax});
  if (!keys.status()) return tl::unexpected<Error>(keys.status().error());
  Result<AcceleratorText> accelerator =
      read_accelerator_text(*text, catalog, keys.position({"accel"}));
  if (!accelerator) return forward_error(accelerator);
  Placement placement{*std::move(accelerator), static_cast<std::uint64_t>(count), {}};
  const RunDevices devices{*placement.accelerator.accelerator, placement.count, cover};
  const std::optional<DocumentNode> par = keys.node("par");
  if (!par) return placement;
  Result<PlanText> plan = read_run_plan(*par, devices);
  if (!plan) return forward_error(plan);
  placement.plan = *std::move(plan);
  return placement;
}

template <class AnyRun>
void take_placement(Placement placement, AnyRun& run) {
  run.accelerator = placement.accelerator.accelerator;
  run.power_limit = placement.accelerator.power_limit;
  run.count = placement.count;
  run.plan = placement.plan.plan;
  run.ranks_per_accelerator = placement.plan.ranks_per_accelerator;
  if constexpr (requires { run.copies; }) run.copies = placement.plan.copies;
  append(run.warnings, std::move(placement.accelerator.warnings));
  append(run.warnings, std::move(placement.plan.warnings));
}

Result<Model> read_model(ConfigKeys& keys, const ModelCatalog& models,
                         std::optional<std::int64_t> sequence, Warnings& warnings) {
  const std::optional<DocumentNode> node = keys.node("model");
  if (node) return read_run_model(*node, models, sequence, warnings);
  keys.missing({"model"});
  return tl::unexpected<Error>(keys.status().error());
}

// ------------------------------------------------------------- training
// Reads the sequence of the row, else of its model, where it means the model's positions.
std::optional<std::int64_t> read_sequence(ConfigKeys& keys) {
  constexpr IntegerRange kRange{1, kSequenceMax};
  if (const auto own = keys.integer({"seq"}, kRange)) return own;
  const std::optional<DocumentNode> model = keys.node("model");
  if (!model || model->kind() != NodeKind::kMapping) return std::nullopt;
  ConfigKeys inner(*model, "", Nesting::kNested);
  const std::optional<std::int64_t> sequence = inner.integer({"seq"}, kRange);
  keys.fail(inner.status());
  return sequence;
}

// A value that may be a word, a number or a truth value: its text.
std::string any_text(ConfigKeys& keys, std::string_view key) { return keys.text(key).value_or(""); }

void read_training_texts(ConfigKeys& keys, TrainingRun& run) {
  Warnings& warnings = run.warnings;
  run.recompute = read_recompute_text(any_text(keys, "recompute"), warnings);
  if (const std::optional<std::string> precision = keys.text("precision")) {
    run.precision = read_precision_text(*precision, warnings);
  } else {
    warnings.push_back("no precision is given; bf16 is taken");
  }
  if (const std::optional<std::string> release = keys.text("release")) {
    run.release = read_release_text(*release, warnings);
  }
  const bool flash = keys.truth("flash_attn").value_or(true);
  run.attention = flash ? AttentionKernel::kFlash : AttentionKernel::kUnfused;
  const std::optional<std::string> task = keys.text("task");
  const bool adapted = lower_case(run.model.name).find("lora") != std::string::npos;
  if (task) {
    run.task = read_task_text(*task, warnings);
  } else if (adapted) {
    run.task = TrainingTask::kLora;
  }
}

Result<TrainingRun> read_training_run(ConfigKeys& keys, const DocumentNode& row,
                                      const RunCatalogs& catalogs) {
  TrainingRun run;
  run.where = row.position();
  const std::optional<std::int64_t> sequence = read_sequence(keys);
  if (!sequence) {
    keys.refuse({"model"},
                "the sequence length is missing: \"seq\" of the row or of its \"model\"");
  }
  if (!keys.status()) return tl::unexpected<Error>(keys.status().error());
  run.sequence = Tokens(static_cast<double>(*sequence));

  Result<Model> model = read_model(keys, catalogs.models, sequence, run.warnings);
  if (!model) return forward_error(model);
  run.model = *std::move(model);
  Result<Placement> placement = read_placement(keys, catalogs.hardware, RunDevices::Cover::kAll);
  if (!placement) return forward_error(placement);
  const std::optional<std::uint32_t> domain = placement->accelerator.scale_up_domain;
  take_placement(*std::move(placement), run);

  run.cluster = read_cluster_text(any_text(keys, "cluster"), run.count, *run.accelerator);
  if (!run.cluster.scale_up_domain) run.cluster.scale_up_domain = domain;
  run.micro_batch = keys.number("mbs", kSmallest, kLargest);
  run.global_batch = keys.number("gbs", kSmallest, kLargest);
  read_training_texts(keys, run);
  if (!keys.status()) return tl::unexpected<Error>(keys.status().error());
  return run;
}

// ------------------------------------------------------------- serving
std::optional<NumberFormat> read_format(ConfigKeys& keys, std::string_view key,
                                        Warnings& warnings) {
  const std::optional<std::string> text = keys.text(key);
  return text ? read_format_text(*text, warnings) : std::nullopt;
}

// {weights, kv, activations}, or one word for weights and activations.
void read_serving_precision(ConfigKeys& keys, ServingRun& run) {
  const std::optional<DocumentNode> node = keys.node("precision");
  if (!node) return;
  if (node->kind() == NodeKind::kScalar) {
    run.weights = run.activations = read_format_text(node->text(), run.warnings);
    return;
  }
  ConfigKeys inner(*node, "", Nesting::kNested);
  run.weights = read_format(inner, "weights", run.warnings);
  run.kv = read_format(inner, "kv", run.warnings);
  run.activations = read_format(inner, "activations", run.warnings);
  if (inner.status()) return;
  Error error = inner.status().error();
  error.message = fmt::format("\"precision\": {}", error.message);
  keys.fail(tl::unexpected<Error>(std::move(error)));
}

void read_scenario(ConfigKeys& keys, ServingRun& run) {
  const bool arrives = run.request_rate || run.concurrency;
  run.scenario = arrives ? ServingRun::kServer : ServingRun::kOffline;
  const std::string word = lower_case(any_text(keys, "scenario"));
  if (word == "offline") {
    run.scenario = ServingRun::kOffline;
  } else if (word == "server" || word == "interactive") {
    run.scenario = ServingRun::kServer;
  } else if (word == "single" || word == "singlestream") {
    run.scenario = ServingRun::kSingle;
  } else if (!word.empty()) {
    run.warnings.push_back(
        fmt::format("the scenario \"{}\" is not understood", printable(word, 40)));
  }
}

Result<ServingRun> read_serving_run(ConfigKeys& keys, const DocumentNode& row,
                                    const RunCatalogs& catalogs) {
  ServingRun run;
  run.where = row.position();
  Result<Model> model = read_model(keys, catalogs.models, std::nullopt, run.warnings);
  if (!model) return forward_error(model);
  run.model = *std::move(model);
  Result<Placement> placement =
      read_placement(keys, catalogs.hardware, RunDevices::Cover::kReplica);
  if (!placement) return forward_error(placement);
  take_placement(*std::move(placement), run);

  run.engine_text = any_text(keys, "engine");
  run.version_text = any_text(keys, "engine_version");
  run.engine = read_engine_text(run.engine_text, run.version_text, run.warnings);
  read_serving_precision(keys, run);
  run.input_tokens = keys.number("input_tokens", kSmallest, kLargest);
  run.output_tokens = keys.number("output_tokens", kSmallest, kLargest);
  run.concurrency = keys.number("concurrency", kSmallest, kLargest);
  run.max_batch = keys.number("max_batch", kSmallest, kLargest);
  run.request_rate = keys.number("request_rate", kSmallest, kLargest);
  read_scenario(keys, run);
  if (!keys.status()) return tl::unexpected<Error>(keys.status().error());
  return run;
}

// ------------------------------------------------------------- rows
Run read_row(const DocumentNode& row, const RunCatalogs& catalogs) {
  ConfigKeys keys(row, "", Nesting::kNested);
  if (!keys.status()) return BadRow{"", keys.status().error()};
  const std::optional<DocumentNode> named = keys.node("id");
  std::string id = named ? std::string(named->text()) : "";
  const auto finish = [&](auto read) -> Run {
    if (!read) return BadRow{std::move(id), std::move(read.error())};
    read->id = std::move(id);
    return *std::move(read);
  };
  const bool serving =
      keys.mentions("input_tokens") || keys.mentions("output_tokens") || keys.mentions("engine");
  return serving ? finish(read_serving_run(keys, row, catalogs))
                 : finish(read_training_run(keys, row, catalogs));
}

Result<DocumentNode> find_rows(const DocumentNode& root) {
  if (root.kind() == NodeKind::kSequence) return root;
  for (const DocumentNode::Entry& entry : root.entries()) {
    if (entry.key.text() == "rows" && entry.value.kind() == NodeKind::kSequence) return entry.value;
  }
  return input_error(root.position(), "expected a list of rows, or a mapping with a list \"rows\"");
}

Result<RunFile> read_rows(const Document& document, const RunCatalogs& catalogs) {
  Result<DocumentNode> rows = find_rows(document.root());
  if (!rows) return forward_error(rows);
  RunFile file;
  file.runs.reserve(rows->size());
  for (const DocumentNode& row : rows->items()) file.runs.push_back(read_row(row, catalogs));
  return file;
}

}  // namespace

Result<RunFile> RunFile::load(const std::string& path, const Catalog& hardware,
                              const ModelCatalog& models) {
  Result<Document> document = Document::load(path);
  if (!document) return forward_error(document);
  return read_rows(*document, {hardware, models});
}

Result<RunFile> RunFile::parse(std::string_view text, std::string file,
                               const RunCatalogs& catalogs) {
  Result<Document> document = Document::parse(text, std::move(file));
  if (!document) return forward_error(document);
  return read_rows(*document, catalogs);
}

}  // namespace orrery
