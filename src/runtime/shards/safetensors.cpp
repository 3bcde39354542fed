#include "runtime/shards/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "base/format/little_endian.hpp"
#include "base/system/real_storage.hpp"
#include "base/text/utf8.hpp"
#include "runtime/checkpoint/exact_read.hpp"

namespace orrery {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

/// A tensor as described in the header.
struct HeaderEntry {
  ElementType dtype = ElementType::kF32;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> data_offsets;
};

template <class Visitor, SameStruct<HeaderEntry> Self>
void describe(Visitor& visitor, Self& entry) {
  visitor.required("dtype", entry.dtype);
  visitor.required("shape", entry.shape);
  visitor.required("data_offsets", entry.data_offsets);
}

/// An entry, and what a later message about it needs.
struct PlacedEntry {
  SafetensorsEntry entry;
  std::uint64_t end = 0;
  SourcePosition where;
};

Result<PlacedEntry> read_entry(const DocumentNode::Entry& node) {
  HeaderEntry read;
  if (Status status = read_struct(node.value, read, {}); !status) return forward_error(status);
  const SourcePosition where = node.value.position();
  const std::string name(node.key.text());
  const std::optional<std::uint64_t> elements = elements_of(read.shape);
  if (name.empty() || !elements) {
    return input_error(where, "expected a tensor with a name and at most 2^53 elements");
  }
  const std::uint64_t bytes = *elements * bytes_of(read.dtype);
  const bool is_range = read.data_offsets.size() == 2;
  if (!is_range || read.data_offsets[0] > read.data_offsets[1] ||
      read.data_offsets[1] - read.data_offsets[0] != bytes) {
    return input_error(where,
                       fmt::format("tensor \"{}\": expected data_offsets of {} bytes, found "
                                   "[{}]",
                                   printable(name, 80), bytes, fmt::join(read.data_offsets, ", ")));
  }
  return PlacedEntry{{{name, read.dtype, std::move(read.shape)}, read.data_offsets[0]},
                     read.data_offsets[1],
                     where};
}

/// Checks that the data of the entries follow each other and fill `data_bytes`.
Status check_places(const std::vector<PlacedEntry>& placed, std::uint64_t data_bytes,
                    const std::string& file) {
  std::uint64_t end = 0;
  for (const PlacedEntry& next : placed) {
    if (next.entry.begin != end) {
      return input_error(next.where,
                         fmt::format("tensor \"{}\": expected its data at byte {}, where those "
                                     "before end, found {}",
                                     printable(next.entry.info.name, 80), end, next.entry.begin));
    }
    end = next.end;
  }
  if (end == data_bytes) return {};
  return input_error({file}, fmt::format("expected {} bytes of data for the tensors of the header, "
                                         "found {}",
                                         end, data_bytes));
}

/// A new file that is renamed to `path` when it is complete.
class Replacement {
 public:
  explicit Replacement(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {
    // A killed export may have left this file.
    static_cast<void>(storage_.remove(partial_));
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (file_) static_cast<void>(storage_.remove(partial_));
  }

  StorageStatus open() {
    auto opened = storage_.open(partial_, OpenMode::kCreate);
    if (!opened) return tl::unexpected<StorageError>(std::move(opened.error()));
    file_ = *std::move(opened);
    return {};
  }
  StorageStatus append(std::string_view bytes) { return file_->append(bytes); }
  StorageStatus put() {
    if (StorageStatus synced = file_->sync(); !synced) return synced;
    StorageStatus renamed = storage_.rename({partial_, path_});
    if (renamed) file_.reset();
    return renamed;
  }

 private:
  RealStorage storage_;
  std::string path_;
  std::string partial_;
  std::unique_ptr<File> file_;  ///< nullptr: nothing to remove
};

Status append_tensor(CheckpointReader& reader, const TensorInfo& info, Replacement& file) {
  const std::uint64_t width = bytes_of(info.type);
  const std::uint64_t step = kShardBlockBytes / width;
  const std::uint64_t elements = elements_of(info.shape).value_or(0);
  std::string part;
  for (std::uint64_t begin = 0; begin < elements; begin += step) {
    const std::uint64_t end = std::min(elements, begin + step);
    part.resize((end - begin) * width);
    Status read =
        reader.read({info.name, info.type, begin, end}, std::as_writable_bytes(std::span(part)));
    if (!read) return read;
    if (StorageStatus added = file.append(part); !added) return forward_error(added);
  }
  return {};
}

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors_header(std::string_view header,
                                                               std::uint64_t data_bytes,
                                                               const std::string& file) {
  Result<Document> document = Document::parse(header, file);
  if (!document) return forward_error(document);
  const DocumentNode root = document->root();
  if (root.kind() != NodeKind::kMapping) {
    return input_error(root.position(), "expected an object with the tensors");
  }
  std::vector<PlacedEntry> placed;
  placed.reserve(root.size());
  for (const DocumentNode::Entry& node : root.entries()) {
    if (node.key.text() == kMetadata) continue;
    Result<PlacedEntry> read = read_entry(node);
    if (!read) return forward_error(read);
    placed.push_back(*std::move(read));
  }
  std::ranges::stable_sort(
      placed, {}, [](const PlacedEntry& next) { return std::pair(next.entry.begin, next.end); });
  if (Status good = check_places(placed, data_bytes, file); !good) return forward_error(good);
  std::vector<SafetensorsEntry> entries;
  entries.reserve(placed.size());
  for (PlacedEntry& next : placed) entries.push_back(std::move(next.entry));
  return entries;
}

SafetensorsHeader safetensors_header(
    std::span<const TensorInfo> tensors,
    std::span<const std::pair<std::string, std::string>> metadata) {
  SafetensorsHeader header;
  Json json = Json::object();
  for (const auto& [key, value] : metadata) json[std::string(kMetadata)][key] = value;
  for (const TensorInfo& tensor : tensors) {
    const std::uint64_t begin = header.data_bytes;
    header.data_bytes += elements_of(tensor.shape).value_or(0) * bytes_of(tensor.type);
    json[tensor.name] = to_json(HeaderEntry{tensor.type, tensor.shape, {begin, header.data_bytes}});
  }
  std::string text = json.dump();
  // Aligns the data.
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  header.bytes.resize(kLengthBytes);
  store_little_endian<std::uint64_t>(text.size(), header.bytes.data());
  header.bytes += text;
  return header;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  SafetensorsFile file(path, FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  struct stat found{};
  if (!file.fd_.valid() || ::fstat(file.fd_.get(), &found) != 0) {
    return environment_error(
        fmt::format("{}: cannot read: {}", path, std::generic_category().message(errno)));
  }
  const auto bytes = static_cast<std::uint64_t>(found.st_size);
  char length[kLengthBytes] = {};
  if (Status read = read_exactly(file.fd_, {path, 0}, length); !read) return forward_error(read);
  const auto header_bytes = load_little_endian<std::uint64_t>(length);
  if (header_bytes > Document::kSizeMax || header_bytes > bytes - kLengthBytes) {
    return input_error({path}, fmt::format("expected a header of at most {} bytes within the file, "
                                           "found one of {}",
                                           Document::kSizeMax, header_bytes));
  }
  std::string header(header_bytes, '\0');
  if (Status read = read_exactly(file.fd_, {path, kLengthBytes}, header); !read) {
    return forward_error(read);
  }
  file.data_begin_ = kLengthBytes + header_bytes;
  auto entries = parse_safetensors_header(header, bytes - file.data_begin_, path);
  if (!entries) return forward_error(entries);
  file.entries_ = *std::move(entries);
  return file;
}

Status SafetensorsFile::read(const TensorRange& range, std::span<std::byte> out) {
  const auto name_of = [](const SafetensorsEntry& entry) -> std::string_view {
    return entry.info.name;
  };
  const auto found = std::ranges::find(entries_, range.tensor, name_of);
  if (found == entries_.end()) {
    std::vector<std::string_view> names;
    std::ranges::transform(entries_, std::back_inserter(names), name_of);
    return no_such_tensor(range, names, path_);
  }
  if (Status good = check_range(range, found->info, path_); !good) return good;
  const std::uint64_t width = bytes_of(range.type);
  ORRERY_ASSERT(out.size() == (range.end - range.begin) * width, "room for just the range");
  return read_exactly(fd_, {path_, data_begin_ + found->begin + range.begin * width},
                      {reinterpret_cast<char*>(out.data()), out.size()});
}

Status export_safetensors(CheckpointReader& reader, const std::string& path) {
  std::vector<TensorInfo> tensors;
  tensors.reserve(reader.tensors().size());
  for (const PlacedTensor& tensor : reader.tensors()) {
    if (tensor.info.name == kMetadata) {
      return input_error({path}, fmt::format("a tensor cannot be called \"{}\" there", kMetadata));
    }
    tensors.push_back(tensor.info);
  }
  const CheckpointId& id = reader.manifest().id;
  const std::pair<std::string, std::string> metadata[] = {{"job", id.job},
                                                          {"step", fmt::format("{}", id.step)}};
  Replacement file(path);
  if (StorageStatus opened = file.open(); !opened) return forward_error(opened);
  const std::string header = safetensors_header(tensors, metadata).bytes;
  if (StorageStatus added = file.append(header); !added) return forward_error(added);
  for (const TensorInfo& tensor : tensors) {
    if (Status added = append_tensor(reader, tensor, file); !added) return added;
  }
  if (StorageStatus put = file.put(); !put) return forward_error(put);
  return {};
}

}  // namespace orrery
