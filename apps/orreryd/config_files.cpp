#include "apps/orreryd/config_files.hpp"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <type_traits>

#include "base/format/document.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/spec.hpp"
#include "scheduler/asked_policy.hpp"

namespace orrery {
namespace {

/// A copy of fleet.yaml from the time when it last agreed with the log; with a shared log, the
/// fleet in use.
constexpr const char* kFleetApplied = "fleet.yaml.applied";
constexpr const char* kTenants = "tenants.yaml";
constexpr const char* kPolicyFile = "policy.yaml";
constexpr std::size_t kTextMax = std::size_t{8} << 20;
constexpr const char* kPolicy = "apiVersion: orrery/v1\nkind: Policy\nname: hardware-aware\n";

/// The files whose texts the log keeps, with the text in effect.
std::map<std::string, std::string> texts_in_effect(const Controller& controller) {
  const State& state = controller.state();
  const SetupTexts& begun = controller.fleet().begun_with();
  return {{kTenants, state.tenants_text().empty() ? begun.tenants : state.tenants_text()},
          {kPolicyFile, state.policy_text().empty() ? begun.policy : state.policy_text()}};
}

/// Refuses a policy with a key that has no effect. The core accepts it, because logs of earlier
/// releases may hold one.
template <class Command>
Status check_request(const std::string& yaml, const std::string& file) {
  if constexpr (std::is_same_v<Command, SetPolicy>) {
    const Result<Document> document = Document::parse(yaml, file);
    if (!document) return tl::unexpected(document.error());
    if (const Result<Policy> policy = asked_policy(*document); !policy) {
      return tl::unexpected(policy.error());
    }
  }
  return {};
}

}  // namespace

bool ConfigFiles::is_there(const std::string& name) const {
  return ::access((directory_ + "/" + name).c_str(), F_OK) == 0;
}

Result<Facts> ConfigFiles::load_facts() {
  if (is_there("catalog")) overlay_ = directory_ + "/catalog";
  Result<std::vector<FactOverlay>> overlays = read_fact_overlays(overlay_);
  if (!overlays) return forward_error(overlays);
  return Facts::load(*std::move(overlays));
}

void ConfigFiles::begin(Controller& controller, const Facts& facts, LogOwner owner) {
  facts_ = &facts;
  owner_ = owner;
  report_settings(controller);
  if (owner == LogOwner::kThisController) {
    take_over_files(controller);
  } else {
    report_files(controller);
  }
  complete_fleet(controller);
  compare_fleet(controller);
}

/// Returns an empty text where there is no such file.
Result<std::string> ConfigFiles::text(const std::string& name) {
  StorageResult<std::string> bytes = env_.storage.read_file(directory_ + "/" + name, kTextMax);
  if (bytes) return *std::move(bytes);
  if (bytes.error().failure == StorageFailure::kNotFound) return std::string();
  return forward_error(bytes);
}

Result<SetupTexts> ConfigFiles::setup_texts() {
  SetupTexts texts;
  Result<std::string> fleet = text("fleet.yaml");
  if (!fleet) return forward_error(fleet);
  if (fleet->empty()) {
    return input_error({directory_ + "/fleet.yaml", 0, 0},
                       "expected a Fleet file; `orrery fleet generate` and `orrery up` write one");
  }
  Result<std::string> tenants = text("tenants.yaml");
  if (!tenants) return forward_error(tenants);
  Result<std::string> policy = text("policy.yaml");
  if (!policy) return forward_error(policy);
  texts.fleet = *std::move(fleet);
  texts.tenants = *std::move(tenants);
  texts.policy = *std::move(policy);
  if (texts.policy.empty()) texts.policy = kPolicy;
  texts.writer = std::string("orreryd ") + ORRERY_VERSION;
  return texts;
}

Result<ControllerSettings> ConfigFiles::settings() {
  Result<std::string> yaml = text("controller.yaml");
  if (!yaml) return forward_error(yaml);
  if (yaml->empty()) return ControllerSettings{};
  const Result<Document> document = Document::parse(*yaml, directory_ + "/controller.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_controller_settings(*document);
}

std::optional<ControllerSettings> ConfigFiles::settings_now() {
  Result<ControllerSettings> read = settings();
  if (read) return *std::move(read);
  log_.error(env_.clock.now_wall(), "file refused",
             {{"file", "controller.yaml"}, {"why", read.error().text()}});
  return std::nullopt;
}

Result<ManagersSpec> ConfigFiles::managers() {
  Result<std::string> yaml = text("managers.yaml");
  if (!yaml) return forward_error(yaml);
  managers_ = *yaml;
  if (yaml->empty()) return ManagersSpec{};
  const Result<Document> document = Document::parse(*yaml, directory_ + "/managers.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_managers(*document);
}

std::optional<ManagersSpec> ConfigFiles::changed_managers() {
  const std::optional<std::string> before = managers_;
  Result<ManagersSpec> spec = managers();
  if (spec && managers_ != before) return *std::move(spec);
  if (!spec) {
    log_.error(env_.clock.now_wall(), "file refused",
               {{"file", "managers.yaml"}, {"why", spec.error().text()}});
    managers_ = before;
  }
  return std::nullopt;
}

/// Reports a file that was applied once, and was removed.
void ConfigFiles::note_missing(Controller& controller, const std::string& file,
                               const std::string& applied) {
  if (applied.empty() || applied == kPolicy) return;
  const std::string text = file + ": the file is missing; its last applied version stays in effect";
  log_.warning(env_.clock.now_wall(), "file missing", {{"what", text}});
  controller.fleet().drift().note_line(text);
}

template <class Command>
void ConfigFiles::take_over(Controller& controller, const std::string& file,
                            const std::string& now) {
  const Result<std::string> yaml = text(file);
  if (!yaml) {
    return log_.error(env_.clock.now_wall(), "file not read",
                      {{"file", file}, {"why", yaml.error().text()}});
  }
  if (!is_there(file)) return note_missing(controller, file, now);
  if (*yaml == now) return;
  report_changes(controller, file, line_changes(now, *yaml));
  if (yaml->empty()) {
    return log_.error(
        env_.clock.now_wall(), "file refused",
        {{"file", file}, {"why", "the file is empty; the last applied version stays in effect"}});
  }
  if (Status fits = check_request<Command>(*yaml, file); !fits) {
    return log_.error(env_.clock.now_wall(), "file refused",
                      {{"file", file}, {"why", fits.error().text()}});
  }
  controller.command(Command{*yaml}, {}, [this, file](const Result<JobId>& done) {
    const Instant at = env_.clock.now_wall();
    if (done) return log_.info(at, "file taken over", {{"file", file}});
    log_.error(at, "file refused", {{"file", file}, {"why", done.error().text()}});
  });
}

/// Reports what differs of the files that take_over_files() applies.
void ConfigFiles::report_files(Controller& controller) {
  for (const auto& [file, in_effect] : texts_in_effect(controller)) {
    const Result<std::string> yaml = text(file);
    if (!yaml || yaml->empty() || *yaml == in_effect) continue;
    report_changes(controller, file, line_changes(in_effect, *yaml));
    log_.warning(env_.clock.now_wall(), "file differs from the log and has no effect",
                 {{"file", file}, {"apply", "SIGHUP to the controller that leads"}});
  }
}

void ConfigFiles::take_over_files(Controller& controller) {
  const std::map<std::string, std::string> texts = texts_in_effect(controller);
  take_over<SetTenants>(controller, kTenants, texts.at(kTenants));
  take_over<SetPolicy>(controller, kPolicyFile, texts.at(kPolicyFile));
}

void ConfigFiles::report_changes(Controller& controller, const std::string& file,
                                 const std::vector<LineChange>& changes) {
  for (const LineChange& change : changes) {
    const std::string text = change_text(file, change);
    log_.warning(env_.clock.now_wall(), "file changed", {{"what", text}});
    controller.fleet().drift().note_line(text);
  }
}

/// The log does not keep controller.yaml, so a copy of its last applied text lies beside it.
void ConfigFiles::report_settings(Controller& controller) {
  const Result<std::string> yaml = text("controller.yaml");
  if (!yaml || !settings()) return;
  const std::string path = directory_ + "/controller.yaml";
  const bool known = is_there("controller.yaml.applied");
  if (yaml->empty() && !known) return;
  report_changes(controller, "controller.yaml", changes_since_applied(env_.storage, path, *yaml));
}

/// Writes the fleet of the log into fleet.yaml if the file was not edited since it was last
/// applied: an earlier controller ended between the change and the writing of the file.
void ConfigFiles::complete_fleet(Controller& controller) {
  const Result<std::string> yaml = text("fleet.yaml");
  const Result<std::string> applied = text(kFleetApplied);
  const std::string& holds = controller.fleet().text();
  if (!yaml || !applied || *yaml != *applied || *yaml == holds) return;
  if (const Status kept = keep("fleet.yaml", holds); !kept) {
    return log_.error(env_.clock.now_wall(), "fleet.yaml not written",
                      {{"why", kept.error().text()}});
  }
  log_.warning(env_.clock.now_wall(), "fleet.yaml has the log's fleet now",
               {{"why", "an earlier controller ended while the fleet changed"}});
}

/// The fleet changes by a call alone, so a file that differs is reported.
void ConfigFiles::compare_fleet(Controller& controller) {
  const Result<std::string> yaml = text("fleet.yaml");
  if (!yaml) return;
  const std::string& holds = controller.fleet().text();
  const Topology& in_use = *controller.state().setup().topology;
  if (*yaml == holds) {
    if (const Status kept = keep(kFleetApplied, holds); !kept) {
      log_.warning(env_.clock.now_wall(), "fleet.yaml.applied not written",
                   {{"why", kept.error().text()}});
    }
    return controller.fleet().drift().compare(in_use, in_use);
  }
  report_changes(controller, "fleet.yaml", line_changes(holds, *yaml));
  const std::string path = directory_ + "/fleet.yaml";
  if (owner_ == LogOwner::kShared) {
    report_shared_fleet(controller);
  } else {
    log_.warning(env_.clock.now_wall(),
                 "fleet.yaml was changed, and has no effect before it is applied",
                 {{"run", "orrery fleet apply " + path}});
  }
  const auto topology = [&]() -> Result<Topology> {
    const Result<FleetFile> file = read_fleet_file(*yaml, path);
    if (!file) return tl::unexpected(file.error());
    const Result<Facts> facts = facts_->with(file->facts);
    if (!facts) return tl::unexpected(facts.error());
    return build_topology(file->spec, facts->catalog());
  }();
  if (topology) return controller.fleet().drift().compare(*topology, in_use);
  log_.warning(env_.clock.now_wall(), "fleet.yaml was changed and is no longer a valid fleet",
               {{"why", topology.error().text()}});
}

/// Another leader may have changed the fleet since this file was written: applying the file could
/// retire nodes.
void ConfigFiles::report_shared_fleet(Controller& controller) {
  const std::string path = directory_ + "/fleet.yaml";
  if (const Status kept = keep(kFleetApplied, controller.fleet().text()); !kept) {
    log_.warning(env_.clock.now_wall(), "fleet.yaml.applied not written",
                 {{"why", kept.error().text()}});
  }
  const std::string advice = fmt::format(
      "the fleet in use is that of the log, in {0}.applied: copy it over {0}, unless "
      "the file is an edit that is still to be applied",
      path);
  log_.warning(env_.clock.now_wall(), "fleet.yaml is another fleet than the log's",
               {{"what", advice}});
  controller.fleet().drift().note_line("fleet.yaml: " + advice);
}

/// A process that ends before the file is written completes this at its next start.
void ConfigFiles::keep_fleet(Controller& controller, const std::string& fleet) {
  if (const Status kept = keep("fleet.yaml", fleet); !kept) {
    log_.error(env_.clock.now_wall(), "fleet.yaml not written: the log has the present fleet",
               {{"why", kept.error().text()}});
  }
  compare_fleet(controller);
}

void ConfigFiles::reload(Controller& controller) {
  compare_fleet(controller);
  if (const std::optional<ControllerSettings> settings = settings_now()) {
    controller.set_limits(*settings);
    report_settings(controller);
    log_.info(env_.clock.now_wall(), "files read again", {});
  }
  take_over_files(controller);
}

/// Writes a file unless it has that content already: a controller thus starts on a full disk, too.
Status ConfigFiles::keep(const std::string& name, const std::string& bytes) {
  if (const Result<std::string> there = text(name); there && *there == bytes) return {};
  StorageStatus put = env_.storage.write_file(directory_ + "/" + name, bytes);
  if (!put) return forward_error(put);
  return {};
}

Status ConfigFiles::keep_first(const std::string& name, const std::string& bytes) {
  if (!text(name).value_or("").empty()) return {};
  const std::string path = directory_ + "/" + name;
  const std::string own = fmt::format("{}.{}", path, ::getpid());
  if (StorageStatus put = env_.storage.write_file(own, bytes); !put) return forward_error(put);
  std::error_code failed;
  std::filesystem::create_hard_link(own, path, failed);
  std::error_code stays;
  std::filesystem::remove(own, stays);
  if (!failed || failed == std::errc::file_exists) return {};
  return environment_error(fmt::format("{}: cannot create: {}", path, failed.message()));
}

}  // namespace orrery
