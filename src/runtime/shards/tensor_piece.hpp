// runtime/shards/tensor_piece.hpp - a range of the elements of one named tensor, and which
// incarnation of which job saved it.
//
// A job's state is a list of named tensors, each a flat vector of elements in row-major order,
// divided among ranks at any element. Plain values, made by the trainer and by readers of files.
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

#include "base/format/field_reader.hpp"

namespace orrery {

/// Element types, with the names that safetensors uses.
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

/// Returns the bytes of one element.
[[nodiscard]] std::uint64_t bytes_of(ElementType type);

/// Returns the product of the dimensions, 1 if there are none; nothing if it exceeds 2^53.
[[nodiscard]] std::optional<std::uint64_t> elements_of(const std::vector<std::uint64_t>& shape);

/// Elements [begin, end) of a tensor, and where they are stored.
struct TensorPiece {
  std::string tensor;
  ElementType type = ElementType::kF32;
  std::vector<std::uint64_t> shape;  ///< shape of the whole tensor
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  ///< bytes from the start of the shard's payload

  [[nodiscard]] std::uint64_t bytes() const { return (end - begin) * bytes_of(type); }
  friend bool operator==(const TensorPiece&, const TensorPiece&) = default;
};

/// A piece in memory. The bytes are borrowed; `piece.offset` is unused.
struct PieceView {
  TensorPiece piece;
  std::span<const std::byte> bytes;
};

/// The name, type and shape of a whole tensor.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<std::uint64_t> shape;

  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

/// Elements [begin, end) that a caller asks for, with the type it expects.
struct TensorRange {
  std::string_view tensor;
  ElementType type = ElementType::kF32;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Checks that a tensor has a range. Errors: another type, an end beyond the tensor's. `file` is
/// named in the message.
[[nodiscard]] Status check_range(const TensorRange& range, const TensorInfo& tensor,
                                 const std::string& file);

/// Returns the error that no tensor has the name of the range; it gives the nearest of `names`.
[[nodiscard]] tl::unexpected<Error> no_such_tensor(const TensorRange& range,
                                                   std::span<const std::string_view> names,
                                                   const std::string& file);

/// Checks a piece. Errors: no name, a name that is not valid text, a range outside its tensor.
[[nodiscard]] Status check_piece(const TensorPiece& piece);

/// One run of a job, as its checkpoints identify it: attempts count from 1 and grow within the job;
/// epochs (memberships) grow within the attempt.
struct Incarnation {
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;

  [[nodiscard]] std::string text() const;
  friend auto operator<=>(const Incarnation&, const Incarnation&) = default;
};

/// What was saved and by which incarnation: the state of `job` after `step` steps, as `by` had it.
struct CheckpointId {
  std::string job;
  Incarnation by;
  std::uint64_t step = 0;

  friend bool operator==(const CheckpointId&, const CheckpointId&) = default;
};

/// One writer's part of a checkpoint.
struct ShardName {
  CheckpointId id;
  std::uint32_t rank = 0;  ///< rank of the writer, below `world`
  std::uint32_t world = 1;

  /// Returns the name of its file, which no other writer, attempt or epoch uses:
  /// "rank-3-of-8.a2.e0.shard".
  [[nodiscard]] std::string file() const;
  friend bool operator==(const ShardName&, const ShardName&) = default;
};

/// Checks an id. Error: the job has no name, or one that is not valid text.
[[nodiscard]] Status check_id(const CheckpointId& id);

/// Checks a shard name. Errors: those of check_id(), or a rank that is not below its world.
[[nodiscard]] Status check_shard_name(const ShardName& name);

template <class Visitor, SameStruct<TensorPiece> Self>
void describe(Visitor& visitor, Self& piece) {
  visitor.required("tensor", piece.tensor);
  visitor.required("dtype", piece.type);
  visitor.required("shape", piece.shape);
  visitor.required("begin", piece.begin);
  visitor.required("end", piece.end);
  visitor.required("offset", piece.offset);
}

/// Describes the fields of an id inline among those of the struct that contains it.
template <class Visitor, SameStruct<CheckpointId> Self>
void describe_id(Visitor& visitor, Self& id) {
  visitor.required("job", id.job);
  visitor.required("attempt", id.by.attempt);
  visitor.required("epoch", id.by.epoch);
  visitor.required("step", id.step);
}

}  // namespace orrery
