// orrery catalog list | show | stacks
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/catalog/catalog_answer.hpp"

namespace orrery {
namespace {

struct CatalogRequest {
  std::string kind;
  std::string name;
  std::string framework;
  std::string accelerator;
};

template <class Question>
Status report_catalog(const CommandOptions& options, const Question& question) {
  const Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return tl::unexpected(catalog.error());
  return print_answer(options,
                      question(CatalogFacts{*catalog, [&] { return load_models(options); }}));
}

}  // namespace

void add_catalog_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto request = std::make_shared<CatalogRequest>();
  CLI::App* catalog = app.add_subcommand(
      "catalog",
      "list and show facts about accelerators, nodes, networks, prices, software and models");
  catalog->require_subcommand(1);

  CLI::App* list_verb =
      catalog->add_subcommand("list", "list the kinds of facts, or the rows of one kind");
  list_verb->add_option("KIND", request->kind,
                        "kind of facts: accelerators, nodes, systems, models, ...");
  list_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return report_catalog(
          options, [&](const CatalogFacts& facts) { return list_catalog(facts, request->kind); });
    };
  });

  CLI::App* show_verb = catalog->add_subcommand("show", "show one row with its sources");
  show_verb
      ->add_option("ID", request->name,
                   "id or alias of a row, such as h100, or path of a config.json")
      ->required();
  show_verb
      ->add_option("--kind", request->kind,
                   "kind of the row, such as electricity_usd_per_kwh (default: any)")
      ->type_name("KIND");
  show_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return report_catalog(options, [&](const CatalogFacts& facts) {
        return show_catalog(facts, {request->kind, request->name});
      });
    };
  });

  CLI::App* stacks_verb =
      catalog->add_subcommand("stacks", "show which frameworks run on which accelerators");
  stacks_verb->add_option("FRAMEWORK", request->framework,
                          "framework, such as pytorch, or an accelerator");
  stacks_verb->add_option("ACCELERATOR", request->accelerator, "accelerator, such as trainium");
  stacks_verb->callback([&options, &chosen, request] {
    chosen = [&options, request] {
      return report_catalog(options, [&](const CatalogFacts& facts) {
        return show_stacks(facts.catalog, request->framework, request->accelerator);
      });
    };
  });
}

}  // namespace orrery
