#include "inference/formats/tensor_encoding.hpp"

#include <array>
#include <bit>
#include <cstddef>

#include "base/assert.hpp"
#include "base/format/little_endian.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSmallBlock = 32;
constexpr std::size_t kSuperBlock = 256;
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 53;

constexpr std::array kBlocks{
    EncodingBlock{TensorEncoding::kF32, "F32", 1, 4},
    EncodingBlock{TensorEncoding::kF16, "F16", 1, 2},
    EncodingBlock{TensorEncoding::kBf16, "BF16", 1, 2},
    EncodingBlock{TensorEncoding::kQ8_0, "Q8_0", kSmallBlock, 34},
    EncodingBlock{TensorEncoding::kQ4_0, "Q4_0", kSmallBlock, 18},
    EncodingBlock{TensorEncoding::kQ4_1, "Q4_1", kSmallBlock, 20},
    EncodingBlock{TensorEncoding::kQ5_0, "Q5_0", kSmallBlock, 22},
    EncodingBlock{TensorEncoding::kQ5_1, "Q5_1", kSmallBlock, 24},
    EncodingBlock{TensorEncoding::kQ4_K, "Q4_K", kSuperBlock, 144},
    EncodingBlock{TensorEncoding::kQ5_K, "Q5_K", kSuperBlock, 176},
    EncodingBlock{TensorEncoding::kQ6_K, "Q6_K", kSuperBlock, 210},
};

unsigned byte_at(const char* from) { return static_cast<unsigned char>(*from); }
float half_at(const char* from) { return float_of_half(load_little_endian<std::uint16_t>(from)); }
float signed_at(const char* from) { return static_cast<float>(static_cast<std::int8_t>(*from)); }
float low(unsigned byte) { return static_cast<float>(byte & 0xF); }
float high(unsigned byte) { return static_cast<float>(byte >> 4); }

void decode_f32(const char* from, float* to) {
  *to = std::bit_cast<float>(load_little_endian<std::uint32_t>(from));
}

void decode_f16(const char* from, float* to) { *to = half_at(from); }

void decode_bf16(const char* from, float* to) {
  *to = std::bit_cast<float>(std::uint32_t{load_little_endian<std::uint16_t>(from)} << 16);
}

void decode_q8_0(const char* from, float* to) {
  const float scale = half_at(from);
  for (std::size_t i = 0; i < kSmallBlock; ++i) to[i] = signed_at(from + 2 + i) * scale;
}

// The first half of the weights are the low bits of the bytes.
void decode_q4_0(const char* from, float* to) {
  const float scale = half_at(from);
  for (std::size_t i = 0; i < kSmallBlock / 2; ++i) {
    const unsigned byte = byte_at(from + 2 + i);
    to[i] = (low(byte) - 8) * scale;
    to[i + kSmallBlock / 2] = (high(byte) - 8) * scale;
  }
}

void decode_q4_1(const char* from, float* to) {
  const float scale = half_at(from);
  const float least = half_at(from + 2);
  for (std::size_t i = 0; i < kSmallBlock / 2; ++i) {
    const unsigned byte = byte_at(from + 4 + i);
    to[i] = low(byte) * scale + least;
    to[i + kSmallBlock / 2] = high(byte) * scale + least;
  }
}

/// The whole numbers of 32 weights of 5 bits: 32 top bits, then the low bits as in Q4_0.
std::array<float, kSmallBlock> fives_at(const char* from) {
  const auto tops = load_little_endian<std::uint32_t>(from);
  std::array<float, kSmallBlock> numbers{};
  for (std::size_t i = 0; i < kSmallBlock; ++i) {
    const unsigned byte = byte_at(from + 4 + i % (kSmallBlock / 2));
    const float four = i < kSmallBlock / 2 ? low(byte) : high(byte);
    numbers[i] = four + static_cast<float>((tops >> i & 1) << 4);
  }
  return numbers;
}

void decode_q5_0(const char* from, float* to) {
  const float scale = half_at(from);
  for (const float number : fives_at(from + 2)) *to++ = (number - 16) * scale;
}

void decode_q5_1(const char* from, float* to) {
  const float scale = half_at(from);
  const float least = half_at(from + 2);
  for (const float number : fives_at(from + 4)) *to++ = number * scale + least;
}

/// Scale and least weight of a part of a Q4_K or Q5_K block, before the block's own.
struct PartScale {
  float scale = 0;
  float least = 0;
};

// Twelve bytes hold 2 x 8 numbers of 6 bits: the lower four parts have theirs in the low bits of a
// byte, the upper four in 4 bits of one and the top 2 bits of another.
PartScale part_scale(const char* scales, std::size_t part) {
  const auto at = [&](std::size_t i) { return byte_at(scales + i); };
  if (part < 4) {
    return {static_cast<float>(at(part) & 63), static_cast<float>(at(part + 4) & 63)};
  }
  const unsigned both = at(part + 4);
  return {static_cast<float>((both & 0xF) | (at(part - 4) >> 6 << 4)),
          static_cast<float>((both >> 4) | (at(part) >> 6 << 4))};
}

// Each 32 bytes hold two parts of 32 weights, the first in the low bits.
void decode_q4_k(const char* from, float* to) {
  const float scale = half_at(from);
  const float least = half_at(from + 2);
  const char* bits = from + 16;
  for (std::size_t part = 0; part < 8; part += 2) {
    const PartScale first = part_scale(from + 4, part);
    const PartScale second = part_scale(from + 4, part + 1);
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned byte = byte_at(bits + i);
      to[i] = scale * first.scale * low(byte) - least * first.least;
      to[i + 32] = scale * second.scale * high(byte) - least * second.least;
    }
    bits += 32;
    to += 64;
  }
}

// Bit p of byte i of the top bits is that of weight i of part p.
void decode_q5_k(const char* from, float* to) {
  const float scale = half_at(from);
  const float least = half_at(from + 2);
  for (std::size_t part = 0; part < 8; ++part) {
    const PartScale of_part = part_scale(from + 4, part);
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned byte = byte_at(from + 48 + 32 * (part / 2) + i);
      const unsigned top = byte_at(from + 16 + i) >> part & 1;
      const float number = (part % 2 == 0 ? low(byte) : high(byte)) + static_cast<float>(top << 4);
      *to++ = scale * of_part.scale * number - least * of_part.least;
    }
  }
}

// Half a block is 64 bytes with the low 4 bits of 128 weights and 32 bytes with their upper 2 bits,
// in four columns of 32 weights.
void decode_q6_k(const char* from, float* to) {
  const float scale = half_at(from + 208);
  const char* scales = from + 192;
  for (std::size_t half = 0; half < 2; ++half) {
    const char* lows = from + 64 * half;
    const char* highs = from + 128 + 32 * half;
    for (std::size_t i = 0; i < 128; ++i) {
      const std::size_t column = i / 32;
      const unsigned byte = byte_at(lows + i % 64);
      const unsigned four = column < 2 ? byte & 0xF : byte >> 4;
      const unsigned two = (byte_at(highs + i % 32) >> (2 * column)) & 3;
      const auto weight = static_cast<float>(static_cast<int>(four | (two << 4)) - 32);
      *to++ = scale * signed_at(scales + 8 * half + i / 16) * weight;
    }
  }
}

using DecodeBlock = void (*)(const char* from, float* to);

DecodeBlock decoder_of(TensorEncoding encoding) {
  switch (encoding) {
    case TensorEncoding::kF32:
      return decode_f32;
    case TensorEncoding::kF16:
      return decode_f16;
    case TensorEncoding::kBf16:
      return decode_bf16;
    case TensorEncoding::kQ8_0:
      return decode_q8_0;
    case TensorEncoding::kQ4_0:
      return decode_q4_0;
    case TensorEncoding::kQ4_1:
      return decode_q4_1;
    case TensorEncoding::kQ5_0:
      return decode_q5_0;
    case TensorEncoding::kQ5_1:
      return decode_q5_1;
    case TensorEncoding::kQ4_K:
      return decode_q4_k;
    case TensorEncoding::kQ5_K:
      return decode_q5_k;
    case TensorEncoding::kQ6_K:
      return decode_q6_k;
  }
  return nullptr;
}

}  // namespace

const EncodingBlock& block_of(TensorEncoding encoding) {
  return kBlocks[static_cast<std::size_t>(encoding)];
}

std::span<const EncodingBlock> all_encodings() { return kBlocks; }

std::optional<std::uint64_t> encoded_bytes(TensorEncoding encoding, std::uint64_t row,
                                           std::uint64_t rows) {
  const EncodingBlock& block = block_of(encoding);
  if (row % block.weights != 0) return std::nullopt;
  const std::uint64_t blocks = row / block.weights;
  if (blocks == 0 || rows == 0) return 0;
  if (blocks > kBytesMax / rows || blocks * rows > kBytesMax / block.bytes) return std::nullopt;
  return blocks * rows * block.bytes;
}

void decode_weights(TensorEncoding encoding, std::string_view bytes, std::span<float> floats) {
  const EncodingBlock& block = block_of(encoding);
  ORRERY_ASSERT(floats.size() % block.weights == 0, "blocks are whole");
  ORRERY_ASSERT(floats.size() / block.weights * block.bytes == bytes.size(),
                "the bytes are theirs");
  const DecodeBlock decode = decoder_of(encoding);
  const char* from = bytes.data();
  for (std::size_t at = 0; at < floats.size(); at += block.weights) {
    decode(from, floats.data() + at);
    from += block.bytes;
  }
}

// A subnormal is its bits times 2^-24; others keep their bits, with the exponent's bias raised by
// 112, and infinities and NaN the greatest exponent.
float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t raised = exponent == 0x1F ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | (raised << 23) | (fraction << 13));
}

}  // namespace orrery
