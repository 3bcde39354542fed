// runtime/training/whole_model.hpp - the flat vector of a whole model, where each rank has a part
// of it in a vector of its own.
//
// The whole vector, cut into ranges, is what is saved and hashed: so a checkpoint does not depend
// on how the model was divided, and any layout can read what another has saved. Made for a rank's
// place; immutable. Cost: a cut by columns has as many runs as the matrix has rows; assemble()
// exchanges through about 4 MB of buffers.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/collectives/communicator.hpp"
#include "runtime/trainer/parameter_layout.hpp"

namespace orrery {

/// Floats [begin, end) of a flat vector.
struct FloatRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] std::size_t size() const { return end - begin; }
  [[nodiscard]] FloatRange within(const FloatRange& other) const;
};

/// Returns range `rank` of `ranks` equal ranges.
[[nodiscard]] FloatRange even_range(std::size_t size, std::uint32_t rank, std::uint32_t ranks);

/// Floats that are contiguous both in a part and in the whole.
struct FloatRun {
  std::size_t tensor = 0;  ///< index into the layouts' tensors(); a run lies in one tensor
  std::size_t here = 0;    ///< offset in the part's vector
  std::size_t whole = 0;   ///< offset in the whole model's vector
  std::size_t size = 0;
};

/// What a rank has of a vector: [held.begin, held.end) of its part's vector, in `floats`.
struct HeldFloats {
  FloatRange held;
  std::span<const float> floats;
};

class WholeModel {
 public:
  WholeModel(const TransformerConfig& config, const ModelPart& part);

  [[nodiscard]] const ParameterLayout& whole() const { return whole_; }
  /// The layout of this rank's part.
  [[nodiscard]] const ParameterLayout& own() const { return parts_[rank_]; }

  using RunVisitor = std::function<void(const FloatRun&)>;
  /// Visits the runs of this rank's part that lie in `here` of its own vector, ascending.
  void visit(const FloatRange& here, const RunVisitor& visit) const;
  /// Visits what of these runs lies in `whole` of the whole vector.
  void visit(const FloatRange& here, const FloatRange& whole, const RunVisitor& visit) const;

  /// Assembles range even_range(size, rank, ranks) of the whole vector in `out`: all ranks of
  /// `all`, replica by replica, contribute what they hold; together the replicas hold each part
  /// exactly once. The gaps between tensors are 0.
  [[nodiscard]] Shared<void> assemble(Communicator& all, const HeldFloats& own,
                                      std::span<float> out) const;

 private:
  struct Wanted {
    std::size_t part = 0;  ///< number of the part
    FloatRange here;       ///< range in its vector
    FloatRange whole;      ///< range in the whole vector
  };
  void visit_tensor(const Wanted& wanted, std::size_t tensor, const RunVisitor& visit) const;
  /// Visits what rank `part` contributes: a tensor that several ranks have comes from the first
  /// only.
  void visit_given(const Wanted& wanted, const RunVisitor& visit) const;

  ParameterLayout whole_;
  std::vector<ParameterLayout> parts_;  ///< by ModelPart::number()
  std::size_t rank_;
};

}  // namespace orrery
