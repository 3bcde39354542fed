// bench/measured_runs.hpp - what the rows of a run file measured, beside what a prediction may
// read: source, fold and seconds a step. Only fitting and checking programs look at these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

struct MeasuredRow {
  std::string id;
  std::string source;  ///< the row's group
  int fold = 0;
  bool complete = false;
  std::optional<double> step_seconds;
  std::optional<double> tflops;  ///< an accelerator
  std::string tflops_kind;
  std::optional<double> tokens_s;  ///< an accelerator
  std::optional<double> samples_s;
  std::optional<double> mfu;
  std::optional<double> allocated_gib;
  std::optional<double> reserved_gb;
  bool out_of_memory = false;
  nlohmann::json row;
};

inline std::optional<double> number_in(const nlohmann::json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

/// In file order. Precondition: `text` is a run file of the published form.
inline std::vector<MeasuredRow> measured_rows_of(const std::string& text) {
  const nlohmann::json document = nlohmann::json::parse(text);
  std::vector<MeasuredRow> rows;
  for (const nlohmann::json& row : document.at("rows")) {
    const nlohmann::json& result = row.at("result");
    MeasuredRow measured{.id = row.value("id", ""), .source = row.value("group", "")};
    measured.fold = row.value("fold", 0);
    measured.complete = row.value("complete", false);
    measured.step_seconds = number_in(result, "step_s");
    measured.tflops = number_in(result, "tflops");
    measured.tflops_kind = result.value("tflops_kind", "");
    measured.tokens_s = number_in(result, "tokens_s_dev");
    measured.samples_s = number_in(result, "samples_s");
    measured.mfu = number_in(result, "mfu");
    measured.allocated_gib = number_in(result, "mem_alloc_gib");
    measured.reserved_gb = number_in(result, "mem_gb_max_first_last_node");
    measured.out_of_memory = result.value("oom", false);
    measured.row = row;
    rows.push_back(std::move(measured));
  }
  return rows;
}

/// Reads measured rows from a file.
inline std::vector<MeasuredRow> read_measured_rows(const std::string& path) {
  std::ifstream file(path);
  return measured_rows_of(std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace orrery
