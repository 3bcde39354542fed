#include "verbs/record/record_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "base/format/xxh3.hpp"
#include "verbs/output_file.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSetupBytesMax = std::size_t{1} << 30;

std::string absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.string();
}

/// One run and the texts that its options name. A text that this run does not name is there, too.
struct RunSetup {
  SimulateOptions asked;
  /// The version of the built-in policy of this run; 0: the record is older than policy versions.
  std::uint32_t policy_version = 0;
  std::vector<std::pair<std::string, std::string>> files;
};

template <class Visitor, SameStruct<RunSetup> Self>
void describe(Visitor& visitor, Self& s) {
  describe(visitor, s.asked);
  visitor.optional("policy_version", s.policy_version);
  visitor.optional("files", s.files);
}

Status write_setup(const std::string& at, const SimulateOptions& asked,
                   const SimulateRequest& request, const NamedRun& run) {
  RunSetup setup{asked, run.policy.version, {}};
  setup.asked.scheduling.policies = run.asked;
  setup.asked.machines.price = price_of_accelerators(asked);
  for (std::string* path : {&setup.asked.trace.throughputs, &setup.asked.world.prices,
                            &setup.asked.world.carbon, &setup.asked.trace.file}) {
    *path = absolute(*path);
  }
  setup.files.assign(request.files().texts.begin(), request.files().texts.end());
  return write_output_file(at + "/setup.json", to_json(setup).dump(2) + "\n");
}

/// Replaces the catalog that an earlier run left in the record; without `from` only removes it.
Status copy_catalog(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::remove_all(to, error);
  if (!error && !from.empty()) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive, error);
  }
  if (error) return environment_error(fmt::format("{}: {}", to, error.message()));
  return {};
}

}  // namespace

Result<RunRecord> RunRecord::create(const CommandOptions& options, const SimulateOptions& asked,
                                    const SimulateRequest& request, const NamedRun& run) {
  const std::string at = asked.results.record + "/" + run.file_name;
  std::error_code error;
  std::filesystem::create_directories(at, error);
  if (error) return environment_error(fmt::format("{}: {}", at, error.message()));
  Status written = write_setup(at, asked, request, run);
  if (written) written = copy_catalog(options.catalog_directory, at + "/catalog");
  if (!written) return forward_error(written);
  RunRecord record;
  Result<std::string> setup = recorded_setup(at);
  if (!setup) return forward_error(setup);
  record.setup = *std::move(setup);
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

Result<std::string> recorded_setup(const std::string& directory) {
  const Result<std::string> text = read_file(directory + "/setup.json", kSetupBytesMax);
  if (!text) return tl::unexpected(text.error());
  return fmt::format("setup {:016x}", xxh3(*text));
}

Result<SimulateOptions> recorded_options(const std::string& directory) {
  Result<Document> document = Document::load(directory + "/setup.json");
  if (!document) return forward_error(document);
  RunSetup setup;
  Status status = read_struct(document->root(), setup, {});
  if (!status) return forward_error(status);
  // Records without a price are of a time when everything was rented.
  const std::string rented(word_of(PriceBasis::kOnDemand));
  if (setup.asked.machines.price.empty() && !setup.asked.machines.accelerators.empty())
    setup.asked.machines.price = rented;
  setup.asked.scheduling.policy_version = std::max(setup.policy_version, 1U);
  for (auto& [name, text] : setup.files) setup.asked.files.texts.emplace(name, std::move(text));
  return std::move(setup.asked);
}

CommandOptions with_recorded_catalog(CommandOptions options, const std::string& directory) {
  const std::string overlay = directory + "/catalog";
  std::error_code none;
  const bool has_own = std::filesystem::exists(overlay, none);
  if (options.catalog_directory.empty() && has_own) options.catalog_directory = overlay;
  return options;
}

}  // namespace orrery
