#include "store/setup_texts.hpp"

#include <array>
#include <charconv>

#include "base/format/checksum.hpp"

namespace orrery {
namespace {

constexpr const char* kFleet = "fleet.yaml";
constexpr const char* kTenants = "tenants.yaml";
constexpr const char* kPolicy = "policy.yaml";
constexpr const char* kBegin = "begin";
constexpr const char* kWriter = "writer";

}  // namespace

StoreTexts store_texts(const SetupTexts& setup) {
  return {{kFleet, setup.fleet},
          {kTenants, setup.tenants},
          {kPolicy, setup.policy},
          {kBegin, std::to_string(setup.begin.ns())},
          {kWriter, setup.writer}};
}

Result<SetupTexts> setup_texts(const StoreTexts& texts) {
  for (const char* name : {kFleet, kTenants, kPolicy, kBegin, kWriter}) {
    if (texts.contains(name)) continue;
    return environment_error(
        fmt::format("the store has no text \"{}\": no log was begun in it", name));
  }
  const std::string& begin = texts.at(kBegin);
  std::int64_t ns = 0;
  const auto [end, failed] = std::from_chars(begin.data(), begin.data() + begin.size(), ns);
  if (failed != std::errc() || end != begin.data() + begin.size()) {
    return environment_error(
        fmt::format("the text \"begin\" of the store: \"{}\", expected nanoseconds", begin));
  }
  return SetupTexts{.fleet = texts.at(kFleet),
                    .tenants = texts.at(kTenants),
                    .policy = texts.at(kPolicy),
                    .begin = Instant::from_ns(ns),
                    .writer = texts.at(kWriter)};
}

std::string setup_digest(const SetupTexts& setup) {
  std::uint64_t chain = 0;
  for (const std::string& text :
       {setup.fleet, setup.tenants, setup.policy, std::to_string(setup.begin.ns())}) {
    chain = checksum(text, chain);
  }
  return fmt::format("{:016x}", chain);
}

}  // namespace orrery
