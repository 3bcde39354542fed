// runtime/training/whole_model.hpp - the flat vector of a whole model, where each rank has a part
// of it in a vector of its own.
//
// What is saved and hashed is the whole, cut into ranges: so it does not tell how it was shared
// out, and any layout reads what another has saved. Made with a rank's place, immutable. Cost: the
// runs of a column cut are as many as the matrix has rows; assemble() passes what it exchanges
// through about 4 MB of buffers.
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

/// Rank `rank`'s of `ranks` equal ranges.
[[nodiscard]] FloatRange even_range(std::size_t size, std::uint32_t rank, std::uint32_t ranks);

/// Floats that are side by side in a part as in the whole.
struct FloatRun {
  std::size_t tensor = 0;  ///< in the layouts' tensors(); all of the run is of this one
  std::size_t here = 0;    ///< in the part's vector
  std::size_t whole = 0;   ///< in the whole model's
  std::size_t size = 0;
};

/// What a rank has of a vector: [held.begin, held.end) of that of its part, in `floats`.
struct HeldFloats {
  FloatRange held;
  std::span<const float> floats;
};

class WholeModel {
 public:
  WholeModel(const TransformerConfig& config, const ModelPart& part);

  [[nodiscard]] const ParameterLayout& whole() const { return whole_; }
  /// Of this rank's part, ascending.
  [[nodiscard]] const ParameterLayout& own() const { return parts_[rank_]; }

  using RunVisitor = std::function<void(const FloatRun&)>;
  /// Of this rank's part, those that lie in `here` of its own vector; ascending.
  void visit(const FloatRange& here, const RunVisitor& visit) const;
  /// Of them, what lies in `whole` of the whole vector.
  void visit(const FloatRange& here, const FloatRange& whole, const RunVisitor& visit) const;

  /// Puts range even_range(size, rank, ranks) of the whole vector together in `out`: all ranks of
  /// `all`, replica by replica, give what they hold, and all that the replicas hold is what there
  /// is of each part, once. What lies between tensors is 0.
  [[nodiscard]] Shared<void> assemble(Communicator& all, const HeldFloats& own,
                                      std::span<float> out) const;

 private:
  struct Wanted {
    std::size_t part = 0;  ///< of which part
    FloatRange here;       ///< within its vector
    FloatRange whole;      ///< and within the whole one
  };
  void visit_tensor(const Wanted& wanted, std::size_t tensor, const RunVisitor& visit) const;
  /// What rank `part` gives: of tensors that several have, the first alone.
  void visit_given(const Wanted& wanted, const RunVisitor& visit) const;

  ParameterLayout whole_;
  std::vector<ParameterLayout> parts_;  ///< by ModelPart::number()
  std::size_t rank_;
};

}  // namespace orrery
