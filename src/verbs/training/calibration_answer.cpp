#include "verbs/training/calibration_answer.hpp"

#include <fmt/format.h>

#include "base/system/real_clock.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "node/machine/host_inventory.hpp"
#include "runtime/kernels/gemm.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

template <class Q>
std::string shown(Q value) {
  return print_quantity(value.value(), kind_of<Q>());
}

std::string calibration_text(const NodeCalibration& node) {
  const CalibratedMachine& machine = node.machine;
  std::string text = fmt::format("{}, {} cores; {}, {}\n\n", machine.processor, machine.cores,
                                 machine.products, machine.precision);
  std::vector<TextTable::Column> columns{{"per rank, by number of busy ranks"}};
  for (const BusyRanks& busy : node.busy) {
    columns.push_back({fmt::format("{}", busy.ranks), Align::kRight});
  }
  TextTable table(columns);
  const auto add = [&](const std::string& name, const auto& figure_of) {
    std::vector<std::string> row{name};
    for (const BusyRanks& busy : node.busy) row.push_back(figure_of(busy));
    table.add(std::move(row));
  };
  for (std::size_t i = 0; i < node.busy.front().products.size(); ++i) {
    const MeasuredProduct& size = node.busy.front().products[i];
    add(fmt::format("products {} x {} x {}", size.rows, size.columns, size.inner),
        [i](const BusyRanks& busy) { return shown(busy.products[i].rate); });
  }
  add("memory copied", [](const BusyRanks& busy) { return shown(busy.copy); });
  add("optimizer, per million weights",
      [](const BusyRanks& busy) { return shown(busy.optimizer); });
  const auto exchange = [](const std::optional<MeasuredExchange>& of) {
    return of ? fmt::format("{} + {}", shown(of->latency), shown(of->bandwidth)) : "-";
  };
  add("all-reduce, shared memory",
      [&](const BusyRanks& busy) { return exchange(busy.shared_memory); });
  add("all-reduce, sockets", [&](const BusyRanks& busy) { return exchange(busy.sockets); });
  add("durable writes, all ranks", [](const BusyRanks& busy) { return shown(busy.durable_write); });
  return text + table.text();
}

}  // namespace

VerbAnswer calibration_answer(const NodeCalibration& node) {
  return {calibration_text(node), node_calibration_json(node)};
}

std::string calibration_file(const NodeCalibration& node) {
  return "# Speed of each part of a training step on this machine, per rank, by number of busy "
         "ranks.\n"
         "# Read by `orrery predict` and `orrery report --calibration`.\n" +
         node_calibration_yaml(node);
}

Result<VerbAnswer> report_calibration(const CommandOptions& options, const CalibrateCall& call) {
  const ProductPrecision precision =
      call.precision == "float32" ? ProductPrecision::kFloat32 : ProductPrecision::kBfloat16;
  if (Status able = check_precision(precision); !able) return forward_error(able);
  const RealClock clock;
  if (options.message) {
    options.message(
        fmt::format("measuring with 1 to {} busy ranks, a few seconds each\n", call.ranks));
  }
  Result<std::vector<BusyRanks>> busy = probe_node(clock, {.ranks = rank_counts(call.ranks),
                                                           .precision = precision,
                                                           .directory = call.directory,
                                                           .effort = call.effort});
  if (!busy) return forward_error(busy);
  const NodeInventory host = host_inventory();
  const NodeCalibration node{.machine = {.processor = host.processor,
                                         .cores = host.cores,
                                         .products = gemm_identity(),
                                         .precision = call.precision,
                                         .measured = clock.now_wall()},
                             .busy = *std::move(busy)};
  if (!call.out.empty()) {
    if (Status written = write_output_file(call.out, calibration_file(node)); !written) {
      return forward_error(written);
    }
  }
  return calibration_answer(node);
}

}  // namespace orrery
