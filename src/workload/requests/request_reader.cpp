#include "workload/requests/request_reader.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/format/gzip.hpp"
#include "base/text/utf8.hpp"
#include "workload/trace_input/trace_reader.hpp"
#include "workload/trace_input/trace_text.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kTokensMax = 1u << 24;

/// Columns of a CSV file by their names in its first line.
struct CsvHead {
  std::vector<std::string_view> cells;
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] == name) return i;
    }
    return std::nullopt;
  }
};

/// Reads the lines of a CSV file; keeps its position for errors.
class CsvLines {
 public:
  CsvLines(std::string_view text, const std::string& file)
      : lines_(without_byte_order_mark(text)), file_(file) {}

  [[nodiscard]] bool next() { return lines_.next(); }
  [[nodiscard]] SourcePosition where() const { return {file_, lines_.number(), 1}; }

  /// Cuts the line into cells. Error: it is no text, or has another number of cells.
  Status cut(std::vector<std::string_view>& cells, std::size_t expected) {
    if (Status fine = check_trace_line(lines_.line(), where()); !fine) return fine;
    if (!split_cells(lines_.line(), ',', cells)) {
      return input_error(where(), "a quotation mark is not closed");
    }
    if (expected > 0 && cells.size() != expected) {
      return input_error(where(), fmt::format("{} cells, expected {}", cells.size(), expected));
    }
    return {};
  }

  [[nodiscard]] SourcePosition where(std::string_view cell) const {
    const auto column = static_cast<int>(cell.data() - lines_.line().data()) + 1;
    return {file_, lines_.number(), column};
  }

 private:
  TraceLines lines_;
  const std::string& file_;
};

Result<std::size_t> column_of(const CsvHead& head, std::string_view name, const CsvLines& lines) {
  if (const auto found = head.find(name)) return *found;
  return input_error(lines.where(), fmt::format("missing column \"{}\"", name));
}

Result<std::uint32_t> read_tokens(std::string_view cell, const CsvLines& lines) {
  std::uint32_t tokens = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), tokens);
  if (code == std::errc() && end == cell.data() + cell.size() && tokens <= kTokensMax) {
    return tokens;
  }
  return input_error(lines.where(cell), fmt::format("\"{}\": expected a number of tokens, 0 to {}",
                                                    printable(cell, 40), kTokensMax));
}

/// Collects requests whose times are absolute; the first arrives at zero.
class RequestRows {
 public:
  explicit RequestRows(const std::string& file) : file_(file) {}

  /// Error: the time is before that of the row before.
  Status add(Instant at, TraceRequest request, int line) {
    if (trace_.requests.empty()) begin_ = at;
    request.arrival = at - begin_;
    const bool back = !trace_.requests.empty() && request.arrival < trace_.requests.back().arrival;
    if (back) {
      return input_error({file_, line, 1}, "the time is before that of the row before");
    }
    if (request.arrival > kTraceSpanMax) {
      return input_error({file_, line, 1}, "the time is more than 90 days after the first one");
    }
    // An answer has a token at least, and so has what it answers.
    request.prompt_tokens = std::max(request.prompt_tokens, 1u);
    request.output_tokens = std::max(request.output_tokens, 1u);
    trace_.requests.push_back(request);
    return {};
  }

  RequestTrace& trace() { return trace_; }

  Result<RequestTrace> finish() {
    if (trace_.requests.empty()) {
      return input_error({file_, 1, 1}, "the file has no request");
    }
    trace_.span = trace_.requests.back().arrival;
    return std::move(trace_);
  }

 private:
  const std::string& file_;
  RequestTrace trace_;
  Instant begin_;
};

Result<RequestTrace> read_azure(std::string_view text, const std::string& file) {
  CsvLines lines(text, file);
  CsvHead head;
  if (!lines.next()) return input_error({file, 1, 1}, "the file is empty");
  if (Status cut = lines.cut(head.cells, 0); !cut) return forward_error(cut);
  const Result<std::size_t> time = column_of(head, "TIMESTAMP", lines);
  const Result<std::size_t> prompt = column_of(head, "ContextTokens", lines);
  const Result<std::size_t> output = column_of(head, "GeneratedTokens", lines);
  for (const Result<std::size_t>* column : {&time, &prompt, &output}) {
    if (!*column) return tl::unexpected<Error>(column->error());
  }
  RequestRows rows(file);
  std::vector<std::string_view> cells;
  while (lines.next()) {
    if (Status cut = lines.cut(cells, head.cells.size()); !cut) return forward_error(cut);
    const Result<Instant> at = parse_wall_clock(cells[*time]);
    if (!at) return input_error(lines.where(cells[*time]), at.error().message);
    const Result<std::uint32_t> in = read_tokens(cells[*prompt], lines);
    if (!in) return tl::unexpected<Error>(in.error());
    const Result<std::uint32_t> out = read_tokens(cells[*output], lines);
    if (!out) return tl::unexpected<Error>(out.error());
    Status added = rows.add(*at, {.prompt_tokens = *in, .output_tokens = *out}, lines.where().line);
    if (!added) return forward_error(added);
  }
  return rows.finish();
}

/// Reads the objects of Mooncake's form, one a line.
class JsonRequests {
 public:
  explicit JsonRequests(const std::string& file) : file_(file), rows_(file) {}

  Result<RequestTrace> read(std::string_view text) {
    TraceLines lines(without_byte_order_mark(text));
    while (lines.next()) {
      line_ = lines.number();
      if (Status added = add(lines.line()); !added) return forward_error(added);
    }
    return rows_.finish();
  }

 private:
  [[nodiscard]] tl::unexpected<Error> wrong_line(std::string message) const {
    return input_error({file_, line_, 1}, std::move(message));
  }

  Status add(std::string_view line) {
    const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
    if (!json.is_object()) {
      return wrong_line(fmt::format("\"{}\": expected a JSON object", printable(line, 40)));
    }
    const auto time = json.find("timestamp");
    if (time == json.end() || !time->is_number() || !(time->get<double>() >= 0) ||
        time->get<double>() > 1e16) {
      return wrong_line("\"timestamp\": expected milliseconds");
    }
    TraceRequest request;
    const Result<std::uint32_t> prompt = tokens(json, "input_length");
    if (!prompt) return tl::unexpected<Error>(prompt.error());
    request.prompt_tokens = *prompt;
    const Result<std::uint32_t> output = tokens(json, "output_length");
    if (!output) return tl::unexpected<Error>(output.error());
    request.output_tokens = *output;
    if (Status read = read_words(json, request); !read) return read;
    if (Status read = read_chain(json, request); !read) return read;
    return rows_.add(instant_of(*time), request, line_);
  }

  /// Whole milliseconds are read exactly, at any time of day since 1970.
  static Instant instant_of(const nlohmann::json& ms) {
    if (ms.is_number_integer()) return Instant() + Duration::milliseconds(ms.get<std::int64_t>());
    return Instant() + Duration::from_seconds(ms.get<double>() * 1e-3);
  }

  [[nodiscard]] Result<std::uint32_t> tokens(const nlohmann::json& json, const char* key) const {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number_integer()) {
      const auto count = found->get<std::int64_t>();
      if (count >= 0 && count <= kTokensMax) return static_cast<std::uint32_t>(count);
    }
    return wrong_line(fmt::format("\"{}\": expected a number of tokens, 0 to {}", key, kTokensMax));
  }

  Status read_words(const nlohmann::json& json, TraceRequest& request) {
    if (const auto found = json.find("class"); found != json.end()) {
      if (*found == "batch") {
        request.request_class = RequestClass::kBatch;
      } else if (*found != "interactive") {
        return wrong_line("\"class\": expected interactive or batch");
      }
    }
    const auto tenant = json.find("tenant");
    if (tenant == json.end()) return {};
    if (!tenant->is_string()) return wrong_line("\"tenant\": expected a name");
    const auto& name = tenant->get_ref<const std::string&>();
    std::vector<std::string>& names = rows_.trace().tenants;
    const auto [at, added] = tenants_.try_emplace(name, static_cast<std::uint32_t>(names.size()));
    if (added) names.push_back(name);
    request.tenant = at->second;
    return {};
  }

  /// Numbers the blocks in the order of their first use.
  Status read_chain(const nlohmann::json& json, TraceRequest& request) {
    const auto found = json.find("hash_ids");
    if (found == json.end() || (found->is_array() && found->empty())) return {};
    const std::uint32_t expected = trace_blocks_of(std::max(request.prompt_tokens, 1u));
    if (!found->is_array() || found->size() != expected) {
      return wrong_line(fmt::format("\"hash_ids\": expected {} numbers, one for each {} tokens",
                                    expected, kTraceBlockTokens));
    }
    RequestTrace& trace = rows_.trace();
    request.chain_begin = static_cast<std::uint32_t>(trace.chains.size());
    request.chain_size = expected;
    for (const nlohmann::json& each : *found) {
      if (!each.is_number_integer()) return wrong_line("\"hash_ids\": expected whole numbers");
      const auto [at, added] = blocks_.try_emplace(each.get<std::int64_t>(), trace.blocks);
      if (added) ++trace.blocks;
      trace.chains.push_back(at->second);
    }
    return {};
  }

  const std::string& file_;
  RequestRows rows_;
  int line_ = 0;
  std::unordered_map<std::int64_t, std::uint32_t> blocks_;
  std::unordered_map<std::string, std::uint32_t> tenants_ = {{"", 0}};
};

Result<RequestFormat> guess_format(std::string_view text, const std::string& file) {
  TraceLines lines(without_byte_order_mark(text));
  if (!lines.next()) return input_error({file, 1, 1}, "the file is empty, expected requests");
  const std::string_view line = trimmed(lines.line());
  if (line.starts_with('{')) return RequestFormat::kMooncake;
  if (line.starts_with("TIMESTAMP,")) return RequestFormat::kAzure;
  if (line.starts_with("t_s,")) return RequestFormat::kServegen;
  for (const std::string_view word : {"apiVersion", "kind", "#", "---"}) {
    if (line.starts_with(word)) return RequestFormat::kOrrery;
  }
  return input_error({file, lines.number(), 1},
                     fmt::format("\"{}\" is the first line of no known format of requests; "
                                 "expected one of azure, mooncake, servegen, orrery",
                                 printable(line, 60)));
}

Result<std::string> plain(std::string_view bytes, const std::string& file) {
  if (!is_gzip(bytes)) return std::string(bytes);
  Result<std::string> text = gunzip(bytes, kTraceBytesMax);
  if (!text) return input_error({file, 0, 0}, std::move(text.error().message));
  return text;
}

/// Draws the requests of rates alone, with the lengths that a spec has by default.
Result<RequestTrace> draw_from_rates(std::string_view text, const std::string& file,
                                     std::uint64_t seed) {
  Result<std::vector<RateWindow>> rates = read_rates(text, file);
  if (!rates) return forward_error(rates);
  RequestSpec spec;
  spec.where = {file, 1, 1};
  return generate_requests(spec, *std::move(rates), seed);
}

Result<RequestSpec> spec_of(std::string_view text, const std::string& file) {
  const Result<Document> document = Document::parse(text, file);
  if (!document) return tl::unexpected<Error>(document.error());
  return read_request_spec(*document);
}

}  // namespace

Result<std::vector<RateWindow>> read_rates(std::string_view bytes, const std::string& file) {
  Result<std::string> text = plain(bytes, file);
  if (!text) return forward_error(text);
  CsvLines lines(*text, file);
  CsvHead head;
  if (!lines.next()) return input_error({file, 1, 1}, "the file is empty");
  if (Status cut = lines.cut(head.cells, 0); !cut) return forward_error(cut);
  const Result<std::size_t> time = column_of(head, "t_s", lines);
  if (!time) return tl::unexpected<Error>(time.error());
  const Result<std::size_t> rate = column_of(head, "rate_req_per_s", lines);
  if (!rate) return tl::unexpected<Error>(rate.error());
  std::vector<RateWindow> windows;
  std::vector<std::string_view> cells;
  while (lines.next()) {
    if (Status cut = lines.cut(cells, head.cells.size()); !cut) return forward_error(cut);
    const auto begin = parse_nanoseconds(cells[*time], TimeUnit::kSeconds);
    if (!begin || *begin < 0) {
      return input_error(lines.where(cells[*time]), "expected seconds since the beginning");
    }
    const std::string_view cell = cells[*rate];
    double value = 0;
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (code != std::errc() || end != cell.data() + cell.size() || !(value >= 0 && value <= 1e6)) {
      return input_error(lines.where(cell), "expected requests a second, 0 to 1000000");
    }
    if (!windows.empty() && Duration::nanoseconds(*begin) <= windows.back().begin) {
      return input_error(lines.where(cells[*time]), "expected a time after that of the row before");
    }
    windows.push_back({Duration::nanoseconds(*begin), value});
  }
  if (windows.empty()) return input_error({file, 1, 1}, "the file has no rate");
  return windows;
}

Result<RequestTrace> read_requests(std::string_view bytes, const std::string& file,
                                   const RequestOptions& options) {
  Result<std::string> text = plain(bytes, file);
  if (!text) return forward_error(text);
  std::optional<RequestFormat> format = options.format;
  if (!format) {
    const Result<RequestFormat> guessed = guess_format(*text, file);
    if (!guessed) return tl::unexpected<Error>(guessed.error());
    format = *guessed;
  }
  switch (*format) {
    case RequestFormat::kAzure:
      return read_azure(*text, file);
    case RequestFormat::kMooncake:
      return JsonRequests(file).read(*text);
    case RequestFormat::kServegen:
      return draw_from_rates(*text, file, options.seed);
    case RequestFormat::kOrrery:
      break;
  }
  Result<RequestSpec> spec = spec_of(*text, file);
  if (!spec) return forward_error(spec);
  if (!spec->rates.empty()) {
    return input_error(spec->where,
                       "\"rates\" names a file, expected \"rate\" where files cannot "
                       "be read");
  }
  return generate_requests(*spec, {}, options.seed);
}

Result<RequestTrace> load_requests(const std::string& path, const RequestOptions& options) {
  Result<std::string> bytes = read_file(path, kTraceBytesMax);
  if (!bytes) return forward_error(bytes);
  const std::string file = path == "-" ? "<stdin>" : path;
  Result<std::string> text = plain(*bytes, file);
  if (!text) return forward_error(text);
  Result<RequestFormat> format =
      options.format ? Result<RequestFormat>(*options.format) : guess_format(*text, file);
  if (!format) return forward_error(format);
  if (*format != RequestFormat::kOrrery) {
    return read_requests(*text, file, {.format = *format, .seed = options.seed});
  }
  Result<RequestSpec> spec = spec_of(*text, file);
  if (!spec) return forward_error(spec);
  std::vector<RateWindow> windows;
  if (!spec->rates.empty()) {
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / spec->rates;
    Result<std::string> rates = read_file(beside.string(), kTraceBytesMax);
    if (!rates) return forward_error(rates);
    Result<std::vector<RateWindow>> read = read_rates(*rates, beside.string());
    if (!read) return forward_error(read);
    windows = *std::move(read);
  }
  return generate_requests(*spec, std::move(windows), options.seed);
}

}  // namespace orrery
