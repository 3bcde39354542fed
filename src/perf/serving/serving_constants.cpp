#include "perf/serving/serving_constants.hpp"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

template <class Constants>
using Field = std::pair<std::string_view, double Constants::*>;

constexpr std::array<Field<DeviceConstants>, 16> kDeviceFields{{
    {"matmul16", &DeviceConstants::matmul16},
    {"matmul8", &DeviceConstants::matmul8},
    {"matmul4", &DeviceConstants::matmul4},
    {"matmul_ramp", &DeviceConstants::matmul_ramp},
    {"stream", &DeviceConstants::stream},
    {"launch", &DeviceConstants::launch},
    {"attention_prefill", &DeviceConstants::attention_prefill},
    {"attention_ramp", &DeviceConstants::attention_ramp},
    {"attention_narrow", &DeviceConstants::attention_narrow},
    {"attention_decode", &DeviceConstants::attention_decode},
    {"attention_launch", &DeviceConstants::attention_launch},
    {"dequant", &DeviceConstants::dequant},
    {"expert_fraction", &DeviceConstants::expert_fraction},
    {"expert_pad", &DeviceConstants::expert_pad},
    {"expert_stream", &DeviceConstants::expert_stream},
    {"expert_skew", &DeviceConstants::expert_skew},
}};

constexpr std::array<Field<DeviceConstants>, 3> kLinkFields{{
    {"link_latency", &DeviceConstants::link_latency},
    {"link_fraction", &DeviceConstants::link_fraction},
    {"link_sharing", &DeviceConstants::link_sharing},
}};

constexpr std::array<Field<EngineConstants>, 16> kEngineFields{{
    {"answer", &EngineConstants::answer},
    {"first", &EngineConstants::first},
    {"together", &EngineConstants::together},
    {"compute", &EngineConstants::compute},
    {"memory", &EngineConstants::memory},
    {"step", &EngineConstants::step},
    {"sequence", &EngineConstants::sequence},
    {"layer", &EngineConstants::layer},
    {"prompt", &EngineConstants::prompt},
    {"chunk", &EngineConstants::chunk},
    {"sequences_max", &EngineConstants::sequences_max},
    {"usable", &EngineConstants::usable},
    {"reserve", &EngineConstants::reserve},
    {"mixing", &EngineConstants::mixing},
    {"communication", &EngineConstants::communication},
    {"latency_bound", &EngineConstants::latency_bound},
}};

class Lookup {
 public:
  Lookup(const Calibration& calibration, std::vector<std::size_t>& positions)
      : calibration_(calibration), positions_(positions) {}

  [[nodiscard]] double value(std::string_view what, const std::vector<std::string>& names) {
    std::string id = "serving.";
    id.append(what).push_back('.');
    const std::size_t stem = id.size();
    for (const std::string& name : names) {
      id.resize(stem);
      id.append(name);
      if (const auto at = calibration_.position(id)) {
        positions_.push_back(*at);
        return calibration_.constants()[*at].value;
      }
    }
    ORRERY_ASSERT(false, "the calibration has each serving constant for \"any\"");
    return 0;
  }

  template <class Constants, std::size_t N>
  void fill(Constants& constants, const std::array<Field<Constants>, N>& fields,
            const std::vector<std::string>& names) {
    for (const auto& [what, member] : fields) constants.*member = value(what, names);
  }

 private:
  const Calibration& calibration_;
  std::vector<std::size_t>& positions_;
};

}  // namespace

std::vector<std::string> class_names(const Accelerator& accelerator) {
  std::vector<std::string> names;
  const std::string stem =
      accelerator.architecture.substr(0, accelerator.architecture.find_first_of("-+"));
  if (accelerator.memory_type.starts_with("GDDR")) {
    names.push_back(accelerator.architecture + "-gddr");
  }
  names.push_back(accelerator.architecture);
  if (stem != accelerator.architecture) names.push_back(stem);
  names.push_back(accelerator.vendor);
  names.emplace_back(word_of(accelerator.kind));
  names.emplace_back("any");
  return names;
}

std::string link_class(const Accelerator& accelerator, double devices) {
  const ScaleUp& up = accelerator.scale_up;
  if (!up.technology || !up.bandwidth_per_direction) return "pcie";
  if (up.topology == "bridge" && up.domain_max && devices > *up.domain_max) return "pcie";
  return up.technology->substr(0, up.technology->find_first_of("0123456789-"));
}

ServingConstants serving_constants(const Calibration& calibration,
                                   const ServingConstantsQuery& query) {
  ServingConstants constants;
  Lookup lookup(calibration, constants.positions);
  const std::vector<std::string> classes = class_names(query.accelerator);
  lookup.fill(constants.device, kDeviceFields, classes);
  if (query.group > 1) {
    const std::string link = link_class(query.accelerator, query.group);
    std::vector<std::string> links;
    for (const std::string& name : classes) links.push_back(link + "." + name);
    links.emplace_back("any");
    lookup.fill(constants.device, kLinkFields, links);
  }
  lookup.fill(constants.engine, kEngineFields, query.engine);
  constants.blend = lookup.value("blend", {"any"});
  return constants;
}

}  // namespace orrery
