#include "twin/serving/pace_file.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "base/format/gzip.hpp"
#include "base/text/utf8.hpp"
#include "workload/trace_input/trace_reader.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {
namespace {

/// Columns of a log, in the order of Columns.
constexpr std::array<std::string_view, 5> kColumns = {
    "prefill_tokens", "prefill_pairs", "decode_sequences", "decode_context", "seconds"};
using Columns = std::array<std::size_t, kColumns.size()>;
using Cells = std::vector<std::string_view>;

Result<Columns> columns_of(const Cells& head, const SourcePosition& where) {
  Columns columns{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    columns[i] = head.size();
    for (std::size_t cell = 0; cell < head.size(); ++cell) {
      if (head[cell] == kColumns[i]) columns[i] = cell;
    }
    if (columns[i] == head.size()) {
      return input_error(where, fmt::format("missing column \"{}\"", kColumns[i]));
    }
  }
  return columns;
}

Result<EngineStepSample> sample_of(const Cells& cells, const Columns& columns,
                                   const SourcePosition& where) {
  std::array<double, kColumns.size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string_view cell = cells[columns[i]];
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), values[i]);
    if (code == std::errc() && end == cell.data() + cell.size() && values[i] >= 0) continue;
    return input_error(
        where, fmt::format("{}: \"{}\", expected a number", kColumns[i], printable(cell, 40)));
  }
  return EngineStepSample{.work = {.sequences = values[2],
                                   .context = values[3],
                                   .prompt = values[0],
                                   .prompt_context = values[1]},
                          .seconds = values[4]};
}

/// Limits of the terms, far above those of any engine, within which times do not overflow.
Status check_terms(const EngineStepCost& cost, const SourcePosition& where) {
  const std::array<std::pair<double, double>, 5> terms = {{{cost.step_s, 100},
                                                           {cost.sequence_s, 1},
                                                           {cost.context_token_s, 1e-4},
                                                           {cost.prompt_token_s, 1},
                                                           {cost.prompt_pair_s, 1e-3}}};
  for (const auto& [term, limit] : terms) {
    if (term >= 0 && term <= limit) continue;
    return input_error(where, fmt::format("a term of {} s, expected 0 to {}", term, limit));
  }
  if (is_known(cost)) return {};
  return input_error(where, "every term is 0, expected one above it");
}

Result<EngineStepFit> fit_log(std::string_view text, const std::string& file) {
  TraceLines lines(without_byte_order_mark(text));
  Cells cells;
  (void)lines.next();
  if (!split_cells(lines.line(), ',', cells)) {
    return input_error({file, 1, 1}, "a quotation mark is not closed");
  }
  const Result<Columns> columns = columns_of(cells, {file, lines.number(), 1});
  if (!columns) return tl::unexpected<Error>(columns.error());
  const std::size_t width = cells.size();
  std::vector<EngineStepSample> samples;
  while (lines.next()) {
    const SourcePosition where{file, lines.number(), 1};
    if (!split_cells(lines.line(), ',', cells) || cells.size() != width) {
      return input_error(where, fmt::format("{} cells, expected {}", cells.size(), width));
    }
    Result<EngineStepSample> sample = sample_of(cells, *columns, where);
    if (!sample) return forward_error(sample);
    samples.push_back(*sample);
  }
  Result<EngineStepFit> fit = fit_engine_step_cost(samples);
  if (!fit) return input_error({file, 0, 0}, fit.error().message);
  if (Status fine = check_terms(fit->cost, {file, 0, 0}); !fine) return forward_error(fine);
  return fit;
}

Result<EngineStepFit> read_terms(std::string_view text, const std::string& file) {
  const Result<Document> document = Document::parse(text, file);
  if (!document) return tl::unexpected<Error>(document.error());
  EngineStepFit fit;
  if (Status read = read_struct(document->root(), fit.cost, {}); !read) return forward_error(read);
  const SourcePosition where = document->root().position();
  if (Status fine = check_terms(fit.cost, where); !fine) return forward_error(fine);
  return fit;
}

}  // namespace

Result<EngineStepFit> read_pace(std::string_view text, const std::string& file) {
  TraceLines lines(without_byte_order_mark(text));
  if (!lines.next()) return input_error({file, 1, 1}, "the file is empty, expected a log of steps");
  const bool log = lines.line().find(',') != std::string_view::npos &&
                   lines.line().find(':') == std::string_view::npos;
  return log ? fit_log(text, file) : read_terms(text, file);
}

Result<EngineStepFit> load_pace(const std::string& path) {
  Result<std::string> bytes = read_file(path, kTraceBytesMax);
  if (!bytes) return forward_error(bytes);
  if (!is_gzip(*bytes)) return read_pace(*bytes, path);
  Result<std::string> text = gunzip(*bytes, kTraceBytesMax);
  if (!text) return input_error({path, 0, 0}, std::move(text.error().message));
  return read_pace(*text, path);
}

}  // namespace orrery
