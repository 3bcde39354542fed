// workload/models/sample_model_config.hpp - reads the models that work on samples instead of
// sequences of text: image classifiers, image and video diffusion, recommendation. Part of
// workload/models/model_config.hpp; what is wrong is noted in `keys`.
#pragma once

#include <optional>

#include "workload/models/config_keys.hpp"
#include "workload/models/model.hpp"

namespace orrery {

/// Returns no value if keys.type() is none of vit, dit, wan and dlrm.
[[nodiscard]] std::optional<Architecture> read_sample_model(ConfigKeys& keys);

/// An image `image` pixels wide holds at least one patch.
void check_patch(ConfigKeys& keys, std::string_view image_key, std::int64_t image,
                 std::int64_t patch);

}  // namespace orrery
