// Writes a spec as readable YAML, or as JSON.
#include "base/format/field_writer.hpp"
#include "base/format/yaml_writer.hpp"
#include "fleet/spec/spec.hpp"

namespace orrery {
namespace {

/// Writes a spec as JSON that can be read back: quantities keep their unit, absent keys are left
/// out.
class SpecJsonSink final : public JsonSink {
 public:
  void absent() override {}
  void quantity(double value, const QuantityKind& kind, double) override {
    put(print_exact(value, kind));
  }
};

}  // namespace

Json fleet_spec_json(const FleetSpec& spec) {
  SpecJsonSink sink;
  write_value(sink, spec);
  return sink.take();
}

std::string write_fleet_spec(const FleetSpec& spec) { return write_yaml(spec); }

}  // namespace orrery
