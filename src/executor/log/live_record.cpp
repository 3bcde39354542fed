#include "executor/log/live_record.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/yaml_writer.hpp"
#include "store/history.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSnapshotMax = std::size_t{4} << 30;
constexpr std::size_t kTextBytesMax = std::size_t{64} << 20;

JournalOptions journal_options(const LiveRecord::Begin& begin, JournalSink& sink) {
  const Result<SetupTexts> setup = setup_texts(begin.texts);
  return {.writer = begin.writer,
          .setup = setup ? setup_digest(*setup) : std::string(),
          .before = begin.history_hash,
          .sink = &sink};
}

Status write_whole(const std::string& path, std::string_view bytes) {
  Result<std::unique_ptr<FileSink>> file = FileSink::create(path);
  if (!file) return forward_error(file);
  (*file)->write(bytes);
  return (*file)->close();
}

Result<StoreTexts> read_texts(const std::string& directory) {
  StoreTexts texts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/texts", error)) {
    Result<std::string> text = read_file(entry.path().string(), kTextBytesMax);
    if (!text) return forward_error(text);
    texts.emplace(entry.path().filename().string(), *std::move(text));
  }
  if (error) return environment_error(fmt::format("{}/texts: {}", directory, error.message()));
  return texts;
}

}  // namespace

LiveRecord::LiveRecord(std::string directory, std::unique_ptr<FileSink> inputs,
                       std::unique_ptr<FileSink> events, const Begin& begin)
    : directory_(std::move(directory)),
      inputs_(std::move(inputs)),
      events_(std::move(events)),
      input_log_(journal_options(begin, *inputs_)),
      event_log_(journal_options(begin, *events_)) {}

Result<std::unique_ptr<LiveRecord>> LiveRecord::create(const std::string& directory,
                                                       const Begin& begin) {
  std::error_code error;
  std::filesystem::create_directories(directory + "/texts", error);
  if (error) return environment_error(fmt::format("{}: {}", directory, error.message()));
  if (!begin.catalog.empty()) {
    std::filesystem::copy(begin.catalog, directory + "/catalog",
                          std::filesystem::copy_options::recursive, error);
    if (error) return environment_error(fmt::format("{}: {}", begin.catalog, error.message()));
  }
  ControllerSettings settings = begin.settings;
  settings.api_version = "orrery/v1";
  settings.kind = "Controller";
  if (Status put = write_whole(directory + "/live.yaml", write_yaml(settings)); !put) {
    return forward_error(put);
  }
  if (Status put = write_whole(directory + "/begin", begin.snapshot); !put) {
    return forward_error(put);
  }
  Result<std::unique_ptr<FileSink>> inputs = FileSink::create(directory + "/inputs.log");
  if (!inputs) return forward_error(inputs);
  Result<std::unique_ptr<FileSink>> events = FileSink::create(directory + "/events.log");
  if (!events) return forward_error(events);
  auto record =
      std::make_unique<LiveRecord>(directory, *std::move(inputs), *std::move(events), begin);
  if (Status put = record->put_texts(begin.texts); !put) return forward_error(put);
  return record;
}

Status LiveRecord::put_texts(const StoreTexts& texts) const {
  for (const auto& [name, text] : texts) {
    if (Status put = write_whole(directory_ + "/texts/" + name, text); !put) return put;
  }
  return {};
}

void LiveRecord::append(Instant at, std::span<const Event> events) {
  for (const Event& event : events) event_log_.append(at, event);
}

Status LiveRecord::flush() {
  if (Status flushed = inputs_->flush(); !flushed) return flushed;
  return events_->flush();
}

bool is_live_record(const std::string& directory) {
  std::error_code error;
  return std::filesystem::exists(directory + "/live.yaml", error);
}

Result<RecordedBegin> open_live_record(const std::string& directory, const Facts& facts) {
  const Result<Document> document = Document::load(directory + "/live.yaml");
  if (!document) return tl::unexpected(document.error());
  const Result<ControllerSettings> settings = read_controller_settings(*document);
  if (!settings) return tl::unexpected(settings.error());
  const Result<StoreTexts> texts = read_texts(directory);
  if (!texts) return tl::unexpected(texts.error());
  Result<std::unique_ptr<LiveSetup>> setup = LiveSetup::make(facts, *texts, *settings);
  if (!setup) return forward_error(setup);
  const Result<std::string> sealed = read_file(directory + "/begin", kSnapshotMax);
  if (!sealed) return tl::unexpected(sealed.error());
  const Result<OpenedSnapshot> opened = open_snapshot(*sealed);
  if (!opened) return tl::unexpected(opened.error());
  auto core = std::make_unique<Core>((*setup)->control());
  if (Status restored = core->restore(opened->state); !restored) return forward_error(restored);
  (*setup)->use(core->state());
  core->resume();
  return RecordedBegin{*std::move(setup), std::move(core)};
}

}  // namespace orrery
