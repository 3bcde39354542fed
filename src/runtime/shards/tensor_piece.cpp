#include "runtime/shards/tensor_piece.hpp"

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

std::uint64_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return 1;
    case ElementType::kBf16:
    case ElementType::kF16:
      return 2;
    case ElementType::kF32:
    case ElementType::kI32:
      return 4;
    case ElementType::kI64:
    case ElementType::kU64:
      return 8;
  }
  ORRERY_ASSERT(false, "an ElementType is one of the above");
}

std::optional<std::uint64_t> elements_of(const std::vector<std::uint64_t>& shape) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 53;
  std::uint64_t elements = 1;
  for (const std::uint64_t dimension : shape) {
    if (dimension != 0 && elements > kMax / dimension) return std::nullopt;
    elements *= dimension;
  }
  return elements;
}

Status check_piece(const TensorPiece& piece) {
  if (piece.tensor.empty() || first_invalid_utf8(piece.tensor) != std::string::npos) {
    return input_error({}, "expected the name of a tensor as text, found none");
  }
  const std::optional<std::uint64_t> elements = elements_of(piece.shape);
  if (!elements) {
    return input_error({}, fmt::format("tensor \"{}\": expected at most 2^53 elements, found more",
                                       printable(piece.tensor, 80)));
  }
  if (piece.begin > piece.end || piece.end > *elements) {
    return input_error({},
                       fmt::format("tensor \"{}\": expected a range of its {} elements, found "
                                   "[{}, {})",
                                   printable(piece.tensor, 80), *elements, piece.begin, piece.end));
  }
  return {};
}

Status check_range(const TensorRange& range, const TensorInfo& tensor, const std::string& file) {
  if (tensor.type != range.type) {
    return input_error({file}, fmt::format("tensor \"{}\" is {}, not {} as asked for", tensor.name,
                                           word_of(tensor.type), word_of(range.type)));
  }
  const std::uint64_t elements = elements_of(tensor.shape).value_or(0);
  if (range.begin <= range.end && range.end <= elements) return {};
  return input_error({file}, fmt::format("tensor \"{}\" has {} elements; asked for [{}, {})",
                                         tensor.name, elements, range.begin, range.end));
}

tl::unexpected<Error> no_such_tensor(const TensorRange& range,
                                     std::span<const std::string_view> names,
                                     const std::string& file) {
  return input_error(
      {file}, fmt::format("no tensor \"{}\"{}", range.tensor, did_you_mean(range.tensor, names)));
}

Status check_id(const CheckpointId& id) {
  if (!id.job.empty() && first_invalid_utf8(id.job) == std::string::npos) return {};
  return input_error({}, "expected the name of a job as text, found none");
}

Status check_shard_name(const ShardName& name) {
  if (Status good = check_id(name.id); !good) return good;
  if (name.rank < name.world) return {};
  return input_error(
      {}, fmt::format("expected a rank below the world of {}, found {}", name.world, name.rank));
}

std::string Incarnation::text() const { return fmt::format("attempt {} epoch {}", attempt, epoch); }

std::string ShardName::file() const {
  return fmt::format("rank-{}-of-{}.a{}.e{}.shard", rank, world, id.by.attempt, id.by.epoch);
}

}  // namespace orrery
