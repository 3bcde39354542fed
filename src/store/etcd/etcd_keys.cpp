#include "store/etcd/etcd_keys.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/format/xxh3.hpp"

namespace orrery {
namespace {

constexpr std::size_t kDigits = 16;
constexpr int kHexadecimal = 16;

}  // namespace

std::string BlobPlace::parts_of(std::uint64_t id) const {
  return fmt::format("{}{:016x}/", parts, id);
}

std::string BlobPlace::part(std::uint64_t id, std::size_t index) const {
  return fmt::format("{}{:016x}/{:04x}", parts, id, index);
}

BlobPlace EtcdKeys::batch(std::uint64_t number) const {
  return {fmt::format("{}{:016x}", log(), number), fmt::format("{}{:016x}/", log_parts(), number)};
}

BlobPlace EtcdKeys::snapshot(std::uint64_t covers) const {
  return {fmt::format("{}{:016x}", snapshots(), covers),
          fmt::format("{}{:016x}/", snapshot_parts(), covers)};
}

BlobPlace EtcdKeys::text(const std::string& name) const {
  return {texts() + name, fmt::format("{}part/text/{:016x}/", prefix_, xxh3(name))};
}

std::optional<std::uint64_t> EtcdKeys::number_in(std::string_view key, std::string_view prefix) {
  if (key.size() != prefix.size() + kDigits || !key.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = key.substr(prefix.size());
  std::uint64_t number = 0;
  const auto [end, failed] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, kHexadecimal);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace orrery
