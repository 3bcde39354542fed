// runtime/checkpoint/tensor_piece.hpp - a range of the elements of one named tensor, and which run
// of which job saved it.
//
// A job's state is a list of named tensors, each a flat vector of elements in row-major order, cut
// over ranks at any element. Values, built by the trainer and by what reads files.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_reader.hpp"

namespace orrery {

/// Named as safetensors names them.
enum class ElementType : std::uint8_t { kF32, kBf16, kF16, kI32, kI64, kU64, kU8 };

constexpr std::array<EnumWord<ElementType>, 7> enum_words(ElementType) {
  return {{{"F32", ElementType::kF32},
           {"BF16", ElementType::kBf16},
           {"F16", ElementType::kF16},
           {"I32", ElementType::kI32},
           {"I64", ElementType::kI64},
           {"U64", ElementType::kU64},
           {"U8", ElementType::kU8}}};
}

/// Bytes of one element.
[[nodiscard]] std::uint64_t bytes_of(ElementType type);

/// The product of the dimensions, 1 of none; nothing where it is above 2^53.
[[nodiscard]] std::optional<std::uint64_t> elements_of(const std::vector<std::uint64_t>& shape);

/// Elements [begin, end) of a tensor, and where they lie.
struct TensorPiece {
  std::string tensor;
  ElementType type = ElementType::kF32;
  std::vector<std::uint64_t> shape;  ///< of the whole tensor
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< bytes from the begin of the shard's payload

  [[nodiscard]] std::uint64_t bytes() const { return (end - begin) * bytes_of(type); }
  friend bool operator==(const TensorPiece&, const TensorPiece&) = default;
};

/// A piece in memory. The bytes are borrowed; `piece.offset` means nothing here.
struct PieceView {
  TensorPiece piece;
  std::span<const std::byte> bytes;
};

/// A whole tensor.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::uint64_t> shape;

  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// Elements [begin, end) that somebody wants, of the type he takes them for.
struct TensorRange {
  std::string_view tensor;
  ElementType type = ElementType::kF32;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Why a tensor does not have a range: another type, an end beyond its own. `file` is where it
/// lies.
[[nodiscard]] Status check_range(const TensorRange& range, const TensorInfo& tensor,
                                 const std::string& file);

/// No tensor has the name of the range; says which of `names` is the nearest.
[[nodiscard]] tl::unexpected<Error> no_such_tensor(const TensorRange& range,
                                                   std::span<const std::string_view> names,
                                                   const std::string& file);

/// Why a piece is none: no name, a name that is no text, a range outside its tensor.
[[nodiscard]] Status check_piece(const TensorPiece& piece);

/// One life of a job as its checkpoints see it: attempts count from 1 and grow within the job,
/// epochs (memberships) within the attempt.
struct Incarnation {
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;

  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Incarnation&, const Incarnation&) = default;
};

/// Who saved what: the state of `job` after `step` steps, as `by` had it.
struct CheckpointId {
  std::string job;
  Incarnation by;
  std::uint64_t step = 0;

  friend bool operator==(const CheckpointId&, const CheckpointId&) = default;
};

/// One writer's part of a checkpoint.
struct ShardName {
  CheckpointId id;
  std::uint32_t rank = 0;  ///< of the writer, below `world`
  std::uint32_t world = 1;

  /// The name of its file, which no other writer, attempt or epoch has: "rank-3-of-8.a2.e0.shard".
  [[nodiscard]] std::string file() const;
  friend bool operator==(const ShardName&, const ShardName&) = default;
};

template <class Visitor, SameStruct<TensorPiece> Self>
void describe(Visitor& visitor, Self& piece) {
  visitor.required("tensor", piece.tensor);
  visitor.required("dtype", piece.type);
  visitor.required("shape", piece.shape);
  visitor.required("begin", piece.begin);
  visitor.required("end", piece.end);
  visitor.required("offset", piece.offset);
}

/// The fields of an id among those of what has it.
template <class Visitor, SameStruct<CheckpointId> Self>
void describe_id(Visitor& visitor, Self& id) {
  visitor.required("job", id.job);
  visitor.required("attempt", id.by.attempt);
  visitor.required("epoch", id.by.epoch);
  visitor.required("step", id.step);
}

}  // namespace orrery
