// workload/models/transformer_config.hpp - reads the language model of a config.json: its sizes,
// its attention, its experts and which layer is of which kind. Part of
// workload/models/model_config.hpp.
#pragma once

#include "workload/models/config_keys.hpp"
#include "workload/models/model.hpp"
#include "workload/models/model_rules.hpp"

namespace orrery {

/// Most layers a configuration may have.
inline constexpr std::int64_t kLayersMax = 10'000;

/// What is wrong is noted in `keys`; the result means something only while keys.status() is fine.
/// `rules` are those of keys.type(), or of Llama for an unknown type.
[[nodiscard]] Transformer read_transformer(ConfigKeys& keys, const ModelRules& rules);

}  // namespace orrery
