// orrery catalog list | show | stacks
#include <memory>

#include "apps/orrery/catalog_report.hpp"
#include "apps/orrery/command.hpp"

namespace orrery {
namespace {

struct CatalogRequest {
  std::string kind;
  std::string name;
  std::string framework;
  std::string accelerator;
};

}  // namespace

void add_catalog_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto request = std::make_shared<CatalogRequest>();
  CLI::App* catalog = app.add_subcommand(
      "catalog", "facts about accelerators, nodes, networks, prices, software and models");
  catalog->require_subcommand(1);

  CLI::App* list_verb = catalog->add_subcommand("list", "kinds of facts, or the rows of one kind");
  list_verb->add_option("KIND", request->kind, "accelerators, nodes, systems, models, ...");
  list_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return list_catalog(options, request->kind); };
  });

  CLI::App* show_verb = catalog->add_subcommand("show", "one row with its sources");
  show_verb
      ->add_option("ID", request->name,
                   "an id or an alias, such as h100, or the path of a config.json")
      ->required();
  show_verb->add_option("--kind", request->kind, "look only there, such as electricity_usd_per_kwh")
      ->type_name("KIND");
  show_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] { return show_catalog(options, {request->kind, request->name}); };
  });

  CLI::App* stacks_verb =
      catalog->add_subcommand("stacks", "which framework runs on which accelerator");
  stacks_verb->add_option("FRAMEWORK", request->framework, "such as pytorch; or an accelerator");
  stacks_verb->add_option("ACCELERATOR", request->accelerator, "such as trainium");
  stacks_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return show_stacks(options, request->framework, request->accelerator);
    };
  });
}

}  // namespace orrery
