#include "api/agents/proto_reader.hpp"

#include <fmt/format.h>

namespace orrery {

using google::protobuf::FieldDescriptor;

void ProtoSource::get(Duration& value) const {
  const std::int64_t ns = reflection_.GetInt64(message_, field_.descriptor);
  if (ns < 0) {
    fault_.complain(
        fmt::format("{} {} ns, expected none below 0", spoken_name(*field_.descriptor), ns));
  }
  value = Duration::nanoseconds(ns);
}

std::uint64_t ProtoSource::too_large(std::uint64_t value, std::uint64_t max) const {
  fault_.complain(fmt::format("{} {}, expected at most {}", spoken_name(*field_.descriptor), value,
                              highest_of(*field_.descriptor, max)));
  return 0;
}

std::uint32_t ProtoSource::choice() const {
  return field_.descriptor->cpp_type() == FieldDescriptor::CPPTYPE_ENUM
             ? static_cast<std::uint32_t>(reflection_.GetEnumValue(message_, field_.descriptor))
             : reflection_.GetUInt32(message_, field_.descriptor);
}

void ProtoSource::complain(std::uint32_t number, std::uint32_t last) const {
  fault_.complain(
      fmt::format("{} {}, expected 0 to {}", spoken_name(*field_.descriptor), number, last));
}

}  // namespace orrery
