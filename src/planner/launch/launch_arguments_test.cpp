#include "planner/launch/launch_arguments_test.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/format/document.hpp"
#include "base/text/nearest_name.hpp"

namespace orrery {
namespace {

std::set<std::string> names_under(const DocumentNode& node) {
  std::set<std::string> names;
  for (const DocumentNode& item : node.items()) names.emplace(item.text());
  return names;
}

bool is_number(const std::string& text) {
  if (text.empty()) return false;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return *end == '\0';
}

bool is_whole(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool is_variable(const std::string& text) {
  return text.starts_with("${") && text.ends_with("}") && text.find(':') != std::string::npos;
}

/// Words of a command: quotes of both kinds, lines joined by a backslash.
std::vector<std::string> shell_words(const std::string& text, std::vector<std::string>& wrong) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == '\\' && i + 1 < text.size() && text[i + 1] == '\n') {
      ++i;
    } else if (c == ' ' || c == '\n') {
      if (inside) words.push_back(word);
      word.clear();
      inside = false;
    } else {
      if (std::string("()*[];&|<>$`!").find(c) != std::string::npos) {
        wrong.push_back(fmt::format("the shell would read '{}' outside quotes", c));
      }
      word += c;
      inside = true;
    }
  }
  if (quote != 0) wrong.emplace_back("a quote is not closed");
  return words;
}

std::map<std::string, std::string> options_of(const std::vector<std::string>& words,
                                              std::vector<std::string>& wrong) {
  std::map<std::string, std::string> options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      wrong.push_back("no argument takes the word " + words[i]);
      continue;
    }
    const std::string name = words[i].substr(2);
    const bool value = i + 1 < words.size() && !words[i + 1].starts_with("--");
    if (!options.emplace(name, value ? words[i + 1] : "").second) {
      wrong.push_back(name + " stands twice");
    }
    if (value) ++i;
  }
  return options;
}

class MegatronRules {
 public:
  explicit MegatronRules(const TorchrunCall& call) : call_(call) {}

  std::vector<std::string> broken() {
    required();
    ranks();
    pipeline();
    attention();
    experts();
    memory();
    return std::move(broken_);
  }

 private:
  [[nodiscard]] double n(const std::string& name, double otherwise = 0) const {
    return call_.number(name, otherwise);
  }
  struct Rule {
    bool holds;
    std::string text;
  };
  void check(const Rule& rule) {
    if (!rule.holds) broken_.push_back(rule.text);
  }
  static bool divides(double part, double whole) { return part > 0 && std::fmod(whole, part) == 0; }

  void required() {
    for (const char* name :
         {"num-layers", "hidden-size", "num-attention-heads", "max-position-embeddings",
          "micro-batch-size", "global-batch-size", "seq-length", "train-iters", "lr",
          "tokenizer-type", "vocab-size", "data-path", "position-embedding-type", "hidden-dropout",
          "attention-dropout"}) {
      check({call_.has(name), fmt::format("{} is missing", name)});
    }
    check(
        {n("max-position-embeddings") >= n("seq-length"), "max-position-embeddings >= seq-length"});
    check({n("padded-vocab-size") >= n("vocab-size"), "padded-vocab-size >= vocab-size"});
    check({divides(tp_, n("padded-vocab-size")), "tp divides the rows of the embedding"});
  }

  void ranks() {
    const double world =
        std::stod(call_.options.at("nnodes")) * std::stod(call_.options.at("nproc-per-node"));
    check({divides(tp_ * pp_ * cp_, world), "world size is a multiple of tp x pp x cp"});
    const double dp = world / (tp_ * pp_ * cp_);
    const double unit = n("micro-batch-size") * dp;
    check(
        {divides(unit, n("global-batch-size")), "global batch is a multiple of micro-batch x dp"});
    if (vpp() > 1) {
      check({divides(pp_, n("global-batch-size") / unit), "micro-batches are a multiple of pp"});
    }
    check({cp_ == 1 || divides(2 * cp_, n("seq-length")), "2 cp divides the sequence"});
    check({tp_ == 1 || !call_.has("sequence-parallel") || divides(tp_ * cp_, n("seq-length")),
           "tp x cp divides the sequence"});
    const bool meets =
        call_.options.contains("standalone") ||
        (call_.options.contains("rdzv-endpoint") && call_.options.contains("rdzv-backend") &&
         call_.options.contains("rdzv-id"));
    check({meets, "torchrun knows where its nodes meet"});
  }

  [[nodiscard]] double vpp() const {
    const auto chunks = static_cast<double>(megatron_stages(call_).size());
    return std::max(1.0, chunks / pp_);
  }

  void pipeline() {
    const int ways = (call_.has("num-layers-per-virtual-pipeline-stage") ? 1 : 0) +
                     (call_.has("num-virtual-stages-per-pipeline-rank") ? 1 : 0) +
                     (call_.has("pipeline-model-parallel-layout") ? 1 : 0);
    check({ways <= 1, "one way of giving virtual stages"});
    const std::vector<int> stages = megatron_stages(call_);
    check({!stages.empty(), "layers can be dealt to the stages"});
    double layers = 0;
    for (const int each : stages) layers += each;
    check({layers == n("num-layers"), fmt::format("stages hold {} layers", layers)});
  }

  void attention() {
    const double heads = n("num-attention-heads");
    const double groups = call_.has("group-query-attention") ? n("num-query-groups") : heads;
    check({divides(tp_, heads), "tp divides the heads"});
    check({divides(tp_, groups) || divides(groups, tp_), "tp and the query groups divide"});
    check({!call_.has("multi-latent-attention") || !call_.has("group-query-attention"),
           "latent attention has no query groups"});
    const std::string& positions = call_.text("position-embedding-type");
    check({positions == "learned_absolute" || call_.has("rotary-base"), "rotary-base is stated"});
    check({call_.has("multi-latent-attention") || call_.text("rope-type") != "yarn",
           "rope-type yarn is for latent attention"});
    check({!call_.has("no-rope-fusion") || call_.text("rope-type") == "rope", "rope fusion"});
  }

  void experts() {
    if (!call_.has("num-experts")) {
      check({!call_.has("expert-model-parallel-size"), "expert parallelism needs experts"});
      return;
    }
    check(
        {divides(n("expert-model-parallel-size", 1), n("num-experts")), "ep divides the experts"});
    check({tp_ == 1 || call_.has("sequence-parallel"), "experts with tp need sequence-parallel"});
    const bool sigmoid = call_.text("moe-router-score-function") == "sigmoid";
    check({sigmoid || !call_.has("moe-router-enable-expert-bias"), "expert bias needs sigmoid"});
    check({sigmoid || n("moe-router-topk") > 1 || call_.has("moe-router-pre-softmax"),
           "topk 1 needs pre-softmax"});
    if (call_.has("moe-router-group-topk")) {
      check({divides(n("moe-router-num-groups"), n("num-experts")), "groups divide the experts"});
    }
    if (call_.has("moe-layer-freq")) {
      check({static_cast<double>(megatron_pattern(call_.text("moe-layer-freq")).size()) ==
                 n("num-layers"),
             "moe-layer-freq names every layer"});
    }
  }

  void memory() {
    if (call_.has("overlap-param-gather")) {
      check({call_.has("use-distributed-optimizer") && call_.has("overlap-grad-reduce"),
             "overlap-param-gather needs the distributed optimizer and overlap-grad-reduce"});
    }
    if (call_.has("optimizer-cpu-offload")) {
      check({call_.has("use-precision-aware-optimizer") && call_.has("use-distributed-optimizer"),
             "offloading needs the precision-aware, distributed optimizer"});
    }
    const std::string& granularity = call_.text("recompute-granularity");
    const bool method = call_.has("recompute-method") && call_.has("recompute-num-layers");
    check({granularity != "full" || method, "full recomputation needs a method and a number"});
    check(
        {granularity != "selective" || !call_.has("recompute-method"), "selective has no method"});
  }

  const TorchrunCall& call_;
  double tp_ = n("tensor-model-parallel-size", 1);
  double pp_ = n("pipeline-model-parallel-size", 1);
  double cp_ = n("context-parallel-size", 1);
  std::vector<std::string> broken_;
};

/// Stages of "Ett|t*3|tmL": decoder layers of each.
std::vector<int> stages_of_layout(const std::string& layout) {
  std::vector<int> stages{0};
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] == '|') stages.push_back(0);
    if (layout[i] != 't') continue;
    int count = 1;
    if (i + 1 < layout.size() && layout[i + 1] == '*') {
      std::size_t used = 0;
      count = std::stoi(layout.substr(i + 2), &used);
      i += 1 + used;
    }
    stages.back() += count;
  }
  const bool ends = layout.starts_with("E") && layout.ends_with("L");
  return ends ? stages : std::vector<int>();
}

}  // namespace

const std::string& TorchrunCall::text(const std::string& name) const {
  static const std::string kNone;
  const auto at = flags.find(name);
  return at == flags.end() ? kNone : at->second;
}

double TorchrunCall::number(const std::string& name, double otherwise) const {
  const std::string& value = text(name);
  return is_number(value) ? std::stod(value) : otherwise;
}

LauncherArguments launcher_arguments(const std::string& name) {
  LauncherArguments known;
  const Result<Document> list =
      Document::load(std::string(ORRERY_SOURCE_DIR) + "/tests/launchers/" + name + ".yaml");
  EXPECT_TRUE(list) << (list ? "" : list.error().text());
  if (!list) return known;
  for (const DocumentNode::Entry& entry : list->root().entries()) {
    const std::string_view key = entry.key.text();
    if (key == "switches") known.switches = names_under(entry.value);
    if (key == "integers") known.integers = names_under(entry.value);
    if (key == "numbers") known.numbers = names_under(entry.value);
    if (key == "texts") known.texts = names_under(entry.value);
    if (key == "keys") known.keys = names_under(entry.value);
    if (key != "words") continue;
    for (const DocumentNode::Entry& word : entry.value.entries()) {
      known.words.emplace(std::string(word.key.text()), names_under(word.value));
    }
  }
  return known;
}

TorchrunCall read_torchrun(const std::string& script) {
  TorchrunCall call;
  std::string command;
  for (std::size_t begin = 0; begin < script.size();) {
    const std::size_t end = std::min(script.find('\n', begin), script.size() - 1) + 1;
    const std::string line = script.substr(begin, end - begin);
    if (!line.starts_with("#") && !line.starts_with("export ")) command += line;
    begin = end;
  }
  const std::vector<std::string> words = shell_words(command, call.wrong);
  const auto program = std::find(words.begin(), words.end(), "pretrain_gpt.py");
  if (words.empty() || words.front() != "torchrun" || program == words.end()) {
    call.wrong.emplace_back("expected torchrun .. pretrain_gpt.py");
    return call;
  }
  call.options = options_of({words.begin() + 1, program}, call.wrong);
  call.flags = options_of({program + 1, words.end()}, call.wrong);
  return call;
}

std::vector<std::string> wrong_arguments(const TorchrunCall& call, const LauncherArguments& known) {
  std::vector<std::string> wrong = call.wrong;
  const auto expect = [&](bool right, const std::string& name, const std::string& what) {
    if (!right) wrong.push_back(fmt::format("{} \"{}\": expected {}", name, call.text(name), what));
  };
  for (const auto& [name, value] : call.flags) {
    if (known.switches.contains(name)) {
      expect(value.empty(), name, "no value");
    } else if (known.integers.contains(name)) {
      expect(is_whole(value), name, "a whole number");
    } else if (known.numbers.contains(name)) {
      expect(is_number(value) || is_variable(value), name, "a number");
    } else if (known.texts.contains(name)) {
      expect(!value.empty(), name, "a value");
    } else if (const auto words = known.words.find(name); words != known.words.end()) {
      expect(words->second.contains(value), name, "one of its words");
    } else {
      wrong.push_back(name + " is no argument");
    }
  }
  return wrong;
}

std::vector<std::string> broken_megatron_rules(const TorchrunCall& call) {
  return MegatronRules(call).broken();
}

std::vector<int> megatron_pattern(const std::string& text) {
  std::vector<int> switches;
  for (std::size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
    const int value = text[at + 1] - '0';
    const int count = std::stoi(text.substr(at + 4));
    switches.insert(switches.end(), static_cast<std::size_t>(count), value);
  }
  return switches;
}

std::vector<int> megatron_stages(const TorchrunCall& call) {
  const auto layers = static_cast<int>(call.number("num-layers"));
  const auto pp = static_cast<int>(call.number("pipeline-model-parallel-size", 1));
  if (call.has("pipeline-model-parallel-layout")) {
    const auto stages = stages_of_layout(call.text("pipeline-model-parallel-layout"));
    return static_cast<int>(stages.size()) % pp == 0 ? stages : std::vector<int>();
  }
  const int ends = (call.has("account-for-embedding-in-pipeline-split") ? 1 : 0) +
                   (call.has("account-for-loss-in-pipeline-split") ? 1 : 0);
  const auto first = static_cast<int>(call.number("decoder-first-pipeline-num-layers"));
  const auto last = static_cast<int>(call.number("decoder-last-pipeline-num-layers"));
  auto vpp = static_cast<int>(call.number("num-virtual-stages-per-pipeline-rank", 1));
  const bool uneven = first > 0 || last > 0;
  if (uneven && ends > 0) return {};
  const int middle_ranks = pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const int middle = layers + ends - first - last;
  if ((middle == 0) != (middle_ranks == 0)) return {};
  if (middle_ranks > 0 && middle % middle_ranks != 0) return {};
  const int each = middle_ranks > 0 ? middle / middle_ranks : 0;
  if (call.has("num-layers-per-virtual-pipeline-stage")) {
    const auto chunk = static_cast<int>(call.number("num-layers-per-virtual-pipeline-stage"));
    if (uneven || chunk < 1 || each % chunk != 0) return {};
    vpp = each / chunk;
  }
  if (each % vpp != 0 || first % vpp != 0 || last % vpp != 0) return {};
  std::vector<int> stages;
  for (int chunk = 0; chunk < vpp; ++chunk) {
    for (int rank = 0; rank < pp; ++rank) {
      int held = each;
      if (rank == 0 && first > 0) held = first;
      if (rank == pp - 1 && last > 0) held = last;
      stages.push_back(held / vpp);
    }
  }
  if (call.has("account-for-embedding-in-pipeline-split")) --stages.front();
  if (call.has("account-for-loss-in-pipeline-split")) --stages.back();
  for (const int held : stages) {
    if (held < 0) return {};
  }
  return stages;
}

double megatron_parameters(const TorchrunCall& call) {
  const auto n = [&](const char* name, double otherwise = 0) {
    return call.number(name, otherwise);
  };
  const double h = n("hidden-size");
  const double heads = n("num-attention-heads");
  double attention = 0;
  if (call.has("multi-latent-attention")) {
    const double query = heads * (n("qk-head-dim", 128) + n("qk-pos-emb-head-dim", 64));
    const double rank = n("q-lora-rank");
    attention += rank > 0 ? rank * (h + query) : h * query;
    attention += h * (n("kv-lora-rank", 32) + n("qk-pos-emb-head-dim", 64));
    attention += n("kv-lora-rank", 32) * heads * (n("qk-head-dim", 128) + n("v-head-dim", 128));
    attention += heads * n("v-head-dim", 128) * h;
  } else {
    const double groups = call.has("group-query-attention") ? n("num-query-groups", 1) : heads;
    attention = n("kv-channels", h / heads) * h * (2 * heads + 2 * groups);
  }
  const double matrices = call.has("swiglu") || call.has("quick-geglu") ? 3 : 2;
  const double dense = matrices * h * n("ffn-hidden-size", 4 * h);
  const double routed = n("num-experts") * (matrices * h * n("moe-ffn-hidden-size") + h) +
                        matrices * h * n("moe-shared-expert-intermediate-size");
  double layers = 0;
  const std::vector<int> freq = megatron_pattern(call.text("moe-layer-freq"));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n("num-layers")); ++i) {
    const bool experts = call.has("num-experts") && (freq.empty() || freq[i] == 1);
    layers += attention + (experts ? routed : dense);
  }
  const double tables = call.has("untie-embeddings-and-output-weights") ? 2 : 1;
  const bool learned = call.text("position-embedding-type") == "learned_absolute";
  return layers + tables * h * n("vocab-size") + (learned ? h * n("max-position-embeddings") : 0);
}

}  // namespace orrery
