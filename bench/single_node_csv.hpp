// bench/single_node_csv.hpp - a table of measured runs on one node of A100s as a run file's text.
//
// Columns: n,gbs,mbs,hidden,heads,layers,seq,tp,dp,pp,iteration_ms; lines that start with "#" or a
// letter are skipped. The software is what vTrain measured (Bang et al. 2023): Megatron-DeepSpeed
// in fp16, all activations recomputed. Cost: O(rows).
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace orrery {

/// One row of the table. Precondition: `v` holds its eleven columns.
inline nlohmann::json single_node_row(const std::array<double, 11>& v, std::size_t number) {
  const auto [n, batch, micro_batch, hidden, heads, layers, sequence, tp, dp, pp, milliseconds] = v;
  nlohmann::json row;
  row["id"] = "single-" + std::to_string(number);
  row["group"] = "single_node";
  row["model"] = {{"name", "GPT"},  {"layers", layers},   {"hidden", hidden},
                  {"heads", heads}, {"kv_heads", heads},  {"head_dim", hidden / heads},
                  {"vocab", 51200}, {"gated_mlp", false}, {"ffn", 4 * hidden},
                  {"seq", sequence}};
  row["accel"] = "A100-80GB-SXM";
  row["n"] = n;
  row["cluster"] = "1 node 8x A100";
  row["par"] = {{"tp", tp}, {"pp", pp},  {"vp", 1},     {"dp", dp},
                {"cp", 1},  {"zero", 0}, {"sp", false}, {"ep", 1}};
  row["mbs"] = micro_batch;
  row["gbs"] = batch;
  row["recompute"] = "full";
  row["precision"] = "fp16";
  row["flash_attn"] = false;
  row["complete"] = true;
  row["result"] = {{"step_s", milliseconds / 1000}};
  return row;
}

inline std::string run_file_of_csv(std::istream& csv) {
  nlohmann::json rows = nlohmann::json::array();
  for (std::string line; std::getline(csv, line);) {
    if (line.empty() || line[0] < '0' || line[0] > '9') continue;
    std::array<double, 11> values{};
    std::istringstream cells(line);
    std::string cell;
    for (double& value : values) {
      if (std::getline(cells, cell, ',')) value = std::stod(cell);
    }
    rows.push_back(single_node_row(values, rows.size()));
  }
  nlohmann::json document;
  document["rows"] = std::move(rows);
  return document.dump();
}

}  // namespace orrery
