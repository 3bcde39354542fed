// tests/fuzz/fuzz_policy.cpp - any text as a policy file, and as a policy's name with options: what
// is read is inside the bounds of a policy.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "scheduler/policy.hpp"

namespace orrery {
namespace {

/// Numbers of a written policy: none is negative, none is beyond all bounds.
void check_numbers(const Json& value) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    ORRERY_ASSERT(std::isfinite(number) && number >= 0, "figures of a policy are finite");
  }
  if (!value.is_structured()) return;
  for (const Json& each : value) check_numbers(each);
}

void check_policy(const Result<Policy>& policy) {
  if (!policy) {
    ORRERY_ASSERT(!policy.error().message.empty(), "a refusal says why");
    return;
  }
  ORRERY_ASSERT(policy->kind == "Policy" && !policy->name.empty(), "a policy has a name");
  ORRERY_ASSERT(policy->offers >= 1 && policy->budget >= 1, "a pass may try something");
  ORRERY_ASSERT(policy->oversubscription >= 1 && policy->oversubscription <= 2, "within bounds");
  check_numbers(to_json(*policy));
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_policy(policy_named(text));
  if (const Result<Document> document = Document::parse(text, "policy.yaml"); document) {
    check_policy(read_policy(*document));
  }
  return 0;
}
