#include "workload/node_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_reader.hpp"
#include "base/format/yaml_writer.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

template <class Visitor, SameStruct<TrainedShape> Self>
void describe(Visitor& visitor, Self& shape) {
  visitor.required("layers", shape.layers);
  visitor.required("width", shape.width);
  visitor.required("heads", shape.heads);
  visitor.required("kv_heads", shape.kv_heads);
  visitor.required("ffn", shape.ffn);
  visitor.required("vocab", shape.vocab);
  visitor.required("sequence", shape.sequence);
  visitor.optional("gated", shape.gated);
  visitor.optional("tied", shape.tied);
}

template <class Visitor, SameStruct<MeasuredProduct> Self>
void describe(Visitor& visitor, Self& product) {
  visitor.required("rows", product.rows);
  visitor.required("columns", product.columns);
  visitor.required("inner", product.inner);
  visitor.required("rate", product.rate);
}

template <class Visitor, SameStruct<MeasuredAttention> Self>
void describe(Visitor& visitor, Self& attention) {
  visitor.required("sequence", attention.sequence);
  visitor.required("heads", attention.heads);
  visitor.required("head_width", attention.head_width);
  visitor.required("forward", attention.forward);
  visitor.required("backward", attention.backward);
}

template <class Visitor, SameStruct<MeasuredModel> Self>
void describe(Visitor& visitor, Self& model) {
  visitor.required("shape", model.shape);
  visitor.required("sequences", model.sequences);
  visitor.required("gradient", model.gradient);
}

template <class Visitor, SameStruct<MeasuredExchange> Self>
void describe(Visitor& visitor, Self& exchange) {
  visitor.required("latency", exchange.latency);
  visitor.required("bandwidth", exchange.bandwidth);
}

template <class Visitor, SameStruct<BusyRanks> Self>
void describe(Visitor& visitor, Self& busy) {
  visitor.required("ranks", busy.ranks);
  visitor.required("products", busy.products);
  visitor.required("attention", busy.attention);
  visitor.required("models", busy.models);
  visitor.required("optimizer", busy.optimizer);
  visitor.required("copy", busy.copy);
  visitor.optional("shared_memory", busy.shared_memory);
  visitor.optional("sockets", busy.sockets);
  visitor.required("durable_write", busy.durable_write);
}

template <class Visitor, SameStruct<CalibratedMachine> Self>
void describe(Visitor& visitor, Self& machine) {
  visitor.required("processor", machine.processor);
  visitor.required("cores", machine.cores);
  visitor.required("products", machine.products);
  visitor.required("precision", machine.precision);
  visitor.required("measured", machine.measured);
}

template <class Visitor, SameStruct<NodeCalibration> Self>
void describe(Visitor& visitor, Self& calibration) {
  visitor.required("apiVersion", calibration.api_version);
  visitor.required("kind", calibration.kind);
  visitor.required("machine", calibration.machine);
  visitor.required("busy", calibration.busy);
}

namespace {

bool works(const MeasuredExchange& exchange) {
  return exchange.latency > Seconds{0} && exchange.bandwidth > BytesPerSecond{0};
}

bool works(const TrainedShape& s) {
  const auto sizes = {s.layers, s.width, s.heads, s.kv_heads, s.ffn, s.vocab, s.sequence};
  return std::ranges::all_of(sizes, [](std::int64_t size) { return size > 0; });
}

/// What is wrong with an entry; "": nothing.
std::string trouble_of(const BusyRanks& busy) {
  const bool products = std::ranges::all_of(busy.products, [](const MeasuredProduct& each) {
    return each.rows > 0 && each.columns > 0 && each.inner > 0 && each.rate > FlopsPerSecond{0};
  });
  if (!products || busy.products.size() < 2) return "products: two or more, all above 0";
  const bool attention = std::ranges::all_of(busy.attention, [](const MeasuredAttention& each) {
    return each.sequence > 0 && each.heads > 0 && each.head_width > 0 &&
           each.forward > Seconds{0} && each.backward > Seconds{0};
  });
  if (!attention || busy.attention.size() < 2) return "attention: two or more, all above 0";
  const bool models = std::ranges::all_of(busy.models, [](const MeasuredModel& each) {
    return works(each.shape) && each.sequences > 0 && each.gradient > Seconds{0};
  });
  if (!models) return "models: all above 0";
  const bool exchanges = (!busy.shared_memory || works(*busy.shared_memory)) &&
                         (!busy.sockets || works(*busy.sockets));
  if (busy.ranks > 1 && (!busy.shared_memory || !busy.sockets)) {
    return "shared_memory and sockets are missing";
  }
  const bool rates = busy.copy > BytesPerSecond{0} && busy.durable_write > BytesPerSecond{0};
  if (!exchanges || busy.optimizer <= Seconds{0} || !rates) {
    return "all figures are above 0";
  }
  return "";
}

}  // namespace

Model model_of(const TrainedShape& shape) {
  Transformer transformer{.hidden = shape.width,
                          .vocab = shape.vocab,
                          .positions_max = shape.sequence,
                          .ffn = shape.ffn,
                          .layers = std::vector<Layer>(static_cast<std::size_t>(shape.layers)),
                          .gated = shape.gated,
                          .mlp_bias = !shape.gated,
                          .norm_vectors = shape.gated ? 1 : 2,
                          .tied = shape.tied,
                          .learned_positions = shape.gated ? 0 : shape.sequence};
  transformer.attention = {.heads = shape.heads,
                           .kv_heads = shape.kv_heads,
                           .head_dim = shape.width / shape.heads,
                           .qkv_bias = !shape.gated,
                           .output_bias = !shape.gated};
  transformer.full_attention = transformer.attention;
  return {.name = shape.gated ? "llama" : "gpt", .architecture = std::move(transformer)};
}

Result<NodeCalibration> read_node_calibration(const Document& document) {
  NodeCalibration calibration;
  const DocumentNode root = document.root();
  // Another kind of file is recognised by its kind, not by the first key it lacks.
  if (const auto kind = read_elsewhere<NodeCalibration>(root, "kind");
      kind && kind->text() != calibration.kind) {
    return input_error(kind->position(),
                       fmt::format("expected kind NodeCalibration, as `orrery calibrate-node` "
                                   "writes it, found {}",
                                   printable(kind->text(), 60)));
  }
  if (Status read = read_struct(root, calibration, {}); !read) return forward_error(read);
  if (calibration.api_version != "orrery/v1") {
    return input_error(root.position(), "expected apiVersion orrery/v1");
  }
  if (calibration.busy.empty()) return input_error(root.position(), "busy: at least one entry");
  std::uint32_t before = 0;
  for (const BusyRanks& busy : calibration.busy) {
    if (busy.ranks <= before) {
      return input_error(root.position(), "busy: ranks ascend from 1 or more");
    }
    before = busy.ranks;
    if (const std::string trouble = trouble_of(busy); !trouble.empty()) {
      return input_error(root.position(), fmt::format("busy, {} ranks: {}", busy.ranks, trouble));
    }
  }
  return calibration;
}

std::string node_calibration_yaml(const NodeCalibration& calibration) {
  return write_yaml(calibration);
}

Json node_calibration_json(const NodeCalibration& calibration) { return to_json(calibration); }

}  // namespace orrery
