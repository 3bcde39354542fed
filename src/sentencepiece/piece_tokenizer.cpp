#include "sentencepiece/piece_tokenizer.hpp"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <charconv>
#include <exception>

#include "base/format/document.hpp"
#include "base/text/utf8.hpp"
#include "runtime/trainer/sha256.hpp"

namespace orrery {
namespace {

constexpr std::size_t kModelMax = std::size_t{1} << 26;  ///< bytes
constexpr std::int64_t kKindsMax = std::int64_t{1} << 20;
constexpr std::string_view kSpace = "\xe2\x96\x81";  ///< U+2581 stands for a space in pieces

/// Appended to a model in protobuf's wire format: clears the tables (field 2) of its normaliser
/// (the message in field 3) and denormaliser (field 5), and makes the normaliser add no space in
/// front (3) and remove none (4). Repeated messages are merged, and the last value of a field
/// counts (protobuf.dev, "Encoding", last one wins).
constexpr std::string_view kAsItStands("\x1a\x06\x12\x00\x18\x00\x20\x00\x2a\x02\x12\x00", 12);

tl::unexpected<Error> model_error(const std::string& name, std::string_view what) {
  return input_error({}, fmt::format("tokenizer \"{}\": {}", name, what));
}

/// Returns the byte of a piece such as "<0x0A>".
std::optional<unsigned char> byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* end = piece.data() + 5;
  const auto [at, failed] = std::from_chars(piece.data() + 3, end, byte, 16);
  if (failed != std::errc() || at != end) return std::nullopt;
  return byte;
}

std::string with_spaces(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    const std::size_t at = std::min(piece.find(kSpace), piece.size());
    text += piece.substr(0, at);
    if (at == piece.size()) break;
    text += ' ';
    piece.remove_prefix(at + kSpace.size());
  }
  return text;
}

}  // namespace

std::string piece_library_text(std::string_view status) {
  const std::size_t place = status.find(".cc(");
  const std::size_t end = place == std::string_view::npos ? place : status.find(") [", place);
  if (end != std::string_view::npos) {
    const std::string_view rest = status.substr(end + 2);
    const std::size_t words = rest.rfind("] ");
    const bool says = words != std::string_view::npos && words + 2 < rest.size();
    status = says ? rest.substr(words + 2) : rest;
  }
  while (status.ends_with(' ')) status.remove_suffix(1);
  return printable(status, 160);
}

Result<PieceTokenizer> PieceTokenizer::open(const std::string& path) {
  const Result<std::string> model = read_file(path, kModelMax);
  if (!model) {
    std::string_view why = model.error().message;
    if (why.starts_with(path + ": ")) why.remove_prefix(path.size() + 2);
    return model_error(path, fmt::format("expected a SentencePiece model: {}", why));
  }
  return of(*model, path);
}

Result<PieceTokenizer> PieceTokenizer::of(std::string_view model, const std::string& name) {
  if (model.empty()) {
    return model_error(name, "expected a SentencePiece model, the file is empty");
  }
  auto processor = std::make_unique<Processor>();
  std::string fault;
  // The library throws no exceptions of its own, only those of libraries it uses.
  try {
    const auto loaded = processor->LoadFromSerializedProto(std::string(model).append(kAsItStands));
    if (!loaded.ok()) fault = piece_library_text(loaded.ToString());
  } catch (const std::exception& thrown) {
    fault = printable(thrown.what(), 160);
  }
  if (!fault.empty()) {
    return model_error(name, fmt::format("expected a SentencePiece model, and the library refuses "
                                         "it: {}",
                                         fault));
  }
  PieceTokenizer tokenizer(name, std::move(processor));
  if (Status good = tokenizer.learn(); !good) return forward_error(good);
  Sha256 digest;
  digest.add(std::as_bytes(std::span(model)));
  tokenizer.identity_ = digest.text();
  return tokenizer;
}

PieceTokenizer::PieceTokenizer(std::string name, std::unique_ptr<Processor> processor)
    : name_(std::move(name)), processor_(std::move(processor)) {}

PieceTokenizer::PieceTokenizer(PieceTokenizer&& other) noexcept = default;

PieceTokenizer::~PieceTokenizer() = default;

Status PieceTokenizer::learn() {
  const int kinds = processor_->GetPieceSize();
  if (kinds > kKindsMax) {
    return model_error(name_, fmt::format("{} tokens, expected at most {}", kinds, kKindsMax));
  }
  bytes_.fill(-1);
  texts_.resize(static_cast<std::size_t>(kinds));
  for (std::int32_t token = 0; token < kinds; ++token) {
    std::string& text = texts_[static_cast<std::size_t>(token)];
    if (processor_->IsControl(token) || processor_->IsUnknown(token)) continue;
    const std::string& piece = processor_->IdToPiece(token);
    text = with_spaces(piece);
    if (!processor_->IsByte(token)) continue;
    const std::optional<unsigned char> byte = byte_of(piece);
    if (!byte) continue;
    text.assign(1, static_cast<char>(*byte));
    bytes_[*byte] = token;
  }
  if (const auto lacking = std::ranges::count(bytes_, -1); lacking > 0) {
    return model_error(name_, fmt::format("{} of 256 bytes have no token, expected a model that "
                                          "was made with byte_fallback",
                                          lacking));
  }
  if (const int end = processor_->eos_id(); end >= 0 && end < kinds) end_ = end;
  return {};
}

void PieceTokenizer::encode(std::string_view text, std::vector<std::int32_t>& to) const {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::size_t size = std::min(end, kLineMax);
    encode_line(text.substr(0, size), to);
    text.remove_prefix(size);
  }
}

void PieceTokenizer::encode_line(std::string_view line, std::vector<std::int32_t>& to) const {
  while (!line.empty()) {
    std::string_view valid = line.substr(0, first_invalid_utf8(line));
    line.remove_prefix(valid.size());
    while (!valid.empty()) {
      const std::size_t at = std::min(valid.find(kSpace), valid.size());
      encode_plain(valid.substr(0, at), to);
      valid.remove_prefix(at);
      if (valid.empty()) break;
      encode_bytes(kSpace, to);
      valid.remove_prefix(kSpace.size());
    }
    if (line.empty()) return;
    encode_bytes(line.substr(0, 1), to);
    line.remove_prefix(1);
  }
}

void PieceTokenizer::encode_plain(std::string_view text, std::vector<std::int32_t>& to) const {
  if (text.empty()) return;
  std::vector<int> tokens;
  const bool encoded = processor_->Encode(text, &tokens).ok();
  // Checked because a model may have pieces that decode to another text.
  if (encoded && decode(tokens) == text) {
    to.insert(to.end(), tokens.begin(), tokens.end());
  } else {
    encode_bytes(text, to);
  }
}

void PieceTokenizer::encode_bytes(std::string_view bytes, std::vector<std::int32_t>& to) const {
  for (const char byte : bytes) to.push_back(bytes_[static_cast<unsigned char>(byte)]);
}

std::size_t PieceTokenizer::least_tokens(std::string_view text) const {
  std::size_t longest = 1;
  for (const std::string& each : texts_) longest = std::max(longest, each.size());
  return (text.size() + longest - 1) / longest;
}

std::string PieceTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < kinds()) text += texts_[static_cast<std::size_t>(token)];
  }
  return text;
}

}  // namespace orrery
