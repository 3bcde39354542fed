#include "inference/gguf/gguf_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "base/format/little_endian.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kTextMax = 65'535;  ///< bytes of a key or of a tensor's name
constexpr std::size_t kNameShown = 120;
constexpr std::uint32_t kExtentsMax = 4;
constexpr std::uint64_t kAlignmentDefault = 32;
constexpr std::uint64_t kAlignmentMax = std::uint64_t{1} << 20;
/// The least bytes of an entry (key length, type, value) and of a tensor.
constexpr std::uint64_t kEntryMin = 8 + 4 + 1;
constexpr std::uint64_t kTensorMin = 8 + 4 + 8 + 4 + 8;

/// Bytes of a value; 0: they depend on the value.
std::uint64_t size_of(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

template <class Word>
Word word_at(const char* from) {
  return static_cast<Word>(load_little_endian<std::make_unsigned_t<Word>>(from));
}

/// Returns a value of a type with a size.
GgufValue scalar_at(GgufType type, const char* from) {
  switch (type) {
    case GgufType::kU8:
      return std::uint64_t{word_at<std::uint8_t>(from)};
    case GgufType::kU16:
      return std::uint64_t{word_at<std::uint16_t>(from)};
    case GgufType::kU32:
      return std::uint64_t{word_at<std::uint32_t>(from)};
    case GgufType::kU64:
      return word_at<std::uint64_t>(from);
    case GgufType::kI8:
      return std::int64_t{word_at<std::int8_t>(from)};
    case GgufType::kI16:
      return std::int64_t{word_at<std::int16_t>(from)};
    case GgufType::kI32:
      return std::int64_t{word_at<std::int32_t>(from)};
    case GgufType::kI64:
      return word_at<std::int64_t>(from);
    case GgufType::kF32:
      return double{std::bit_cast<float>(word_at<std::uint32_t>(from))};
    case GgufType::kF64:
      return std::bit_cast<double>(word_at<std::uint64_t>(from));
    case GgufType::kBool:
      return *from != 0;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return false;
}

/// A tensor's type by its number in ggml.
struct NumberedType {
  std::uint32_t number;
  TensorEncoding encoding;
};
constexpr std::array kTensorTypes{
    NumberedType{0, TensorEncoding::kF32},   NumberedType{1, TensorEncoding::kF16},
    NumberedType{2, TensorEncoding::kQ4_0},  NumberedType{3, TensorEncoding::kQ4_1},
    NumberedType{6, TensorEncoding::kQ5_0},  NumberedType{7, TensorEncoding::kQ5_1},
    NumberedType{8, TensorEncoding::kQ8_0},  NumberedType{12, TensorEncoding::kQ4_K},
    NumberedType{13, TensorEncoding::kQ5_K}, NumberedType{14, TensorEncoding::kQ6_K},
    NumberedType{30, TensorEncoding::kBf16},
};

std::string known_types() {
  std::string text;
  for (const NumberedType& each : kTensorTypes) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", block_of(each.encoding).name,
                        each.number);
  }
  return text;
}

/// Reads a file from its front. After the first error it reads zeros and empty texts.
class GgufCursor {
 public:
  GgufCursor(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  [[nodiscard]] std::uint64_t at() const { return at_; }
  [[nodiscard]] std::uint64_t left() const { return bytes_.size() - at_; }
  [[nodiscard]] Status& status() { return status_; }

  /// Keeps the first error, at byte `at`.
  void fail(std::uint64_t at, std::string_view why) {
    if (status_) status_ = input_error({}, fmt::format("{}: byte {}: {}", file_, at, why));
  }
  std::string_view take(std::uint64_t size, std::string_view what) {
    if (size > left()) {
      fail(at_, fmt::format("expected {} of {} bytes, the file has {} more", what, size, left()));
    }
    if (!status_) return {};
    const std::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  template <class Word>
  Word word(std::string_view what) {
    const std::string_view taken = take(sizeof(Word), what);
    return taken.empty() ? Word{0} : load_little_endian<Word>(&taken.front());
  }
  std::string_view text(std::string_view what) {
    const auto size = word<std::uint64_t>(what);
    return take(size, what);
  }
  /// A text that names something.
  std::string_view name(std::string_view what) {
    const std::uint64_t begin = at_;
    const std::string_view name = text(what);
    const bool good = !name.empty() && name.size() <= kTextMax &&
                      first_invalid_utf8(name) == std::string_view::npos;
    if (!good) fail(begin, fmt::format("expected {}: 1 to {} bytes of UTF-8", what, kTextMax));
    return name;
  }
  /// A number of things that take `each` bytes or more.
  std::uint64_t count(std::uint64_t each, std::string_view what) {
    const std::uint64_t begin = at_;
    const auto number = word<std::uint64_t>(what);
    if (number > left() / each) {
      fail(begin, fmt::format("{} {}, expected at most {} in the {} bytes behind it", number, what,
                              left() / each, left()));
    }
    return status_ ? number : 0;
  }

 private:
  std::string_view bytes_;
  const std::string& file_;
  std::uint64_t at_ = 0;
  Status status_;
};

GgufType read_type(GgufCursor& from) {
  const std::uint64_t begin = from.at();
  const auto type = from.word<std::uint32_t>("a type");
  if (type > static_cast<std::uint32_t>(GgufType::kF64)) {
    from.fail(begin, fmt::format("type {}, expected a type of values, 0 to 12", type));
    return GgufType::kU8;
  }
  return static_cast<GgufType>(type);
}

GgufArray read_array(GgufCursor& from) {
  const std::uint64_t begin = from.at();
  GgufArray array{.type = read_type(from)};
  if (array.type == GgufType::kArray)
    from.fail(begin, "an array of arrays, expected one of values");
  if (array.type != GgufType::kString) {
    const std::uint64_t each = std::max<std::uint64_t>(1, size_of(array.type));
    array.count = from.count(each, "values of an array");
    array.bytes = from.take(array.count * each, "an array");
    return array;
  }
  array.count = from.count(8, "texts of an array");
  GgufCursor texts = from;
  const std::uint64_t first = from.at();
  for (std::uint64_t i = 0; i < array.count && from.status(); ++i) (void)from.text("a text");
  array.bytes = texts.take(from.at() - first, "the texts");
  return array;
}

GgufValue read_value(GgufCursor& from) {
  const GgufType type = read_type(from);
  if (type == GgufType::kString) return from.text("a text");
  if (type == GgufType::kArray) return read_array(from);
  const std::uint64_t begin = from.at();
  const std::string_view bytes = from.take(size_of(type), "a value");
  if (bytes.empty()) return false;
  if (type == GgufType::kBool && static_cast<unsigned char>(bytes[0]) > 1) {
    from.fail(begin, "expected 0 or 1, a truth value");
  }
  return scalar_at(type, &bytes.front());
}

std::vector<GgufEntry> read_entries(GgufCursor& from, std::uint64_t count) {
  std::vector<GgufEntry> entries;
  for (std::uint64_t i = 0; i < count && from.status(); ++i) {
    GgufEntry entry{.offset = from.at()};
    entry.key = from.name("a key");
    entry.value = read_value(from);
    entries.push_back(entry);
  }
  std::ranges::stable_sort(entries, {}, &GgufEntry::key);
  const auto twice = std::ranges::adjacent_find(entries, {}, &GgufEntry::key);
  if (twice != entries.end()) {
    from.fail((twice + 1)->offset,
              fmt::format("the key \"{}\" comes twice", printable(twice->key, kNameShown)));
  }
  return entries;
}

/// Reads what stands before the data: the offset is from their begin.
GgufTensor read_tensor(GgufCursor& from) {
  GgufTensor tensor;
  tensor.name = from.name("the name of a tensor");
  const std::uint64_t begin = from.at();
  const auto extents = from.word<std::uint32_t>("the extents of a tensor");
  const std::string name = printable(tensor.name, kNameShown);
  if (extents == 0 || extents > kExtentsMax) {
    from.fail(begin, fmt::format("tensor \"{}\" has {} extents, expected 1 to {}", name, extents,
                                 kExtentsMax));
  }
  for (std::uint32_t i = 0; i < extents && from.status(); ++i) {
    tensor.shape.push_back(from.word<std::uint64_t>("an extent"));
    if (from.status() && tensor.shape.back() == 0) {
      from.fail(from.at() - 8, fmt::format("tensor \"{}\" has an extent of 0", name));
    }
  }
  std::ranges::reverse(tensor.shape);
  const std::uint64_t type_at = from.at();
  const auto type = from.word<std::uint32_t>("the type of a tensor");
  const auto known = std::ranges::find(kTensorTypes, type, &NumberedType::number);
  if (known == kTensorTypes.end()) {
    from.fail(type_at, fmt::format("tensor \"{}\" has the type {}, expected one of {}", name, type,
                                   known_types()));
  } else {
    tensor.encoding = known->encoding;
  }
  tensor.offset = from.word<std::uint64_t>("the offset of a tensor");
  return tensor;
}

std::vector<GgufTensor> read_tensors(GgufCursor& from, std::uint64_t count) {
  std::vector<GgufTensor> tensors;
  std::vector<std::string_view> names;
  for (std::uint64_t i = 0; i < count && from.status(); ++i) {
    tensors.push_back(read_tensor(from));
    names.push_back(tensors.back().name);
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) {
    from.fail(from.at(),
              fmt::format("the tensor \"{}\" comes twice", printable(*twice, kNameShown)));
  }
  return tensors;
}

/// Returns the bytes of a tensor's data; nothing if they are too many, or its rows no whole blocks.
std::optional<std::uint64_t> bytes_of(const GgufTensor& tensor) {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
    if (tensor.shape[i] > (std::uint64_t{1} << 53) / rows) return std::nullopt;
    rows *= tensor.shape[i];
  }
  return encoded_bytes(tensor.encoding, tensor.shape.back(), rows);
}

std::uint64_t aligned(std::uint64_t at, std::uint64_t alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

std::uint64_t alignment_of(GgufCursor& from, const std::vector<GgufEntry>& entries) {
  const auto found = std::ranges::find(entries, "general.alignment", &GgufEntry::key);
  if (found == entries.end()) return kAlignmentDefault;
  const auto* value = std::get_if<std::uint64_t>(&found->value);
  if (value != nullptr && std::has_single_bit(*value) && *value <= kAlignmentMax) return *value;
  from.fail(found->offset,
            fmt::format("general.alignment: expected a power of two up to {}", kAlignmentMax));
  return kAlignmentDefault;
}

/// Finds the data of the tensors, which begin at the next multiple of the alignment.
void place_tensors(GgufCursor& from, std::string_view bytes, std::uint64_t alignment,
                   std::vector<GgufTensor>& tensors) {
  std::ranges::stable_sort(tensors, {}, &GgufTensor::offset);
  const std::uint64_t begin = aligned(from.at(), alignment);
  std::uint64_t end = begin;
  for (GgufTensor& tensor : tensors) {
    const std::string name = printable(tensor.name, kNameShown);
    const std::optional<std::uint64_t> size = bytes_of(tensor);
    if (!size) {
      return from.fail(from.at(),
                       fmt::format("tensor \"{}\" has rows of {} weights, expected "
                                   "whole blocks of {} {} in at most 2^53 bytes",
                                   name, tensor.shape.back(), block_of(tensor.encoding).weights,
                                   block_of(tensor.encoding).name));
    }
    const std::uint64_t expected = aligned(end, alignment);
    if (tensor.offset != expected - begin) {
      return from.fail(from.at(), fmt::format("tensor \"{}\" has its data at offset {}, expected "
                                              "{}, where those before it end",
                                              name, tensor.offset, expected - begin));
    }
    if (expected > bytes.size() || *size > bytes.size() - expected) {
      return from.fail(expected, fmt::format("expected {} bytes of the tensor \"{}\", the file has "
                                             "{} in all",
                                             *size, name, bytes.size()));
    }
    tensor.offset = expected;
    tensor.bytes = bytes.substr(expected, *size);
    end = expected + *size;
  }
  if (bytes.size() != end && bytes.size() != aligned(end, alignment) && !tensors.empty()) {
    from.fail(end, fmt::format("the data end here, the file has {} bytes", bytes.size()));
  }
}

}  // namespace

Result<GgufFile> GgufFile::parse(std::string_view bytes, const std::string& file) {
  GgufFile parsed;
  parsed.file_ = file;
  GgufCursor from(bytes, parsed.file_);
  if (from.take(4, "the mark \"GGUF\"") != "GGUF") from.fail(0, "expected the mark \"GGUF\"");
  parsed.version_ = from.word<std::uint32_t>("the version");
  if (parsed.version_ != 2 && parsed.version_ != 3) {
    from.fail(4, fmt::format("version {}, expected 2 or 3, little endian", parsed.version_));
  }
  const std::uint64_t tensors = from.count(kTensorMin, "tensors");
  const std::uint64_t entries = from.count(kEntryMin, "entries");
  parsed.entries_ = read_entries(from, entries);
  parsed.tensors_ = read_tensors(from, tensors);
  const std::uint64_t alignment = alignment_of(from, parsed.entries_);
  if (from.status()) place_tensors(from, bytes, alignment, parsed.tensors_);
  if (!from.status()) return forward_error(from.status());
  return parsed;
}

const GgufEntry* GgufFile::find(std::string_view key) const {
  const auto found = std::ranges::lower_bound(entries_, key, {}, &GgufEntry::key);
  return found == entries_.end() || found->key != key ? nullptr : &*found;
}

std::vector<std::string_view> strings_of(const GgufArray& array) {
  std::vector<std::string_view> texts;
  texts.reserve(array.count);
  for (std::string_view left = array.bytes; texts.size() < array.count;) {
    const auto size = load_little_endian<std::uint64_t>(&left.front());
    texts.push_back(left.substr(8, size));
    left.remove_prefix(8 + size);
  }
  return texts;
}

std::vector<double> numbers_of(const GgufArray& array) {
  std::vector<double> numbers;
  numbers.reserve(array.count);
  for (std::uint64_t i = 0; i < array.count; ++i) {
    const GgufValue value = scalar_at(array.type, array.bytes.data() + i * size_of(array.type));
    if (const auto* whole = std::get_if<std::uint64_t>(&value)) {
      numbers.push_back(static_cast<double>(*whole));
    } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
      numbers.push_back(static_cast<double>(*number));
    } else {
      numbers.push_back(std::get<double>(value));
    }
  }
  return numbers;
}

bool is_number(GgufType type) {
  return type != GgufType::kString && type != GgufType::kArray && type != GgufType::kBool;
}

}  // namespace orrery
