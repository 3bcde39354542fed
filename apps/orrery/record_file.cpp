#include "apps/orrery/record_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apps/orrery/output_file.hpp"
#include "apps/orrery/simulate_text.hpp"
#include "base/document.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSetupBytesMax = std::size_t{1} << 20;

std::string absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  return error ? path : full.string();
}

/// The options as JSON, or out of it.
template <class Json, class Options, class Visit>
void each_option(Json& json, Options& o, Visit&& visit) {
  visit(json, "fleet", o.fleet);
  visit(json, "accelerators", o.accelerators);
  visit(json, "trace", o.trace);
  visit(json, "generate", o.generate);
  visit(json, "span", o.span);
  visit(json, "format", o.format);
  visit(json, "from", o.from);
  visit(json, "to", o.to);
  visit(json, "tenants", o.tenants);
  visit(json, "policies", o.policies);
  visit(json, "rules", o.rules);
  visit(json, "information", o.information);
  visit(json, "failures", o.failures);
  visit(json, "arrivals", o.arrivals);
  visit(json, "throughputs", o.throughputs);
  visit(json, "prices", o.prices);
  visit(json, "carbon", o.carbon);
  visit(json, "until", o.until);
  visit(json, "restart", o.restart);
  visit(json, "checkpoint_cost", o.checkpoint_cost);
}

}  // namespace

Result<std::unique_ptr<FileSink>> FileSink::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return environment_error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return std::make_unique<FileSink>(path, file);
}

void FileSink::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) failed_ = true;
}

Status FileSink::close() {
  if (std::fclose(file_.release()) != 0) failed_ = true;
  if (failed_) return environment_error(fmt::format("{}: cannot be written", path_));
  return {};
}

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
  Json json = Json::object();
  each_option(json, one, [](Json& to, const char* key, const std::string& value) {
    if (!value.empty()) to[key] = value;
  });
  json["where"] = one.where;
  json["seed"] = one.seed;
  json["jobs"] = one.jobs;
  json["load"] = one.load;
  json["spares"] = one.spares;
  json["skip_bad"] = one.bad_rows == SimulateOptions::Flag::kYes;
  json["map"] = one.map == SimulateOptions::Flag::kYes;
  if (Status status = write_output_file(at + "/setup.json", json.dump(2) + "\n"); !status) {
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
  const std::string path = directory + "/setup.json";
  Result<std::string> text = read_file(path, kSetupBytesMax);
  if (!text) return forward_error(text);
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return input_error({path, 1, 1}, "expected the setup of a record");
  SimulateOptions o;
  each_option(json, o, [](const Json& from, const char* key, std::string& value) {
    if (from.contains(key) && from[key].is_string()) value = from[key].get<std::string>();
  });
  if (json.contains("where") && json["where"].is_array()) {
    for (const Json& each : json["where"]) {
      if (each.is_string()) o.where.push_back(each.get<std::string>());
    }
  }
  if (json.contains("seed") && json["seed"].is_number_unsigned()) {
    o.seed = json["seed"].get<std::uint64_t>();
  }
  if (json.contains("spares") && json["spares"].is_number_unsigned()) {
    o.spares = json["spares"].get<std::uint32_t>();
  }
  if (json.contains("jobs") && json["jobs"].is_number_unsigned()) {
    o.jobs = json["jobs"].get<std::uint32_t>();
  }
  if (json.contains("load") && json["load"].is_number()) o.load = json["load"].get<double>();
  const auto flag = [&](const char* key) {
    return json.contains(key) && json[key] == true ? SimulateOptions::Flag::kYes
                                                   : SimulateOptions::Flag::kNo;
  };
  o.bad_rows = flag("skip_bad");
  o.map = flag("map");
  return o;
}

}  // namespace orrery
