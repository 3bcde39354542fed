// How long encoding takes, one thread: a text of prose, code and words of many scripts, a time for
// 100,000 tokens, by tokenizers in the configurations of well-known model families. "First" is a
// tokenizer that has encoded nothing before, "again" one that has encoded this text.
//
//   bench_tokens [--python PROGRAM]
//
// PROGRAM is a Python that has PyPI's tokenizers. It trains vocabularies of 32,000 tokens on files
// of this machine, in build/bench/tokenizers, and is the peer: the same text and vocabularies, in
// the same run. Tokens that differ from its are an error. Without it, the small vocabularies of
// tests/tokens/fixtures are measured.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/format/document.hpp"
#include "base/numbers/rng.hpp"
#include "bench/figure.hpp"
#include "tokens/bpe_tokenizer.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 9;
constexpr double kTokens = 100'000;
constexpr double kTargetMs = 10;
constexpr std::size_t kPart = 190'000;  ///< bytes of prose, and of code
constexpr std::size_t kWords = 1'500;   ///< of other scripts
constexpr std::size_t kFileMax = std::size_t{1} << 28;

const std::vector<std::string> kFamilies = {"gpt2",   "llama3", "qwen2",   "o200k",     "deepseek",
                                            "smollm", "llama2", "mistral", "metaspace", "gemma"};

/// Words of several languages; those of one line stand together.
constexpr std::string_view kScripts =
    "Привет мир сегодня работа время человек город дорога который после чтобы система данные\n"
    "Überprüfung Straße größere Möglichkeit façade naïve déjà café año señor coração ação\n"
    "Καλημέρα κόσμος άνθρωπος δεδομένα σύστημα μεγάλο ημέρα γλώσσα χρόνος\n"
    "今天天气很好 我们正在训练模型 数据中心 电力 需要更多时间 系统已经启动 请稍等\n"
    "本日は晴天です 機械学習の モデルを 訓練しています カタカナ データセンター 電力\n"
    "안녕하세요 오늘은 날씨가 좋습니다 모델을 훈련하고 데이터 센터 전력 시간\n"
    "مرحبا بالعالم النظام البيانات الوقت المدينة الطريق العمل اليوم\n"
    "नमस्ते दुनिया प्रणाली समय शहर काम आज बिजली\n"
    "שלום עולם מערכת נתונים זמן עיר דרך\n"
    "Việt ngữ hệ thống dữ liệu thời gian thành phố đường\n"
    "😀 🎉 ✅ → ≤ ½ € № … “quoted” – —\n";

std::vector<std::string> lines_of(std::string_view text, char end) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find(end), text.size());
    parts.emplace_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return parts;
}

/// The first bytes of the files of a folder in the order of their paths, cut at a line end.
std::string text_of(const std::string& folder, std::string_view extension) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ORRERY_SOURCE_DIR) / folder)) {
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::string text;
  for (const fs::path& path : paths) text += must(read_file(path.string(), kFileMax));
  return text.substr(0, text.rfind('\n', kPart) + 1);
}

std::string words_of_scripts() {
  std::vector<std::vector<std::string>> languages;
  for (const std::string& line : lines_of(kScripts, '\n')) languages.push_back(lines_of(line, ' '));
  Rng rng(1);
  std::string text;
  for (std::size_t count = 0; count < kWords;) {
    const auto& words = languages[rng.below(languages.size())];
    const std::uint64_t sentence = 4 + rng.below(12);
    for (std::uint64_t i = 0; i < sentence; ++i) text += words[rng.below(words.size())] + " ";
    text.back() = '\n';
    count += sentence;
  }
  return text;
}

struct Times {
  double first = 0;  ///< seconds
  double again = 0;
  std::vector<std::int32_t> tokens;
  std::string peer;  ///< its name; "" for Orrery
};

Times own_times(const std::string& json, const std::string& text) {
  Times best{.first = 1e9, .again = 1e9};
  for (int round = 0; round < kRounds; ++round) {
    const BpeTokenizer tokenizer = must(BpeTokenizer::of(json, "the measured file"));
    const auto encode = [&] {
      std::vector<std::int32_t> tokens;
      const double seconds = seconds_of([&] { tokenizer.encode(text, tokens); });
      best.tokens = std::move(tokens);
      return seconds;
    };
    best.first = std::min(best.first, encode());
    best.again = std::min(best.again, encode());
  }
  return best;
}

void run(const std::string& command) {
  if (std::system(command.c_str()) == 0) return;
  fmt::print(stderr, "bench_tokens: the peer failed: {}\n", command);
  std::exit(1);
}

/// The reference library's times; it leaves its tokens in a file.
Times peer_times(const std::string& python, const fs::path& model, const fs::path& text) {
  const fs::path ids = text.parent_path() / "ids";
  const fs::path answer = text.parent_path() / "answer";
  run(fmt::format("'{}' {}/bench/peer_tokens.py encode {} {} {} >{}", python, ORRERY_SOURCE_DIR,
                  model.string(), text.string(), ids.string(), answer.string()));
  Times times;
  std::string version;
  std::ifstream(answer) >> version >> times.first >> times.again;
  times.peer = "tokenizers " + version;
  const std::string bytes = must(read_file(ids.string(), kFileMax));
  times.tokens.resize(bytes.size() / sizeof(std::int32_t));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(times.tokens.data()));
  return times;
}

void show(const std::string& family, const Times& own, const std::optional<Times>& peer) {
  const double factor = 1e3 * kTokens / static_cast<double>(own.tokens.size());
  const auto print = [&](const char* when, double Times::* seconds) {
    print_figure({.bench = "tokens",
                  .name = fmt::format("{}, 100,000 tokens, {}", family, when),
                  .value = own.*seconds * factor,
                  .unit = "ms",
                  .target = kTargetMs,
                  .peer = peer ? peer->peer : "",
                  .peer_value = peer ? std::optional((*peer).*seconds * factor) : std::nullopt});
  };
  print("first", &Times::first);
  print("again", &Times::again);
}

void measure(const std::optional<std::string>& python) {
  const std::string text = text_of("docs", ".md") + text_of("src", ".cpp") + words_of_scripts();
  const fs::path folder = fs::path(ORRERY_SOURCE_DIR) / "build/bench/tokenizers";
  if (python) {
    fs::create_directories(folder);
    std::ofstream(folder / "text") << text;
    run(fmt::format("'{}' {}/bench/peer_tokens.py train {}", *python, ORRERY_SOURCE_DIR,
                    folder.string()));
  } else {
    fmt::print(stderr,
               "bench_tokens: NOT MEASURED: the peer and large vocabularies: no --python\n");
  }
  for (const std::string& family : kFamilies) {
    if (python) {
      const fs::path model = folder / (family + ".json");
      const Times own = own_times(must(read_file(model.string(), kFileMax)), text);
      const Times peer = peer_times(*python, model, folder / "text");
      if (own.tokens != peer.tokens) {
        fmt::print(stderr, "bench_tokens: {}: the tokens differ\n", family);
        std::exit(1);
      }
      show(family, own, peer);
      continue;
    }
    const fs::path model =
        fs::path(ORRERY_SOURCE_DIR) / "tests/tokens/fixtures" / (family + ".json");
    if (!fs::exists(model)) continue;
    const auto fixture = nlohmann::json::parse(must(read_file(model.string(), kFileMax)));
    show(family + ", small vocabulary", own_times(fixture.at("tokenizer").dump(), text),
         std::nullopt);
  }
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  const std::vector<std::string> options(arguments + 1, arguments + count);
  if (options.empty()) {
    orrery::measure(std::nullopt);
  } else if (options.size() == 2 && options[0] == "--python") {
    orrery::measure(options[1]);
  } else {
    fmt::print(stderr, "bench_tokens: expected no option, or --python PROGRAM\n");
    return 2;
  }
  return 0;
}
