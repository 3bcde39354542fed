#include "inference/hugging_face/hugging_face_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format/field_writer.hpp"
#include "base/text/utf8.hpp"
#include "inference/hugging_face/json_fields.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameShown = 120;
constexpr std::size_t kFilesMax = 1'000;
constexpr std::size_t kBufferWeights = std::size_t{1} << 20;

std::optional<TensorEncoding> encoding_of(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return TensorEncoding::kF32;
    case ElementType::kF16:
      return TensorEncoding::kF16;
    case ElementType::kBf16:
      return TensorEncoding::kBf16;
    case ElementType::kI32:
    case ElementType::kI64:
    case ElementType::kU64:
    case ElementType::kU8:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string word_of(ElementType type) {
  const auto words = enum_words(type);
  const auto found = std::ranges::find(words, type, &EnumWord<ElementType>::value);
  return found == words.end() ? "" : std::string(found->word);
}

/// Tensors and their files, as an index has them.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  Result<nlohmann::json> json = read_json_object(path);
  if (!json) return forward_error(json);
  const auto found = json->find("weight_map");
  if (found == json->end() || !found->is_object()) {
    return input_error({path}, "expected \"weight_map\", an object with the file of each tensor");
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : found->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    const bool plain = name.ends_with(".safetensors") &&
                       name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!plain) {
      return input_error(
          {path},
          fmt::format("tensor \"{}\": expected the name of a .safetensors file "
                      "beside this one, found {}",
                      printable(tensor, kNameShown),
                      printable(file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                kNameShown)));
    }
    files.emplace(tensor, name);
  }
  return files;
}

}  // namespace

Result<std::unique_ptr<HuggingFaceWeights>> HuggingFaceWeights::open(const std::string& directory) {
  auto weights = std::make_unique<HuggingFaceWeights>();
  const std::string index = (fs::path(directory) / "model.safetensors.index.json").string();
  const std::string whole = (fs::path(directory) / "model.safetensors").string();
  std::error_code failed;
  const bool sharded = fs::exists(index, failed);
  if (!sharded && !fs::exists(whole, failed)) {
    return input_error({directory},
                       "there is no model.safetensors and no model.safetensors.index.json: "
                       "expected the weights in one of them");
  }
  if (!sharded) return of_file(whole);
  if (Status opened = weights->open_sharded(directory, index); !opened)
    return forward_error(opened);
  return weights;
}

Result<std::unique_ptr<HuggingFaceWeights>> HuggingFaceWeights::of_file(const std::string& path) {
  auto weights = std::make_unique<HuggingFaceWeights>();
  if (Status opened = weights->add(path); !opened) return forward_error(opened);
  return weights;
}

Status HuggingFaceWeights::add(const std::string& path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file) return forward_error(file);
  for (const SafetensorsEntry& entry : file->tensors()) {
    tensors_.push_back({.name = entry.info.name,
                        .type = word_of(entry.info.type),
                        .encoding = encoding_of(entry.info.type),
                        .shape = entry.info.shape,
                        .place = path});
    file_of_.push_back(files_.size());
  }
  files_.push_back(*std::move(file));
  return {};
}

Status HuggingFaceWeights::open_sharded(const std::string& directory, const std::string& index) {
  Result<std::map<std::string, std::string>> files = read_index(index);
  if (!files) return forward_error(files);
  std::set<std::string> names;
  for (const auto& [tensor, file] : *files) names.insert(file);
  if (names.size() > kFilesMax) {
    return input_error({index},
                       fmt::format("{} files, expected at most {}", names.size(), kFilesMax));
  }
  for (const std::string& name : names) {
    const std::size_t before = tensors_.size();
    if (Status added = add((fs::path(directory) / name).string()); !added) return added;
    for (std::size_t i = before; i < tensors_.size(); ++i) {
      const auto listed = files->find(tensors_[i].name);
      if (listed == files->end() || listed->second != name) {
        return input_error({tensors_[i].place},
                           fmt::format("tensor \"{}\" is not here in the index {}",
                                       printable(tensors_[i].name, kNameShown), index));
      }
      files->erase(listed);
    }
  }
  if (files->empty()) return {};
  return input_error(
      {index}, fmt::format("tensor \"{}\" is not in {}",
                           printable(files->begin()->first, kNameShown), files->begin()->second));
}

Status HuggingFaceWeights::read(std::size_t tensor, std::span<float> to) {
  const StoredTensor& stored = tensors_[tensor];
  SafetensorsFile& file = files_[file_of_[tensor]];
  const std::vector<SafetensorsEntry>& entries = file.tensors();
  const auto entry = std::ranges::find_if(
      entries, [&](const SafetensorsEntry& each) { return each.info.name == stored.name; });
  const ElementType type = entry->info.type;
  std::string buffer;
  for (std::size_t begin = 0; begin < to.size(); begin += kBufferWeights) {
    const std::size_t end = std::min(to.size(), begin + kBufferWeights);
    buffer.resize((end - begin) * bytes_of(type));
    Status read = file.read({.tensor = stored.name, .type = type, .begin = begin, .end = end},
                            std::as_writable_bytes(std::span(buffer)));
    if (!read) return read;
    decode_weights(*stored.encoding, buffer, to.subspan(begin, end - begin));
  }
  return {};
}

}  // namespace orrery
