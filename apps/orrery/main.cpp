#include <fmt/format.h>

#include <cstdio>

#include "apps/orrery/command.hpp"
#include "hardware/builtin_catalog.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {

Result<Catalog> load_catalog(const CommandOptions& options) {
  return Catalog::load(builtin_catalog(), options.catalog_directory);
}

Result<ModelCatalog> load_models(const CommandOptions& options) {
  return ModelCatalog::load(builtin_models(), options.catalog_directory);
}

void print_text(const std::string& text) {
  // Not fmt::print, which throws when the disk is full; run() looks at ferror.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stdout));
}

void print_message(const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void print_json(const Json& json) { print_text(json.dump(2) + "\n"); }

namespace {
constexpr int kExitFailed = 1;
constexpr int kExitWrongInput = 2;

int exit_code(const Status& status) {
  if (status) return 0;
  print_message(fmt::format("orrery: {}\n", status.error().text()));
  return status.error().kind == ErrorKind::kInput ? kExitWrongInput : kExitFailed;
}

void add_options(CLI::App& app, CommandOptions& options) {
  app.add_option("--catalog", options.catalog_directory,
                 "overlay the built-in catalog with the *.yaml files of DIR")
      ->type_name("DIR");
  app.add_option("-o,--output", options.output, "text or json")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, OutputFormat>{{"text", OutputFormat::kText},
                                              {"json", OutputFormat::kJson}},
          CLI::ignore_case))
      ->type_name("FORMAT");
}

int run(int argc, char** argv) {
  CLI::App app{"Orrery: plans, schedules and rehearses AI work on fleets of unlike accelerators."};
  app.set_version_flag("--version", "orrery " ORRERY_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  CommandOptions options;
  add_options(app, options);
  Action chosen;
  add_catalog_commands(app, options, chosen);
  add_fleet_commands(app, options, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kExitWrongInput;
  }
  const int code = exit_code(chosen());
  // A full disk or a closed pipe must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    print_message("orrery: writing to standard output failed\n");
    return kExitFailed;
  }
  return code;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) { return orrery::run(argc, argv); }
