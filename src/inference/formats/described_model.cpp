#include "inference/formats/described_model.hpp"

#include <algorithm>

namespace orrery {

Result<DescribedModel> checked_model(DescribedModel model, const std::string& file) {
  model.config.sequence = std::min(model.context, kContextMax);
  model.config.where = {file};
  if (Status good = check(model.config); !good) return forward_error(good);
  if (Status good = check_servable(model.config); !good) return forward_error(good);
  return model;
}

}  // namespace orrery
