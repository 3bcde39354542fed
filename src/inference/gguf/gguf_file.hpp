// inference/gguf/gguf_file.hpp - the metadata and the places of the tensors of a GGUF file,
// version 2 or 3, little endian.
//
// A file is "GGUF", the version, the numbers of tensors and of entries, the entries (key, type,
// value), the tensors (name, extents with that of a row first, type, offset) and, from the next
// multiple of the alignment on, the data; see github.com/ggml-org/ggml, docs/gguf.md. Everything
// borrows the bytes of the file. Immutable once parsed, safe from every thread. Invariants: keys
// and names are unique; the data of the tensors lie in their order within the file, each at a
// multiple of the alignment, with nothing but padding between them. Cost: O(n log n) in entries and
// tensors; memory in proportion to the file's header.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "inference/formats/tensor_encoding.hpp"

namespace orrery {

enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// Values of one type; nested arrays are refused.
struct GgufArray {
  GgufType type = GgufType::kU8;
  std::uint64_t count = 0;
  std::string_view bytes;  ///< of the values, as they are in the file
};

/// Unsigned numbers are uint64, signed ones int64, floats double.
using GgufValue =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

struct GgufEntry {
  std::string_view key;
  GgufValue value;
  std::uint64_t offset = 0;  ///< of the key in the file
};

struct GgufTensor {
  std::string_view name;
  TensorEncoding encoding = TensorEncoding::kF32;
  std::vector<std::uint64_t> shape;  ///< in row-major order: the last extent is that of a row
  std::uint64_t offset = 0;          ///< of its data in the file
  std::string_view bytes;            ///< its data
};

class GgufFile {
 public:
  /// Errors begin with `file` and name the byte and what was expected there: another mark or
  /// version, a count, length or type that the file has no room for, a key or name that comes twice
  /// or is no UTF-8, an alignment that is no power of two, data that overlap, leave a gap or end
  /// behind the file.
  [[nodiscard]] static Result<GgufFile> parse(std::string_view bytes, const std::string& file);

  [[nodiscard]] std::uint32_t version() const { return version_; }
  [[nodiscard]] std::span<const GgufEntry> entries() const { return entries_; }
  /// In the order of their data.
  [[nodiscard]] std::span<const GgufTensor> tensors() const { return tensors_; }
  /// Returns the entry of a key, or nullptr. O(log entries).
  [[nodiscard]] const GgufEntry* find(std::string_view key) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::uint32_t version_ = 0;
  std::vector<GgufEntry> entries_;  ///< sorted by key
  std::vector<GgufTensor> tensors_;
};

/// Returns the strings of an array. Precondition: it is one of strings, of a parsed file.
[[nodiscard]] std::vector<std::string_view> strings_of(const GgufArray& array);
/// Returns the numbers of an array as doubles. Precondition: it is one of numbers, of a parsed
/// file.
[[nodiscard]] std::vector<double> numbers_of(const GgufArray& array);
/// Whether values of the type are numbers.
[[nodiscard]] bool is_number(GgufType type);

}  // namespace orrery
