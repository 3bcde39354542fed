#include "apps/orrery/record_file.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "apps/orrery/output_file.hpp"
#include "apps/orrery/simulate_text.hpp"
#include "base/document.hpp"

namespace orrery {
namespace {

std::string absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.string();
}

}  // namespace

Result<RunRecord> RunRecord::create(const std::string& directory, const std::string& label,
                                    const SimulateOptions& asked) {
  const std::string at = directory + "/" + file_name_of(label);
  std::error_code error;
  std::filesystem::create_directories(at, error);
  if (error) return environment_error(fmt::format("{}: {}", at, error.message()));
  SimulateOptions one = asked;
  one.policies = label;
  for (std::string* path :
       {&one.fleet, &one.tenants, &one.throughputs, &one.prices, &one.carbon, &one.trace}) {
    *path = absolute(*path);
  }
  if (Status status = write_output_file(at + "/setup.json", to_json(one).dump(2) + "\n"); !status) {
    return forward_error(status);
  }
  RunRecord record;
  Result<std::unique_ptr<FileSink>> events = FileSink::create(at + "/events.log");
  if (!events) return forward_error(events);
  Result<std::unique_ptr<FileSink>> inputs = FileSink::create(at + "/inputs.log");
  if (!inputs) return forward_error(inputs);
  record.events = *std::move(events);
  record.inputs = *std::move(inputs);
  return record;
}

Status RunRecord::finish() {
  if (Status status = events->close(); !status) return status;
  return inputs->close();
}

Result<SimulateOptions> recorded_options(const std::string& directory) {
  Result<Document> document = Document::load(directory + "/setup.json");
  if (!document) return forward_error(document);
  SimulateOptions options;
  Status status = read_struct(document->root(), options, {});
  if (!status) return forward_error(status);
  return options;
}

}  // namespace orrery
