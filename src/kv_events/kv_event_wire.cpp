#include "kv_events/kv_event_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/format/xxh3.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLevelsMax = 8;
constexpr std::size_t kShownMax = 60;

/// Passes over a message and stops where it is nested too deeply: what is read with a call a level
/// must not end the stack.
class LevelCheck final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++level_ <= kLevelsMax; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return ++level_ <= kLevelsMax; }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool leave() {
    --level_;
    return true;
  }

  std::size_t level_ = 0;
};

tl::unexpected<Error> wrong(const std::string& what) {
  return input_error({}, "a message of KV events: " + what);
}

/// The fields of an event or message, by name or in their order.
class WireFields {
 public:
  /// `names`: in the order in which an array has them.
  WireFields(const Json& value, std::span<const std::string_view> names)
      : value_(value), names_(names) {}

  /// Returns a field; null where it is absent.
  [[nodiscard]] const Json& get(std::string_view name) const {
    static const Json kNull;
    if (value_.is_object()) {
      const auto found = value_.find(name);
      return found == value_.end() ? kNull : *found;
    }
    const auto place = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    return value_.is_array() && place < value_.size() ? value_[place] : kNull;
  }

 private:
  const Json& value_;
  std::span<const std::string_view> names_;
};

constexpr std::array<std::string_view, 3> kBatchNames{"ts", "events", "data_parallel_rank"};
constexpr std::array<std::string_view, 11> kStoredNames{
    "type",   "block_hashes", "parent_block_hash", "token_ids", "block_size",        "lora_id",
    "medium", "lora_name",    "extra_keys",        "group_idx", "kv_cache_spec_kind"};
constexpr std::array<std::string_view, 4> kRemovedNames{"type", "block_hashes", "medium",
                                                        "group_idx"};

Result<std::uint64_t> hash_of(const Json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (value.is_number_integer()) return static_cast<std::uint64_t>(value.get<std::int64_t>());
  if (value.is_binary()) {
    const auto& bytes = value.get_binary();
    return xxh3({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return wrong(fmt::format("a hash is a {}, expected a whole number or bytes", value.type_name()));
}

Result<std::vector<std::uint64_t>> hashes_of(const Json& list) {
  if (!list.is_array()) {
    return wrong(fmt::format("block_hashes is a {}, expected a list", list.type_name()));
  }
  std::vector<std::uint64_t> hashes;
  hashes.reserve(list.size());
  for (const Json& each : list) {
    Result<std::uint64_t> hash = hash_of(each);
    if (!hash) return forward_error(hash);
    hashes.push_back(*hash);
  }
  return hashes;
}

/// Whether a prompt without adapter, picture or salt finds its blocks by an event, in the device.
bool is_plain(const WireFields& event) {
  const Json& medium = event.get("medium");
  const Json& kind = event.get("kv_cache_spec_kind");
  if (!medium.is_null() && medium != "GPU") return false;
  if (!event.get("lora_id").is_null() || !event.get("lora_name").is_null()) return false;
  if (!kind.is_null() && kind != "full_attention") return false;
  const Json& keys = event.get("extra_keys");
  return !keys.is_array() ||
         std::ranges::all_of(keys, [](const Json& each) { return each.is_null() || each.empty(); });
}

Result<std::vector<std::int32_t>> tokens_of(const Json& list) {
  if (!list.is_array()) {
    return wrong(fmt::format("token_ids is a {}, expected a list", list.type_name()));
  }
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  std::vector<std::int32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& each : list) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() > kMost) {
      return wrong("a token is no whole number from 0 to 2147483647");
    }
    tokens.push_back(static_cast<std::int32_t>(each.get<std::uint64_t>()));
  }
  return tokens;
}

Result<KvBlocksStored> stored_of(const WireFields& event) {
  Result<std::vector<std::uint64_t>> hashes = hashes_of(event.get("block_hashes"));
  if (!hashes) return forward_error(hashes);
  Result<std::vector<std::int32_t>> tokens = tokens_of(event.get("token_ids"));
  if (!tokens) return forward_error(tokens);
  KvBlocksStored stored{.hashes = *std::move(hashes), .parent = {}, .tokens = *std::move(tokens)};
  const Json& parent = event.get("parent_block_hash");
  if (!parent.is_null()) {
    Result<std::uint64_t> hash = hash_of(parent);
    if (!hash) return forward_error(hash);
    stored.parent = *hash;
  }
  const Json& size = event.get("block_size");
  constexpr std::uint64_t kBlockMax = 1U << 20U;
  const std::uint64_t block = size.is_number_unsigned() ? size.get<std::uint64_t>() : 0;
  if (block == 0 || block > kBlockMax || stored.tokens.size() != stored.hashes.size() * block) {
    return wrong(fmt::format("{} tokens of {} blocks, expected block_size of each",
                             stored.tokens.size(), stored.hashes.size()));
  }
  stored.block_tokens = static_cast<std::uint32_t>(block);
  return stored;
}

/// Adds an event, unless it is passed over.
Status add_event(const Json& event, std::vector<KvEvent>& events) {
  if (!event.is_object() && !event.is_array()) {
    return wrong(fmt::format("an event is a {}, expected a map or a list", event.type_name()));
  }
  const WireFields fields(event, kStoredNames);
  const Json& type = fields.get("type");
  if (!type.is_string()) return wrong("an event has no type");
  if (type == "BlockStored") {
    if (!is_plain(fields)) return {};
    Result<KvBlocksStored> stored = stored_of(fields);
    if (!stored) return forward_error(stored);
    if (!stored->hashes.empty()) events.emplace_back(*std::move(stored));
  } else if (type == "BlockRemoved") {
    const WireFields removed(event, kRemovedNames);
    if (!is_plain(removed)) return {};
    Result<std::vector<std::uint64_t>> hashes = hashes_of(removed.get("block_hashes"));
    if (!hashes) return forward_error(hashes);
    if (!hashes->empty()) events.emplace_back(KvBlocksRemoved{*std::move(hashes)});
  } else if (type == "AllBlocksCleared") {
    events.emplace_back(KvCacheCleared());
  }
  return {};
}

Json json_of(const KvBlocksStored& stored) {
  return {{"type", "BlockStored"},
          {"block_hashes", stored.hashes},
          {"parent_block_hash", stored.parent ? Json(*stored.parent) : Json()},
          {"token_ids", stored.tokens},
          {"block_size", stored.block_tokens},
          {"lora_id", nullptr},
          {"medium", "GPU"},
          {"lora_name", nullptr}};
}

Json json_of(const KvBlocksRemoved& removed) {
  return {{"type", "BlockRemoved"}, {"block_hashes", removed.hashes}, {"medium", "GPU"}};
}

Json json_of(const KvCacheCleared&) { return {{"type", "AllBlocksCleared"}}; }

}  // namespace

Result<KvEventBatch> read_kv_events(std::string_view message) {
  LevelCheck levels;
  if (!Json::sax_parse(message, &levels, Json::input_format_t::msgpack)) {
    return wrong(
        fmt::format("{} bytes, expected msgpack of at most {} levels", message.size(), kLevelsMax));
  }
  const Json json = Json::from_msgpack(message, /*strict=*/true, /*allow_exceptions=*/false);
  const WireFields fields(json, kBatchNames);
  const Json& time = fields.get("ts");
  const Json& list = fields.get("events");
  if (!time.is_number() || !list.is_array()) {
    return wrong(fmt::format(
        "expected a time and a list of events, found {}",
        printable(json.dump(-1, ' ', true, Json::error_handler_t::replace), kShownMax)));
  }
  KvEventBatch batch{.time_s = time.get<double>(), .events = {}};
  batch.events.reserve(list.size());
  for (const Json& each : list) {
    if (Status added = add_event(each, batch.events); !added) return forward_error(added);
  }
  return batch;
}

std::string write_kv_events(const KvEventBatch& batch) {
  Json events = Json::array();
  for (const KvEvent& each : batch.events) {
    events.push_back(std::visit([](const auto& event) { return json_of(event); }, each));
  }
  std::string message;
  Json::to_msgpack({{"ts", batch.time_s}, {"events", std::move(events)}}, message);
  return message;
}

}  // namespace orrery
