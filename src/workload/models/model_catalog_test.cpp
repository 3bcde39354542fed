#include "workload/models/model_catalog.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/format/document.hpp"
#include "workload/models/model_catalog_test.hpp"

namespace orrery {

std::vector<std::pair<std::string, std::string>> repository_model_files() {
  std::vector<std::pair<std::string, std::string>> files;
  const std::filesystem::path directory = std::string(ORRERY_SOURCE_DIR) + "/catalog/models";
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".yaml") continue;
    const Result<std::string> text = read_file(entry.path().string(), Document::kSizeMax);
    files.emplace_back(entry.path().filename().string(), text.value_or(""));
  }
  std::sort(files.begin(), files.end());
  return files;
}

const Result<ModelCatalog>& repository_models() {
  static const Result<ModelCatalog> kCatalog = [] {
    const std::vector<std::pair<std::string, std::string>> files = repository_model_files();
    std::vector<EmbeddedFile> sources;
    for (const auto& [file, text] : files) sources.push_back({file, text});
    return ModelCatalog::load(sources, {});
  }();
  return kCatalog;
}

namespace {

namespace fs = std::filesystem;

// A directory of the test's own, removed with it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ =
        fs::path(testing::TempDir()) /
        (std::string("orrery_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { fs::remove_all(path_); }

  std::string write(const std::string& name, std::string_view text) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string model_text(const std::string& name, const std::string& aliases) {
  return "apiVersion: orrery/v1\nkind: Model\nname: " + name + "\naliases: " + aliases +
         "\nfamily: transformer\nsource: a test\nconfidence: assumed\n"
         "config: {model_type: gpt2, n_embd: 64, n_layer: 2, n_head: 4, vocab_size: 100, "
         "n_positions: 32}\n";
}

Result<ModelCatalog> load(const std::vector<std::string>& texts) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < texts.size(); ++i) files.push_back(std::string(1, char('a' + i)));
  std::vector<EmbeddedFile> sources;
  for (std::size_t i = 0; i < texts.size(); ++i) sources.push_back({files[i], texts[i]});
  return ModelCatalog::load(sources, {});
}

TEST(ModelCatalog, EveryTotalMatchesWhatWasPublished) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  int checked = 0;
  for (const CatalogModel& known : repository_models()->all()) {
    if (!known.published.total_parameters) {
      EXPECT_FALSE(known.provenance.note.empty()) << known.model.name << ": say why it is unknown";
      continue;
    }
    const double published = *known.published.total_parameters;
    const double allowed = std::max(0.003 * published, known.published.rounded_to / 2);
    EXPECT_NEAR(count_parameters(known.model).total, published, allowed) << known.model.name;
    ++checked;
  }
  EXPECT_GE(checked, 60);
}

// Makers seldom say whether the embedding counts; active_counts holds the reading that lies nearer
// to the printed figure, so this bounds gross errors and proves no convention.
TEST(ModelCatalog, EveryActiveCountIsWithinFivePerCentOfThePublishedOne) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  int checked = 0;
  for (const CatalogModel& known : repository_models()->all()) {
    if (!known.published.active_parameters) continue;
    const ParameterCount count = count_parameters(known.model);
    const bool head_only = known.published.active_counts == ActiveCounts::kHeadOnly;
    const double active = head_only ? count.active_without_embedding : count.active;
    EXPECT_NEAR(active / *known.published.active_parameters, 1, 0.05) << known.model.name;
    ++checked;
  }
  EXPECT_GE(checked, 15);
}

TEST(ModelCatalog, EveryModelSaysWhereItIsFrom) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  for (const CatalogModel& known : repository_models()->all()) {
    EXPECT_FALSE(known.provenance.source.empty()) << known.model.name;
    if (known.published.total_parameters) {
      EXPECT_FALSE(known.published.source.empty()) << known.model.name;
    }
  }
}

TEST(ModelCatalog, FindsByNameAndAliasInAnyCase) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  const ModelCatalog& catalog = *repository_models();
  const CatalogModel* llama = catalog.find("llama-3.1-405b");
  ASSERT_NE(llama, nullptr);
  EXPECT_EQ(catalog.find("LLAMA-3.1-405B"), llama);
  EXPECT_EQ(catalog.find("meta-llama/Llama-3.1-405B"), llama);
  EXPECT_EQ(catalog.find("llama-3.1-406b"), nullptr);
  EXPECT_EQ(catalog.find(""), nullptr);
}

TEST(ModelCatalog, SuggestsTheNearestNameForAnUnknownOne) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  const auto found = repository_models()->require("mixtrall-8x7b", {"fleet.yaml", 3, 9});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(),
            "fleet.yaml:3:9: no model \"mixtrall-8x7b\" in the catalog, did you mean "
            "\"mixtral-8x7b\"?");
}

TEST(ModelCatalog, ANameOfTwoModelsIsAnErrorNamingBothPlaces) {
  const auto catalog =
      load({model_text("one", "[first, shared name]"), model_text("two", "[Shared Name]")});
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().text(),
            "b:4:11: the name \"shared name\" already stands for the model one at a:4:18");
}

TEST(ModelCatalog, AnAliasMayNotBeTheNameOfAnotherModel) {
  const auto catalog = load({model_text("one", "[]"), model_text("two", "[ONE]")});
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().text(),
            "b:4:11: the name \"one\" already stands for the model one at a:3:7");
}

TEST(ModelCatalog, RepeatingAModelsOwnNameIsHarmless) {
  const auto catalog = load({model_text("one", "[ONE, One]")});
  ASSERT_TRUE(catalog) << catalog.error().text();
  EXPECT_NE(catalog->find("one"), nullptr);
}

struct BadFile {
  std::string_view from;
  std::string_view to;
  std::string_view error;
};

TEST(ModelCatalog, AWrongFileIsOneErrorAtItsPlace) {
  const BadFile kBad[] = {
      {"orrery/v1", "orrery/v2", "a:1:13: apiVersion \"orrery/v2\" is not supported"},
      {"kind: Model", "kind: Fleet", "a:2:7: kind \"Fleet\" does not belong"},
      {"name: one", "name: ''", "a:3:7: the name is empty"},
      {"name: one", "nme: one", "a:3:1: unknown key \"nme\", did you mean \"name\"?"},
      {"[x]", "x", "a:4:10: expected a list"},
      {"[x]", "[[x]]", "a:4:11: expected text"},
      {"family: transformer", "family: transfomer", "a:5:9: unknown value \"transfomer\""},
      {"family: transformer", "family: dlrm", "a:5:9: family dlrm contradicts the model_type"},
      {"confidence: assumed", "confidence: sure", "a:7:13: unknown value \"sure\""},
      {"confidence: assumed\n", "", "a:1:1: the key \"confidence\" is missing"},
      {"config: {", "konfig: {", "a:8:1: unknown key \"konfig\", did you mean \"config\"?"},
      {"n_embd: 64", "n_embd: big", "a:8:36: \"n_embd\": expected a whole number"},
      {"source: a test", "published: {total_parameters: many}", "a:6:31: expected a number"},
  };
  for (const BadFile& bad : kBad) {
    std::string text = model_text("one", "[x]");
    const std::size_t at = text.find(bad.from);
    ASSERT_NE(at, std::string::npos) << bad.from;
    text.replace(at, bad.from.size(), bad.to);
    const auto catalog = load({text});
    ASSERT_FALSE(catalog) << bad.to;
    EXPECT_TRUE(catalog.error().text().starts_with(bad.error))
        << catalog.error().text() << "\nexpected " << bad.error;
    EXPECT_EQ(catalog.error().kind, ErrorKind::kInput);
  }
}

TEST(ModelCatalog, AFileWithoutAConfigurationIsAnError) {
  const auto catalog =
      load({"apiVersion: orrery/v1\nkind: Model\nname: x\nfamily: vit\n"
            "confidence: assumed\n"});
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().text(), "a:1:1: the key \"config\" is missing");
}

TEST(ModelCatalog, AnOverlayAddsItsModels) {
  const TemporaryDirectory overlay;
  overlay.write("models/own.yaml", model_text("own", "[mine]"));
  overlay.write("models/notes.txt", "not a model");
  const std::string built_in = model_text("one", "[]");
  const EmbeddedFile sources[] = {{"one.yaml", built_in}};
  const auto catalog = ModelCatalog::load(sources, *read_fact_overlays(overlay.path()));
  ASSERT_TRUE(catalog) << catalog.error().text();
  EXPECT_EQ(catalog->all().size(), 2u);
  ASSERT_NE(catalog->find("MINE"), nullptr);
  EXPECT_EQ(catalog->find("MINE")->model.name, "own");
}

TEST(ModelCatalog, AnOverlayMayNotRedefineAModel) {
  const TemporaryDirectory overlay;
  const std::string file = overlay.write("models/own.yaml", model_text("One", "[]"));
  const std::string built_in = model_text("one", "[]");
  const EmbeddedFile sources[] = {{"one.yaml", built_in}};
  const auto catalog = ModelCatalog::load(sources, *read_fact_overlays(overlay.path()));
  ASSERT_FALSE(catalog);
  EXPECT_EQ(catalog.error().text(),
            file + ":3:7: the name \"one\" already stands for the model one at one.yaml:3:7");
}

TEST(ModelCatalog, AnOverlayWithoutModelsIsFine) {
  const FactOverlay overlay;
  const auto catalog = ModelCatalog::load({}, {&overlay, 1});
  ASSERT_TRUE(catalog) << catalog.error().text();
  EXPECT_TRUE(catalog->all().empty());
}

constexpr std::string_view kConfigJson =
    R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100,
        "n_positions": 32})";

TEST(LoadModel, TakesACatalogNameBeforeAPath) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  const Result<Model> model = load_model("meta-llama/Llama-2-7b-hf", *repository_models());
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->name, "llama-2-7b");
}

TEST(LoadModel, TakesAConfigurationOrItsDirectory) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("config.json", kConfigJson);
  const ModelCatalog empty;
  for (const std::string& path : {file, directory.path()}) {
    const Result<Model> model = load_model(path, empty);
    ASSERT_TRUE(model) << model.error().text();
    EXPECT_EQ(model->name, path);
    EXPECT_EQ(model->where.file, file);
    EXPECT_GT(count_parameters(*model).total, 100 * 64);
  }
}

TEST(LoadModel, NamesTheNearestModelWhenThereIsNeitherModelNorFile) {
  ASSERT_TRUE(repository_models()) << repository_models().error().text();
  const auto by_name = load_model("gpt3-176b", *repository_models());
  ASSERT_FALSE(by_name);
  EXPECT_EQ(by_name.error().text(),
            "no model \"gpt3-176b\" in the catalog (a configuration file is named by a path with a "
            "\"/\" or ending in .json), did you mean \"GPT3-175B\"?");
  const auto by_path = load_model("meta-llama/Llama-2-8b-hf", *repository_models());
  ASSERT_FALSE(by_path);
  EXPECT_EQ(by_path.error().text(),
            "\"meta-llama/Llama-2-8b-hf\" is neither a model of the catalog nor a file, did you "
            "mean \"meta-llama/Llama-2-7b-hf\"?");
}

TEST(LoadModel, AnErrorInAConfigurationNamesItsFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.write("bad.json", "{\"model_type\": 7,\n \"n_embd\": []}");
  const auto model = load_model(file, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().where.file, file);
  const std::string binary = directory.write("binary.json", std::string_view("\xff\x00{", 3));
  EXPECT_FALSE(load_model(binary, {}));
}

}  // namespace
}  // namespace orrery
