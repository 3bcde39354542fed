// tests/fuzz/fuzz_quantity.cpp - any text as a quantity of every kind: what is read prints as text
// that is read back within the promised 0.05 %.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "base/text/quantity_text.hpp"

namespace orrery {
namespace {

template <class Q>
void read_and_print(std::string_view text) {
  const Result<Q> read = parse<Q>(text);
  if (!read) {
    ORRERY_ASSERT(!read.error().message.empty(), "a refusal says why");
    return;
  }
  ORRERY_ASSERT(std::isfinite(read->value()) && read->value() >= 0, "only plausible values pass");
  const Result<Q> again = parse<Q>(print(*read));
  // A value within a rounding of the plausible maximum may print as more than it.
  if (!again) {
    ORRERY_ASSERT(read->value() > kind_of<Q>().plausible_max * 0.999, "what is printed is read");
    return;
  }
  const double error = std::abs(again->value() - read->value());
  ORRERY_ASSERT(error <= 0.000501 * read->value(), "printing rounds to 0.05 %");
}

template <class... Q>
void read_as_each(std::string_view text) {
  (read_and_print<Q>(text), ...);
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_each<Bytes, Flops, Seconds, Joules, Dollars, GramsCo2, Tokens>(text);
  read_as_each<BytesPerSecond, FlopsPerSecond, Watts, DollarsPerSecond>(text);
  read_as_each<DollarsPerJoule, DollarsPerByte, GramsCo2PerJoule>(text);
  return 0;
}
