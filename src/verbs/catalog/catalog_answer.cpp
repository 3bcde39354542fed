#include "verbs/catalog/catalog_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/text_table.hpp"
#include "base/text/utf8.hpp"
#include "verbs/catalog/model_answer.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTextWidth = 96;

std::string shown(const std::optional<Watts>& watts) { return watts ? print(*watts) : "-"; }

template <class Row>
TextTable table_of(const std::vector<Row>& rows) {
  TextTable table({{"ID"}, {"CONFIDENCE"}, {"SOURCE"}});
  for (const Row& row : rows) {
    const std::string& source = row.provenance.source;
    constexpr std::size_t kShown = 70;
    table.add({std::string(name_of_row(row)), std::string(word_of(row.provenance.confidence)),
               source.size() > kShown ? source.substr(0, kShown) + "..." : source});
  }
  return table;
}

template <>
TextTable table_of(const std::vector<Accelerator>& rows) {
  TextTable table({{"ID"},
                   {"ALIAS"},
                   {"MEMORY", Align::kRight},
                   {"BANDWIDTH", Align::kRight},
                   {"DENSE 16-BIT", Align::kRight},
                   {"8-BIT", Align::kRight},
                   {"SCALE-UP", Align::kRight},
                   {"POWER", Align::kRight},
                   {"CONFIDENCE"}});
  for (const Accelerator& a : rows) {
    const auto bf16 = a.rate(NumberFormat::kBf16);
    const auto half = bf16 ? bf16 : a.rate(NumberFormat::kFp16);
    const auto fp8 = a.rate(NumberFormat::kFp8);
    const auto byte = std::max(fp8, a.rate(NumberFormat::kInt8));
    const auto& domain = a.scale_up.domain_max;
    table.add({a.id, a.aliases.empty() ? "" : a.aliases.front(), print(a.memory),
               print(a.memory_bandwidth), half ? print(*half) : "-", byte ? print(*byte) : "-",
               domain ? fmt::format("{}", *domain) : "-", shown(a.tdp),
               std::string(word_of(a.provenance.confidence))});
  }
  return table;
}

template <>
TextTable table_of(const std::vector<NodeType>& rows) {
  TextTable table({{"ID"},
                   {"ACCELERATORS"},
                   {"HOST MEMORY", Align::kRight},
                   {"NICS", Align::kRight},
                   {"MAX POWER", Align::kRight},
                   {"COOLING"},
                   {"CONFIDENCE"}});
  for (const NodeType& n : rows) {
    const std::string power = n.max_power ? print(*n.max_power)
                              : n.assumed_power
                                  ? fmt::format("{} to {} (assumed)", print(n.assumed_power->low),
                                                print(n.assumed_power->high))
                                  : "not published";
    table.add({n.id, fmt::format("{} x {}", n.accelerators_per_node, n.accelerator),
               n.host_memory ? print(*n.host_memory) : "-",
               fmt::format("{} x {:.4g} Gb/s", n.compute_nics,
                           n.compute_nic_rate.quantity.value() * 8e-9),
               power, n.cooling, std::string(word_of(n.provenance.confidence))});
  }
  return table;
}

template <>
TextTable table_of(const std::vector<SoftwareStack>& rows) {
  TextTable table({{"FRAMEWORK"}, {"PLATFORM"}, {"SUPPORT"}, {"THROUGH"}, {"CONFIDENCE"}});
  for (const SoftwareStack& s : rows) {
    table.add({s.framework, s.platform, std::string(word_of(s.support)), s.through.value_or("-"),
               std::string(word_of(s.provenance.confidence))});
  }
  return table;
}

template <>
TextTable table_of(const std::vector<StackException>& rows) {
  TextTable table({{"ACCELERATOR"}, {"FRAMEWORK"}, {"SUPPORT"}, {"CONFIDENCE"}});
  for (const StackException& e : rows) {
    table.add({e.accelerator, e.framework, std::string(word_of(e.support)),
               std::string(word_of(e.provenance.confidence))});
  }
  return table;
}

VerbAnswer list_overview(const Catalog& catalog, const ModelCatalog& models) {
  Json json = Json::array();
  TextTable table({{"KIND"}, {"ROWS", Align::kRight}});
  const auto add = [&](std::string_view kind, std::size_t rows) {
    json.push_back({{"kind", kind}, {"rows", rows}});
    table.add({std::string(kind), fmt::format("{}", rows)});
  };
  catalog.for_each_table([&](const auto& each) { add(each.section, each.rows.size()); });
  add("models", models.all().size());
  add("evidence", catalog.evidence().size());
  return {fmt::format("{}\n`orrery catalog list KIND` lists the rows of a kind, `orrery catalog "
                      "show ID` shows one row.\n",
                      table.text()),
          std::move(json)};
}

VerbAnswer list_evidence(const Catalog& catalog) {
  Json json = Json::array();
  TextTable table({{"ID"}, {"VALUES", Align::kRight}});
  for (const Evidence& evidence : catalog.evidence()) {
    json.push_back({{"id", evidence.id}, {"values", evidence.values.size()}});
    table.add({evidence.id, fmt::format("{}", evidence.values.size())});
  }
  return {table.text(), std::move(json)};
}

tl::unexpected<Error> unknown_kind(const Catalog& catalog, const std::string& kind) {
  std::vector<std::string_view> kinds = {"models", "evidence"};
  catalog.for_each_table([&](const auto& each) { kinds.push_back(each.section); });
  return input_error({}, fmt::format("no kind \"{}\"{}; kinds: {}", kind, did_you_mean(kind, kinds),
                                     fmt::join(kinds, ", ")));
}

}  // namespace

Result<VerbAnswer> list_catalog(const CatalogFacts& facts, const std::string& kind_given) {
  const std::string kind = lower_case(kind_given);
  if (kind == "evidence") return list_evidence(facts.catalog);
  if (kind.empty() || kind == "models") {
    const Result<ModelCatalog> models = facts.models();
    if (!models) return tl::unexpected(models.error());
    return kind.empty() ? list_overview(facts.catalog, *models) : list_models(*models);
  }
  std::optional<VerbAnswer> found;
  facts.catalog.for_each_table([&](const auto& each) {
    // The plural, and the singular a person may type: "accelerator", "node".
    if (each.section != kind && each.section != kind + "s") return;
    found = VerbAnswer{table_of(each.rows).text(), to_json(each.rows)};
  });
  if (!found) return unknown_kind(facts.catalog, kind_given);
  return *std::move(found);
}

namespace {

std::string lead_time_text(const Supply& supply) {
  if (!supply.lead_time_weeks) return "not sold";
  const LeadTime& t = *supply.lead_time_weeks;
  return fmt::format("{:g} weeks ({:g} to {:g})", t.typical, t.low, t.high);
}

Json stack_json(const Framework& framework, const Catalog::StackAnswer& answer) {
  Json json;
  json["framework"] = framework.id;
  json["platform"] = answer.platform != nullptr ? Json(answer.platform->id) : Json(nullptr);
  json["support"] = word_of(answer.support);
  json["use"] = answer.use() ? Json(word_of(*answer.use())) : Json(nullptr);
  const bool known = answer.stack != nullptr;
  json["through"] = known && answer.stack->through ? Json(*answer.stack->through) : Json(nullptr);
  json["compile_step"] = known ? Json(word_of(answer.stack->compile_step)) : Json(nullptr);
  const Provenance* why = answer.exception != nullptr ? &answer.exception->provenance
                          : known                     ? &answer.stack->provenance
                                                      : nullptr;
  json["note"] = why != nullptr ? Json(why->note) : Json(nullptr);
  json["source"] = why != nullptr ? Json(why->source) : Json(nullptr);
  json["confidence"] = why != nullptr ? Json(word_of(why->confidence)) : Json(nullptr);
  return json;
}

void add_stack_row(TextTable& table, const std::string& first, const Json& stack) {
  const auto text = [&](const char* key) {
    return stack[key].is_null() ? std::string("-") : stack[key].get<std::string>();
  };
  const std::string only = stack["use"].is_null() ? "" : fmt::format(", {} only", text("use"));
  table.add({first, text("support") + only, text("through"), text("compile_step")});
}

// What other tables say of an accelerator, behind its own row.
Json relations(const Catalog& catalog, const Accelerator& accelerator) {
  Json json;
  Json nodes = Json::array();
  for (const NodeType& node : catalog.all<NodeType>()) {
    if (node.accelerator == accelerator.id) nodes.push_back(node.id);
  }
  json["nodes"] = nodes;
  const Supply* supply = catalog.supply(accelerator);
  json["supply"] = supply != nullptr ? to_json(*supply) : Json(nullptr);
  const AcceleratorPrice* price = catalog.price(accelerator);
  json["price"] = price != nullptr ? to_json(*price) : Json(nullptr);
  Json stacks = Json::array();
  for (const Framework& framework : catalog.all<Framework>()) {
    stacks.push_back(stack_json(framework, catalog.stack(framework, accelerator)));
  }
  json["stacks"] = stacks;
  return json;
}

std::string relations_text(const Catalog& catalog, const Accelerator& accelerator) {
  TextTable facts({{""}, {""}});
  std::string nodes;
  for (const NodeType& node : catalog.all<NodeType>()) {
    if (node.accelerator == accelerator.id) nodes += (nodes.empty() ? "" : ", ") + node.id;
  }
  facts.add({"node types", nodes});
  if (!accelerator.tdp)
    facts.add({"power", "not published; the node types state the assumed power"});
  if (const Supply* supply = catalog.supply(accelerator); supply != nullptr) {
    facts.add({"lead time", lead_time_text(*supply)});
    facts.add({"availability", std::string(word_of(supply->availability))});
    facts.add({"export class", catalog.find<ExportClass>(supply->export_class)->name});
  }
  if (const AcceleratorPrice* price = catalog.price(accelerator); price != nullptr) {
    if (price->on_demand) facts.add({"on demand", print(price->on_demand->quantity)});
    if (price->spot) facts.add({"spot", print(price->spot->quantity)});
    if (price->unit_capex) facts.add({"to buy", print(*price->unit_capex)});
  }
  TextTable stacks({{"FRAMEWORK"}, {"SUPPORT"}, {"THROUGH"}, {"COMPILE STEP"}});
  for (const Framework& framework : catalog.all<Framework>()) {
    add_stack_row(stacks, framework.name,
                  stack_json(framework, catalog.stack(framework, accelerator)));
  }
  return fmt::format("\n{}\n{}", facts.text(), stacks.text());
}

template <class Row>
VerbAnswer show_row(const Catalog& catalog, std::string_view section, const Row& row) {
  VerbAnswer answer;
  answer.json["catalog"] = section;
  answer.json.update(to_json(row));
  TextTable table({{""}, {""}});
  for (const FieldRow& field : rows_of(row)) {
    const auto lines = wrapped(field.value, kTextWidth);
    for (std::size_t i = 0; i < lines.size(); ++i) table.add({i == 0 ? field.key : "", lines[i]});
  }
  answer.text = table.text();
  if constexpr (std::same_as<Row, Accelerator>) {
    answer.json.update(relations(catalog, row));
    answer.text += relations_text(catalog, row);
  }
  return answer;
}

// The first table that knows the name answers, accelerators before all; `kind` asks just one.
std::optional<VerbAnswer> show_in_tables(const Catalog& catalog, const CatalogName& wanted) {
  std::optional<VerbAnswer> found;
  catalog.for_each_table([&]<class Row>(const CatalogTable<Row>& table) {
    if (found || (!wanted.kind.empty() && table.section != wanted.kind)) return;
    if constexpr (kNamedRows<Row>) {
      const Row* row = catalog.find<Row>(wanted.name);
      if (row != nullptr) found = show_row(catalog, table.section, *row);
    }
  });
  return found;
}

std::optional<VerbAnswer> show_evidence(const Catalog& catalog, const std::string& name) {
  for (const Evidence& evidence : catalog.evidence()) {
    if (lower_case(evidence.id) != lower_case(name)) continue;
    Json json;
    json["catalog"] = "evidence";
    json["id"] = evidence.id;
    TextTable table({{""}, {""}});
    for (const auto& [path, value] : evidence.values) {
      json["values"][path] = value;
      table.add({path, value});
    }
    return VerbAnswer{table.text(), std::move(json)};
  }
  return std::nullopt;
}

}  // namespace

Result<VerbAnswer> show_catalog(const CatalogFacts& facts, const CatalogName& wanted) {
  const std::string& name = wanted.name;
  if (wanted.kind.empty() && (name.find('/') != std::string::npos || name.ends_with(".json"))) {
    const Result<ModelCatalog> models = facts.models();
    if (!models) return tl::unexpected(models.error());
    return show_model_file(*models, name);
  }
  if (std::optional<VerbAnswer> row = show_in_tables(facts.catalog, wanted)) return *std::move(row);
  if (std::optional<VerbAnswer> row = show_evidence(facts.catalog, name)) return *std::move(row);
  const Result<ModelCatalog> models = facts.models();
  if (!models) return tl::unexpected(models.error());
  if (std::optional<VerbAnswer> row = show_model(*models, name)) return *std::move(row);
  std::vector<std::string> names;
  facts.catalog.for_each_table([&]<class Row>(const CatalogTable<Row>& table) {
    for (const auto& entry : table.names) names.push_back(entry.first);
  });
  for (const CatalogModel& each : models->all()) names.push_back(each.model.name);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return input_error(
      {}, fmt::format("\"{}\" is not in the catalog{}; `orrery catalog list` lists its kinds",
                      printable(name, 60), did_you_mean(name, views)));
}

namespace {

/// What the words after `catalog stacks` name; null: all.
struct StackQuestion {
  const Framework* framework = nullptr;
  const Accelerator* accelerator = nullptr;
};

tl::unexpected<Error> two_of_a_kind(std::string_view kind, const std::string& first,
                                    const std::string& second) {
  return input_error(
      {}, fmt::format("\"{}\" and \"{}\" are both {}; expected one framework and one accelerator",
                      first, second, kind));
}

Result<StackQuestion> question_of(const Catalog& catalog, const std::string& first,
                                  const std::string& second) {
  StackQuestion question;
  for (const std::string& name : {first, second}) {
    if (name.empty()) continue;
    if (const Framework* framework = catalog.find<Framework>(name); framework != nullptr) {
      if (question.framework != nullptr) return two_of_a_kind("frameworks", first, second);
      question.framework = framework;
      continue;
    }
    Result<const Accelerator*> found = catalog.require<Accelerator>(name);
    if (!found) {
      std::vector<std::string_view> frameworks;
      for (const Framework& each : catalog.all<Framework>()) frameworks.push_back(each.id);
      return input_error({}, fmt::format("{}; frameworks: {}", found.error().message,
                                         fmt::join(frameworks, ", ")));
    }
    if (question.accelerator != nullptr) return two_of_a_kind("accelerators", first, second);
    question.accelerator = *found;
  }
  return question;
}

std::string answer_text(const StackQuestion& question, const Json& answer) {
  const auto text = [&](const char* key) {
    return answer[key].is_null() ? std::string() : answer[key].get<std::string>();
  };
  TextTable table({{""}, {""}});
  for (const auto& key : {"platform", "through", "compile_step", "note", "source", "confidence"}) {
    const auto lines = wrapped(text(key), kTextWidth);
    for (std::size_t i = 0; i < lines.size(); ++i) table.add({i == 0 ? key : "", lines[i]});
  }
  return fmt::format("{} on {} ({}): {}\n{}", question.framework->name, question.accelerator->name,
                     question.accelerator->id, text("support"), table.text());
}

// Every framework on one accelerator.
VerbAnswer frameworks_on(const Catalog& catalog, const Accelerator& accelerator) {
  Json json = Json::array();
  TextTable table({{"FRAMEWORK"}, {"SUPPORT"}, {"THROUGH"}, {"COMPILE STEP"}});
  for (const Framework& each : catalog.all<Framework>()) {
    json.push_back(stack_json(each, catalog.stack(each, accelerator)));
    add_stack_row(table, each.name, json.back());
  }
  return {table.text(), std::move(json)};
}

// One framework, or every one, on every platform.
VerbAnswer support_matrix(const Catalog& catalog, const Framework* only) {
  Json json = Json::array();
  std::vector<TextTable::Column> columns = {{"FRAMEWORK"}};
  for (const Platform& platform : catalog.all<Platform>()) columns.push_back({platform.id});
  TextTable table(columns);
  for (const Framework& each : catalog.all<Framework>()) {
    if (only != nullptr && &each != only) continue;
    std::vector<std::string> cells = {each.name};
    for (const Platform& platform : catalog.all<Platform>()) {
      for (const SoftwareStack& stack : catalog.all<SoftwareStack>()) {
        if (stack.framework != each.id || stack.platform != platform.id) continue;
        cells.emplace_back(word_of(stack.support));
        json.push_back(to_json(stack));
      }
    }
    table.add(cells);
  }
  return {table.text(), std::move(json)};
}

}  // namespace

Result<VerbAnswer> show_stacks(const Catalog& catalog, const std::string& first,
                               const std::string& second) {
  const Result<StackQuestion> question = question_of(catalog, first, second);
  if (!question) return tl::unexpected(question.error());
  if (question->accelerator == nullptr) return support_matrix(catalog, question->framework);
  if (question->framework == nullptr) return frameworks_on(catalog, *question->accelerator);
  Json json =
      stack_json(*question->framework, catalog.stack(*question->framework, *question->accelerator));
  std::string text = answer_text(*question, json);
  return VerbAnswer{std::move(text), std::move(json)};
}

}  // namespace orrery
