// orrery calibrate-node
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/system/real_clock.hpp"
#include "base/text/quantity_text.hpp"
#include "base/text/text_table.hpp"
#include "node/machine/host_inventory.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/training/node_probe.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

struct CalibrateOptions {
  std::uint32_t ranks = 4;
  ProbeEffort effort = ProbeEffort::kWhole;
  std::string precision = "float32";
  std::string directory = ".";
  std::string out;
};

constexpr std::uint32_t kRanksMax = 64;

template <class Q>
std::string shown(Q value) {
  return print_quantity(value.value(), kind_of<Q>());
}

/// A row a figure, a column a number of busy ranks.
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

Status calibrate(const CommandOptions& options, const CalibrateOptions& wanted) {
  const ProductPrecision precision =
      wanted.precision == "float32" ? ProductPrecision::kFloat32 : ProductPrecision::kBfloat16;
  if (Status able = check_precision(precision); !able) return able;
  const RealClock clock;
  print_message(
      fmt::format("measuring with 1 to {} busy ranks, a few seconds each\n", wanted.ranks));
  Result<std::vector<BusyRanks>> busy = probe_node(clock, {.ranks = rank_counts(wanted.ranks),
                                                           .precision = precision,
                                                           .directory = wanted.directory,
                                                           .effort = wanted.effort});
  if (!busy) return forward_error(busy);
  const NodeInventory host = host_inventory();
  const NodeCalibration node{.machine = {.processor = host.processor,
                                         .cores = host.cores,
                                         .products = gemm_identity(),
                                         .precision = wanted.precision,
                                         .measured = clock.now_wall()},
                             .busy = *std::move(busy)};
  const std::string text =
      "# Speed of each part of a training step on this machine, per rank, by number of busy "
      "ranks.\n"
      "# Read by `orrery predict` and `orrery report --calibration`.\n" +
      node_calibration_yaml(node);
  if (!wanted.out.empty()) {
    if (Status written = write_output_file(wanted.out, text); !written) return written;
  }
  const bool json = options.output == OutputFormat::kJson;
  print_text(json ? node_calibration_json(node) : calibration_text(node));
  return {};
}

}  // namespace

void add_calibrate_node_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto wanted = std::make_shared<CalibrateOptions>();
  CLI::App& verb =
      *app.add_subcommand("calibrate-node", "measure the training speed of this machine's CPUs");
  verb.add_option("--ranks", wanted->ranks,
                  "largest number of busy ranks; 1, 2, 4 .. up to this number are measured")
      ->check(CLI::Range(1U, kRanksMax))
      ->capture_default_str();
  verb.add_option("--precision", wanted->precision,
                  "precision of matrix products: float32 or bfloat16")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  verb.add_flag_callback(
      "--quick", [wanted] { wanted->effort = ProbeEffort::kQuick; },
      "measure roughly, within two seconds");
  verb.add_option("--directory", wanted->directory, "directory on the disk to measure")
      ->capture_default_str();
  verb.add_option("--out", wanted->out, "file for the calibration (YAML)")->type_name("FILE");
  verb.footer(
      "The measurement takes about 20 s. Run no other work on the machine during that "
      "time.\n\nExamples:\n"
      "  orrery calibrate-node --ranks 4 --out node.yaml\n"
      "  orrery predict examples/training/gpt-small.yaml --calibration node.yaml");
  verb.callback([&options, &chosen, wanted] {
    chosen = [&options, wanted] { return calibrate(options, *wanted); };
  });
}

}  // namespace orrery
