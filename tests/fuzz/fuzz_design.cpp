// tests/fuzz/fuzz_design.cpp - any text as a design spec: what is read keeps the promises of its
// header, and can be written and read again.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/format/yaml_writer.hpp"
#include "twin/design/design_spec.hpp"

namespace orrery {
namespace {

void check_spec(const DesignSpec& spec) {
  ORRERY_ASSERT(spec.site.power > Watts(0) && spec.site.years > 0, "a site has power and years");
  double shares = 0;
  std::set<std::string> names;
  for (const DesignWork& work : spec.workload) {
    ORRERY_ASSERT(work.share > 0, "every work has a share");
    ORRERY_ASSERT(names.insert(work.name).second, "names are unique");
    ORRERY_ASSERT(work.serves() || work.accelerators, "work that trains says the size of a job");
    shares += work.share;
  }
  ORRERY_ASSERT(std::abs(shares - 1) < 1e-6, "shares sum to 1");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Document> document = Document::parse(text, "design.yaml");
  if (!document) return 0;
  const Result<DesignSpec> spec = read_design_spec(*document);
  if (!spec) {
    ORRERY_ASSERT(spec.error().where.line >= 1, "a refusal says where");
    return 0;
  }
  check_spec(*spec);
  const Result<Document> written = Document::parse(write_yaml(*spec), "written.yaml");
  ORRERY_ASSERT(written, "what is written is YAML");
  const Result<DesignSpec> again = read_design_spec(*written);
  ORRERY_ASSERT(again && again->workload.size() == spec->workload.size(), "and a design");
  return 0;
}
