#include "verbs/catalog/model_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/text/text_table.hpp"

namespace orrery {
namespace {

// Figures are given at this length unless the model's own is shorter.
constexpr double kSequence = 8192;

Tokens sequence_of(const Model& model) {
  const auto* transformer = std::get_if<Transformer>(&model.architecture);
  const auto longest = transformer == nullptr ? 0 : transformer->positions_max;
  return Tokens(longest > 0 ? std::min(static_cast<double>(longest), kSequence) : kSequence);
}

std::string parameters_text(double count) {
  if (count >= 1e12) return fmt::format("{:.4g} T", count / 1e12);
  if (count >= 1e9) return fmt::format("{:.4g} B", count / 1e9);
  return fmt::format("{:.4g} M", count / 1e6);
}

std::string flops_unit(const Model& model) {
  return family_of(model) == ModelFamily::kTransformer ? "token" : "sample";
}

Json model_json(const Model& model) {
  const ParameterCount count = count_parameters(model);
  Json json;
  json["name"] = model.name;
  json["aliases"] = model.aliases;
  json["family"] = word_of(family_of(model));
  json["type"] = model.type;
  json["parameters"] = {{"total", json_number(count.total)},
                        {"active", json_number(count.active)},
                        {"embedding", json_number(count.embedding)},
                        {"vision", json_number(count.vision)},
                        {"prediction", json_number(count.prediction)}};
  json["layers"] = Json::array();
  for (const LayerGroup& group : count.groups) {
    json["layers"].push_back({{"name", group.name},
                              {"layers", group.layers},
                              {"parameters", json_number(group.parameters)},
                              {"active", json_number(group.active)}});
  }
  json["sequence"] = json_number(sequence_of(model).value());
  json["forward_flops_per_" + flops_unit(model)] =
      json_number(forward_flops(model, sequence_of(model)).value());
  json["kv_elements_per_token"] = json_number(kv_elements_per_token(model));
  json["assumptions"] = model.assumptions;
  return json;
}

std::string model_text(const Model& model) {
  const ParameterCount count = count_parameters(model);
  TextTable facts({{""}, {""}});
  facts.add({"name", model.name});
  if (!model.aliases.empty()) {
    facts.add({"aliases", fmt::format("{}", fmt::join(model.aliases, ", "))});
  }
  facts.add({"family", std::string(word_of(family_of(model)))});
  facts.add({"parameters",
             fmt::format("{} ({})", parameters_text(count.total), print_count(count.total))});
  facts.add({"active", fmt::format("{} per {}", parameters_text(count.active), flops_unit(model))});
  facts.add({"embedding", parameters_text(count.embedding)});
  if (count.vision > 0) facts.add({"image tower", parameters_text(count.vision)});
  if (count.prediction > 0) {
    facts.add({"not counted", parameters_text(count.prediction) + " in prediction modules"});
  }
  const Tokens sequence = sequence_of(model);
  const std::string flops = print(forward_flops(model, sequence));
  facts.add({"forward",
             family_of(model) == ModelFamily::kTransformer
                 ? fmt::format("{} per token at {} tokens", flops, print_count(sequence.value()))
                 : fmt::format("{} per sample", flops)});
  if (const double kv = kv_elements_per_token(model); kv > 0) {
    facts.add({"KV cache", fmt::format("{} elements per token", print_count(kv))});
  }
  for (const std::string& assumption : model.assumptions) facts.add({"assumed", assumption});
  TextTable layers({{"LAYERS", Align::kRight},
                    {"KIND"},
                    {"PARAMETERS EACH", Align::kRight},
                    {"ACTIVE EACH", Align::kRight}});
  for (const LayerGroup& group : count.groups) {
    layers.add({fmt::format("{}", group.layers), group.name, print_count(group.parameters),
                print_count(group.active)});
  }
  return facts.text() + "\n" + (layers.empty() ? "" : layers.text());
}

}  // namespace

VerbAnswer list_models(const ModelCatalog& models) {
  Json json = Json::array();
  TextTable table({{"NAME"},
                   {"FAMILY"},
                   {"PARAMETERS", Align::kRight},
                   {"ACTIVE", Align::kRight},
                   {"CONFIDENCE"}});
  for (const CatalogModel& entry : models.all()) {
    json.push_back(model_json(entry.model));
    const ParameterCount count = count_parameters(entry.model);
    table.add({entry.model.name, std::string(word_of(family_of(entry.model))),
               parameters_text(count.total), parameters_text(count.active),
               std::string(word_of(entry.provenance.confidence))});
  }
  return {table.text(), std::move(json)};
}

std::optional<VerbAnswer> show_model(const ModelCatalog& models, const std::string& name) {
  const CatalogModel* entry = models.find(name);
  if (entry == nullptr) return std::nullopt;
  Json json;
  json["catalog"] = "models";
  json.update(model_json(entry->model));
  json["published"] = to_json(entry->published);
  json["source"] = entry->provenance.source;
  json["confidence"] = word_of(entry->provenance.confidence);
  json["note"] = entry->provenance.note;
  json["recalled_fields"] = entry->provenance.recalled_fields;
  json["checked_against"] = entry->provenance.checked_against;
  TextTable table({{""}, {""}});
  const PublishedCounts& published = entry->published;
  if (published.total_parameters) {
    table.add(
        {"published", fmt::format("{} in total ({})", parameters_text(*published.total_parameters),
                                  published.source)});
  }
  table.add({"source", fmt::format("{} ({})", entry->provenance.source,
                                   word_of(entry->provenance.confidence))});
  return VerbAnswer{model_text(entry->model) + "\n" + table.text(), std::move(json)};
}

Result<VerbAnswer> show_model_file(const ModelCatalog& models, const std::string& path) {
  const Result<Model> model = load_model(path, models);
  if (!model) return tl::unexpected(model.error());
  return VerbAnswer{model_text(*model), model_json(*model)};
}

}  // namespace orrery
