#include "tokens/bpe_tokenizer.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <initializer_list>
#include <utility>

#include "base/format/document.hpp"
#include "base/text/utf8.hpp"
#include "tokens/bpe/added_tokens.hpp"
#include "tokens/bpe/merge_model.hpp"
#include "tokens/bpe/pre_tokenizer.hpp"
#include "tokens/bpe/text_frame.hpp"
#include "tokens/bpe/text_normalizer.hpp"
#include "tokens/bpe/token_texts.hpp"
#include "tokens/token_bound.hpp"
#include "tokens/token_joiner.hpp"

namespace orrery {
namespace {

constexpr std::size_t kFileMax = std::size_t{1} << 28;  ///< bytes

tl::unexpected<Error> tokenizer_error(const std::string& name, std::string_view why) {
  return input_error({}, fmt::format("tokenizer \"{}\": {}", name, why));
}

std::string sha256_of(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace

struct BpeTokenizer::Parts {
  explicit Parts(const JsonPart& file)
      : normalizer(file),
        pre_tokenizer(file),
        model(file.part("model"), pre_tokenizer.words()),
        added(file, model, normalizer),
        texts(file, model, added),
        frame(read_text_frame(file)),
        bound(TokenBound::of(file, model, pre_tokenizer.words(), added)) {}

  /// Appends the tokens of normalized text.
  void encode(TextPiece text, std::vector<std::int32_t>& to) const {
    if (const WordSplitter* splitter = pre_tokenizer.splitter()) {
      for (std::size_t at = 0; at < text.text.size();) {
        const std::size_t end = splitter->word_end(text.text, at);
        model.encode(text.text.substr(at, end - at), to);
        at = end;
      }
      return;
    }
    TextPieces pieces;
    pieces.pieces.push_back(text);
    pre_tokenizer.apply(pieces);
    for (const TextPiece& word : pieces.pieces) model.encode(word.text, to);
  }
  /// Appends the tokens of text without tokens that are found before the normalizer.
  void encode_raw(TextPiece text, AddedTokens::Special special,
                  std::vector<std::int32_t>& to) const {
    std::string buffer;
    const std::string_view normal = normalizer.apply(text.text, buffer);
    for (const TextPart& part :
         added.find(normal, {AddedTokens::Stage::kAfterNormalizer, special})) {
      if (part.token) {
        to.push_back(*part.token);
      } else {
        encode({normal.substr(part.span.begin, part.span.end - part.span.begin),
                text.opens && part.span.begin == 0},
               to);
      }
    }
  }

  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  MergeModel model;
  AddedTokens added;
  TokenTexts texts;
  TextFrame frame;
  std::optional<TokenBound> bound;
};

Result<BpeTokenizer> BpeTokenizer::open(const std::string& path) {
  const Result<std::string> json = read_file(path, kFileMax);
  if (!json) {
    std::string_view why = json.error().message;
    if (why.starts_with(path + ": ")) why.remove_prefix(path.size() + 2);
    return tokenizer_error(path, fmt::format("expected a tokenizer.json: {}", why));
  }
  return of(*json, path);
}

Result<BpeTokenizer> BpeTokenizer::of(std::string_view json, const std::string& name) {
  try {
    const nlohmann::json file = nlohmann::json::parse(json);
    const JsonPart root(file, "");
    if (root.has("version") && root.text("version") != "1.0") {
      return tokenizer_error(name, fmt::format("expected version \"1.0\", got \"{}\"",
                                               printable(root.text("version"), 60)));
    }
    BpeTokenizer tokenizer(name, std::make_unique<const Parts>(root));
    tokenizer.identity_ = sha256_of(json);
    return tokenizer;
  } catch (const LoadFault& fault) {
    return tokenizer_error(name, fault.message);
  } catch (const nlohmann::json::exception& thrown) {
    return tokenizer_error(
        name, fmt::format("expected a tokenizer.json: {}", printable(thrown.what(), 160)));
  }
}

BpeTokenizer::BpeTokenizer(std::string name, std::unique_ptr<const Parts> parts)
    : name_(std::move(name)), parts_(std::move(parts)) {}

BpeTokenizer::BpeTokenizer(BpeTokenizer&& other) noexcept = default;
BpeTokenizer& BpeTokenizer::operator=(BpeTokenizer&& other) noexcept = default;
BpeTokenizer::~BpeTokenizer() = default;

std::int64_t BpeTokenizer::kinds() const { return static_cast<std::int64_t>(parts_->texts.size()); }

std::optional<std::int32_t> BpeTokenizer::end_of_text() const {
  for (const char* content : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"}) {
    const auto token = parts_->added.token(content);
    if (token && parts_->added.is_special(content)) return token;
  }
  return std::nullopt;
}

std::size_t BpeTokenizer::least_tokens(std::string_view text) const {
  return parts_->bound ? parts_->bound->least(text) : 0;
}

void BpeTokenizer::encode(std::string_view text, std::vector<std::int32_t>& to) const {
  encode_with(text, {}, to);
}

void BpeTokenizer::encode_whole(std::string_view text, std::vector<std::int32_t>& to) const {
  encode_with(text, {.around = Encoding::Around::kAdded}, to);
}

void BpeTokenizer::encode_with(std::string_view text, Encoding encoding,
                               std::vector<std::int32_t>& to) const {
  const TextFrame& frame = parts_->frame;
  const bool framed = encoding.around == Encoding::Around::kAdded;
  const auto special = encoding.special == Encoding::Special::kText ? AddedTokens::Special::kText
                                                                    : AddedTokens::Special::kFound;
  if (framed) to.insert(to.end(), frame.before.begin(), frame.before.end());
  const AddedTokens::Search search{AddedTokens::Stage::kBeforeNormalizer, special};
  for (const TextPart& part : parts_->added.find(text, search)) {
    if (part.token) {
      to.push_back(*part.token);
    } else {
      parts_->encode_raw(
          {text.substr(part.span.begin, part.span.end - part.span.begin), part.span.begin == 0},
          special, to);
    }
  }
  if (framed) to.insert(to.end(), frame.behind.begin(), frame.behind.end());
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> tokens) const {
  return decode_with(tokens, TokenUse::Special::kLeftOut);
}

std::string BpeTokenizer::decode_with(std::span<const std::int32_t> tokens,
                                      TokenUse::Special special) const {
  std::string text;
  TokenJoiner joiner(*this, special);
  for (const std::int32_t token : tokens) joiner.add(token, text);
  joiner.finish(text);
  return text;
}

TokenText BpeTokenizer::text_of(std::int32_t token, TokenUse use) const {
  return parts_->texts.text_of(token, use);
}

TextRules BpeTokenizer::text_rules() const { return parts_->texts.rules(); }

std::optional<std::int32_t> BpeTokenizer::named(std::string_view name) const {
  const auto added = parts_->added.token(name);
  return added ? added : parts_->model.token(name);
}

}  // namespace orrery
