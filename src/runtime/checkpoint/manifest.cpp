#include "runtime/checkpoint/manifest.hpp"

#include <algorithm>
#include <set>

#include "base/format/checksum.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

template <class Visitor, SameStruct<ShardRecord> Self>
void describe(Visitor& visitor, Self& shard) {
  visitor.required("file", shard.file);
  visitor.required("bytes", shard.bytes);
  visitor.required("checksum", shard.checksum);
  visitor.required("pieces", shard.pieces);
}

namespace {

constexpr std::uint32_t kFormat = 1;
constexpr std::string_view kBeforeChecksum = "{\"checksum\": \"";
constexpr std::string_view kBeforeBody = "\",\n\"manifest\": ";
constexpr std::string_view kBehindBody = "}\n";
constexpr std::size_t kChecksumDigits = 16;

/// A manifest as it stands in the file.
struct Body {
  std::uint32_t format = kFormat;
  Manifest manifest;
};

template <class Visitor, SameStruct<Body> Self>
void describe(Visitor& visitor, Self& body) {
  visitor.required("format", body.format);
  describe_id(visitor, body.manifest.id);
  visitor.required("world", body.manifest.world);
  visitor.required("shards", body.manifest.shards);
  visitor.elsewhere("extra");
}

/// Whether a name can only be a file in the directory of the manifest.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos &&
         first_invalid_utf8(name) == std::string_view::npos;
}

Status check_names(const Manifest& manifest) {
  if (Status good = check_id(manifest.id); !good) return good;
  std::set<std::string_view> seen;
  for (const ShardRecord& shard : manifest.shards) {
    if (is_plain_name(shard.file) && seen.insert(shard.file).second) continue;
    return input_error({}, fmt::format("expected a name of a file for each shard, found \"{}\"",
                                       printable(shard.file, 80)));
  }
  return {};
}

/// Checks that the sorted parts of a tensor cover it exactly once.
Status check_cover(const PlacedTensor& tensor) {
  std::uint64_t covered = 0;
  for (const TensorPart& part : tensor.parts) {
    if (part.begin != covered) {
      return input_error(
          {}, fmt::format("tensor \"{}\": {} of elements [{}, {})", tensor.info.name,
                          part.begin > covered ? "no shard has one" : "two shards have one",
                          std::min(covered, part.begin), std::max(covered, part.begin)));
    }
    covered = part.end;
  }
  const std::uint64_t elements = elements_of(tensor.info.shape).value_or(0);
  if (covered == elements) return {};
  return input_error({}, fmt::format("tensor \"{}\": no shard has one of elements [{}, {})",
                                     tensor.info.name, covered, elements));
}

}  // namespace

Result<std::vector<PlacedTensor>> placed_tensors(const Manifest& manifest) {
  struct Placed {
    const TensorPiece* piece;
    std::size_t shard;
  };
  std::vector<Placed> all;
  for (std::size_t shard = 0; shard < manifest.shards.size(); ++shard) {
    for (const TensorPiece& piece : manifest.shards[shard].pieces) {
      if (Status good = check_piece(piece); !good) return forward_error(good);
      all.push_back({&piece, shard});
    }
  }
  std::ranges::stable_sort(all, {}, [](const Placed& placed) {
    return std::tie(placed.piece->tensor, placed.piece->begin, placed.piece->end);
  });
  std::vector<PlacedTensor> tensors;
  for (const auto& [piece, shard] : all) {
    TensorInfo info{piece->tensor, piece->type, piece->shape};
    if (tensors.empty() || tensors.back().info.name != info.name) {
      tensors.push_back({std::move(info), {}});
    } else if (tensors.back().info != info) {
      return input_error({},
                         fmt::format("tensor \"{}\": expected one type and shape in all shards, "
                                     "found two",
                                     info.name));
    }
    tensors.back().parts.push_back({piece->begin, piece->end, shard, piece->offset});
  }
  for (const PlacedTensor& tensor : tensors) {
    if (Status good = check_cover(tensor); !good) return forward_error(good);
  }
  return tensors;
}

Result<std::string> manifest_text(const Manifest& manifest) {
  if (Status good = check_names(manifest); !good) return forward_error(good);
  if (auto tensors = placed_tensors(manifest); !tensors) return forward_error(tensors);
  // Also refuses what Document would refuse: unlimited nesting, invalid text.
  Result<Document> readable = Document::parse(manifest.extra, "extra");
  if (!readable) return forward_error(readable);
  Json extra = Json::parse(manifest.extra, nullptr, /*allow_exceptions=*/false);
  if (extra.is_discarded()) return input_error({"extra"}, "expected JSON, found something else");
  Json body = to_json(Body{kFormat, manifest});
  body["extra"] = std::move(extra);
  const std::string text = body.dump();
  std::string whole = fmt::format("{}{}{}{}{}", kBeforeChecksum, checksum_text(checksum(text, 0)),
                                  kBeforeBody, text, kBehindBody);
  if (whole.size() <= Document::kSizeMax) return whole;
  return infeasible(
      fmt::format("a manifest of {} bytes; at most {}: cut the tensors into fewer "
                  "pieces",
                  whole.size(), Document::kSizeMax));
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& file) {
  constexpr std::size_t kAround =
      kBeforeChecksum.size() + kChecksumDigits + kBeforeBody.size() + kBehindBody.size();
  const std::string_view digits = text.substr(std::min(text.size(), kBeforeChecksum.size()));
  if (text.size() < kAround || !text.starts_with(kBeforeChecksum) ||
      !digits.substr(kChecksumDigits).starts_with(kBeforeBody) || !text.ends_with(kBehindBody)) {
    return input_error({file}, "expected a manifest and its checksum, found something else");
  }
  text.remove_suffix(kBehindBody.size());
  const std::string_view body = text.substr(kAround - kBehindBody.size());
  if (checksum_text(checksum(body, 0)) != digits.substr(0, kChecksumDigits)) {
    return input_error({file}, "not what was written: its checksum is of another manifest");
  }
  Result<Document> document = Document::parse(body, file);
  if (!document) return forward_error(document);
  Body read;
  if (Status status = read_struct(document->root(), read, {}); !status) {
    return forward_error(status);
  }
  if (read.format != kFormat) {
    return input_error({file}, fmt::format("expected format {}, found {}", kFormat, read.format));
  }
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return input_error({file}, "expected JSON, found something else");
  const bool extra = read_elsewhere<Body>(document->root(), "extra").has_value();
  read.manifest.extra = extra ? json["extra"].dump() : "{}";
  Status good = check_names(read.manifest);
  if (good) {
    if (auto tensors = placed_tensors(read.manifest); !tensors) good = forward_error(tensors);
  }
  if (!good) return input_error({file}, std::move(good.error().message));
  return std::move(read.manifest);
}

std::string shard_record_text(const ShardRecord& record) { return to_json(record).dump(); }

Result<ShardRecord> parse_shard_record(std::string_view text, const std::string& source) {
  Result<Document> document = Document::parse(text, source);
  if (!document) return forward_error(document);
  ShardRecord record;
  if (Status read = read_struct(document->root(), record, {}); !read) return forward_error(read);
  return record;
}

}  // namespace orrery
