#include "fleet/import/slurm_conf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/format/document.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::size_t kLineSettingsMax = 256;  // Slurm has a few dozen for a partition

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

/// Counts the backslashes right before a position; an odd number of them escapes the character
/// there.
std::size_t backslashes_before(std::string_view text, std::size_t at) {
  std::size_t count = 0;
  while (count < at && text[at - count - 1] == '\\') ++count;
  return count;
}

std::string_view without_comment(std::string_view line) {
  for (std::size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1)) {
    if (backslashes_before(line, at) % 2 == 0) return line.substr(0, at);
  }
  return line;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '#' || text[i + 1] == '\\');
    plain += escape ? text[++i] : text[i];
  }
  return plain;
}

/// Lines joined by '\', which remember where each of them began.
struct JoinedLine {
  struct Piece {
    std::size_t begin;
    int line;
  };
  std::string text;
  std::vector<Piece> pieces;

  [[nodiscard]] SourcePosition position(const std::string& file, std::size_t offset) const {
    const Piece* piece = &pieces.front();
    for (const Piece& each : pieces) {
      if (each.begin <= offset) piece = &each;
    }
    const std::string_view before =
        std::string_view(text).substr(piece->begin, offset - piece->begin);
    return {file, piece->line, place_of(before, before.size()).column};
  }
};

/// Cuts a text into joined lines without comments.
class LineCutter {
 public:
  LineCutter(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  /// Returns the next line; none at the end of the text.
  Result<std::optional<JoinedLine>> next() {
    if (rest_.empty()) return std::nullopt;
    JoinedLine joined;
    while (true) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      line = without_comment(line);
      joined.pieces.push_back({joined.text.size(), number_});
      const bool continues = backslashes_before(line, line.size()) % 2 == 1;
      if (continues) line.remove_suffix(1);
      joined.text += line;
      if (!continues) return joined;
      if (rest_.empty()) {
        return input_error({file_, number_, 1},
                           "the last line ends in \"\\\", expected a line "
                           "after it");
      }
    }
  }

 private:
  std::string_view rest_;
  const std::string& file_;
  int number_ = 0;
};

/// Cuts one joined line into settings.
class SettingScanner {
 public:
  SettingScanner(const JoinedLine& line, const std::string& file)
      : line_(line), text_(line.text), file_(file) {}

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] SourcePosition here() const { return line_.position(file_, at_); }

  /// Returns FILE of "Include FILE"; none on another line. Precondition: at the first word.
  Result<std::optional<std::string>> included_file() {
    constexpr std::string_view kInclude = "include";
    const std::string_view rest = text_.substr(at_);
    const bool include = lower_case(rest.substr(0, kInclude.size())) == kInclude &&
                         rest.size() > kInclude.size() && is_blank(rest[kInclude.size()]);
    if (!include) return std::nullopt;
    const SourcePosition where = here();
    at_ += kInclude.size();
    skip_blanks();
    const std::string_view word = next_word();
    skip_blanks();
    if (word.empty() || !at_end()) return input_error(where, "expected Include and one file name");
    if (word.find('%') != word.npos) {
      return input_error(where, fmt::format("the modifiers of \"Include {}\" are not supported; "
                                            "write the file's name out",
                                            printable(word, 60)));
    }
    return unescaped(word);
  }

  /// Reads the next setting. Precondition: at a word.
  Result<SlurmSetting> next() {
    const std::size_t begin = at_;
    SlurmSetting setting;
    setting.where = here();
    while (!at_end() && is_key_character(text_[at_])) ++at_;
    setting.key = lower_case(text_.substr(begin, at_ - begin));
    skip_blanks();
    if (setting.key.empty() || at_end() || text_[at_] != '=') {
      return input_error(setting.where, fmt::format("expected KEY=VALUE, found \"{}\"",
                                                    printable(text_.substr(begin), 40)));
    }
    ++at_;
    skip_blanks();
    Result<std::string> value = next_value();
    if (!value) return forward_error(value);
    setting.value = *std::move(value);
    return setting;
  }

 private:
  std::string_view next_word() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(kBlanks, at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  Result<std::string> next_value() {
    const SourcePosition where = here();
    if (at_end()) return input_error(where, "expected a value after \"=\"");
    if (text_[at_] != '"') {
      const std::string_view word = next_word();
      if (word.find('"') == word.npos) return unescaped(word);
      return input_error(where, fmt::format("a quote inside the value {}; expected it around the "
                                            "whole value",
                                            printable(word, 40)));
    }
    const std::size_t close = text_.find('"', at_ + 1);
    if (close == text_.npos) {
      return input_error(
          where, fmt::format("the quote of {} is never closed", printable(text_.substr(at_), 40)));
    }
    const std::string value = unescaped(text_.substr(at_ + 1, close - at_ - 1));
    at_ = close + 1;
    if (at_end() || is_blank(text_[at_])) return value;
    return input_error(here(), "expected a blank after the closing quote");
  }

  const JoinedLine& line_;
  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

class ConfReader {
 public:
  explicit ConfReader(const std::string& path)
      : directory_(std::filesystem::path(path).parent_path()) {}

  /// Reads a file; `from` is the Include that names it, or nowhere.
  Status read(const std::string& path, const SourcePosition& from) {
    Result<std::string> text = open(path, from);
    if (!text) return forward_error(text);
    LineCutter cutter(*text, path);
    while (true) {
      Result<std::optional<JoinedLine>> line = cutter.next();
      if (!line) return forward_error(line);
      if (!*line) break;
      if (Status taken = take(**line, path); !taken) return taken;
    }
    open_.pop_back();
    return {};
  }

  std::vector<SlurmLine> take_lines() { return std::move(lines_); }

 private:
  Result<std::string> open(const std::string& path, const SourcePosition& from) {
    const auto refuse = [&](const std::string& why) {
      return input_error(from, fmt::format("{}{}: {}", from.file.empty() ? "" : "cannot include ",
                                           printable(path, 200), why));
    };
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(path, error);
    if (error) return refuse(error.message());
    if (!std::filesystem::is_regular_file(real, error)) return refuse("not a regular file");
    if (std::find(open_.begin(), open_.end(), real) != open_.end()) {
      return refuse("it would include itself");
    }
    open_.push_back(real);
    if (open_.size() > kSlurmConfDepthMax) {
      return refuse(fmt::format("more than {} files inside each other", kSlurmConfDepthMax));
    }
    if (++files_ > kSlurmConfFilesMax) {
      return refuse(fmt::format("more than {} files", kSlurmConfFilesMax));
    }
    const std::uintmax_t size = std::filesystem::file_size(real, error);
    if (!error && size > kSlurmConfBytesMax - bytes_) return too_large(path);
    Result<std::string> text = read_file(path, kSlurmConfBytesMax - bytes_);
    if (!text) return refuse(text.error().message);
    bytes_ += text->size();
    const std::size_t bad = first_invalid_utf8(*text);
    if (bad == std::string::npos) return text;
    const TextPlace place = place_of(*text, bad);
    return input_error({path, place.line, place.column},
                       fmt::format("byte 0x{:02x} is not valid UTF-8 text",
                                   static_cast<unsigned char>((*text)[bad])));
  }

  static tl::unexpected<Error> too_large(const std::string& path) {
    return input_error({path, 1, 1}, fmt::format("more than the {} MiB a Slurm configuration may "
                                                 "have with all it includes",
                                                 kSlurmConfBytesMax >> 20));
  }

  Status take(const JoinedLine& line, const std::string& file) {
    SettingScanner scanner(line, file);
    scanner.skip_blanks();
    if (scanner.at_end()) return {};
    const SourcePosition where = scanner.here();
    Result<std::optional<std::string>> include = scanner.included_file();
    if (!include) return forward_error(include);
    if (*include) return read((directory_ / **include).string(), where);
    SlurmLine taken;
    while (!scanner.at_end()) {
      Result<SlurmSetting> setting = scanner.next();
      if (!setting) return forward_error(setting);
      if (const SlurmSetting* twice = taken.find(setting->key); twice != nullptr) {
        return input_error(setting->where,
                           fmt::format("the key \"{}\" stands twice in the line, "
                                       "first at {}:{}",
                                       twice->key, twice->where.line, twice->where.column));
      }
      if (++settings_ > kSlurmConfSettingsMax || taken.settings.size() >= kLineSettingsMax) {
        return input_error(setting->where,
                           fmt::format("more than {} settings in a line or {} in all",
                                       kLineSettingsMax, kSlurmConfSettingsMax));
      }
      taken.settings.push_back(*std::move(setting));
      scanner.skip_blanks();
    }
    lines_.push_back(std::move(taken));
    return {};
  }

  std::filesystem::path directory_;
  std::vector<std::filesystem::path> open_;  ///< each includes the next
  std::size_t bytes_ = 0;
  std::size_t files_ = 0;
  std::size_t settings_ = 0;
  std::vector<SlurmLine> lines_;
};

}  // namespace

const SlurmSetting* SlurmLine::find(std::string_view key) const {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const SlurmSetting& each) { return each.key == key; });
  return found == settings.end() ? nullptr : &*found;
}

Result<std::vector<SlurmLine>> read_slurm_conf(const std::string& path) {
  ConfReader reader(path);
  if (Status read = reader.read(path, {}); !read) return forward_error(read);
  return reader.take_lines();
}

}  // namespace orrery
