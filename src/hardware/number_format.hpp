// hardware/number_format.hpp - the number formats accelerators compute in.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/format/field_reader.hpp"

namespace orrery {

enum class NumberFormat {
  kFp64,
  kFp64Matrix,
  kFp32,
  kTf32,
  kBf16,
  kFp16,
  kFp8,
  kFp6,
  kFp4,
  kInt8,
  kInt4
};

inline constexpr std::size_t kNumberFormats = 11;

inline std::array<EnumWord<NumberFormat>, kNumberFormats> enum_words(NumberFormat) {
  return {{{"fp64", NumberFormat::kFp64},
           {"fp64-matrix", NumberFormat::kFp64Matrix},
           {"fp32", NumberFormat::kFp32},
           {"tf32", NumberFormat::kTf32},
           {"bf16", NumberFormat::kBf16},
           {"fp16", NumberFormat::kFp16},
           {"fp8", NumberFormat::kFp8},
           {"fp6", NumberFormat::kFp6},
           {"fp4", NumberFormat::kFp4},
           {"int8", NumberFormat::kInt8},
           {"int4", NumberFormat::kInt4}}};
}

}  // namespace orrery
