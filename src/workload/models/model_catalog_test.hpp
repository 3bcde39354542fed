// workload/models/model_catalog_test.hpp - the model files of the repository, for the tests of this
// module.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {

/// Name and text of every catalog/models/*.yaml, in name order.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> repository_model_files();

/// The catalog of those files; it is read once a program.
[[nodiscard]] const Result<ModelCatalog>& repository_models();

}  // namespace orrery
