// inference/formats/described_model.hpp - the shape of a model as its file describes it.
//
// A plain value and a pure function; readers of formats make it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "inference/engine/packed_transformer.hpp"
#include "runtime/trainer/transformer_config.hpp"

namespace orrery {

struct DescribedModel {
  TransformerConfig config;
  ModelVariant variant;
  std::int64_t context = 0;  ///< tokens that it was made for; config.sequence may be fewer
};

/// The longest context that the engine holds, in tokens.
inline constexpr std::int64_t kContextMax = std::int64_t{1} << 16;

/// Returns a shape with its context cut to kContextMax. Errors name `file`: what check() and
/// check_servable() refuse.
[[nodiscard]] Result<DescribedModel> checked_model(DescribedModel model, const std::string& file);

}  // namespace orrery
