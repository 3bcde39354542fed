#include "runtime/text/text_corpus.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> path_error(const std::string& path, std::string_view what) {
  return input_error({}, fmt::format("training text \"{}\": {}", path, what));
}

bool taken(const fs::path& path, const std::vector<std::string>& suffixes) {
  const std::string name = path.filename().string();
  return suffixes.empty() || std::ranges::any_of(suffixes, [&](const std::string& suffix) {
           return name.ends_with(suffix);
         });
}

Status add_directory(const std::string& directory, const CorpusOptions& options,
                     std::vector<std::string>& paths) {
  std::error_code failed;
  const std::size_t before = paths.size();
  for (fs::recursive_directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    const bool file = at->is_regular_file(failed) && at->file_size(failed) > 0;
    if (file && taken(at->path(), options.suffixes)) paths.push_back(at->path().string());
  }
  if (failed) return path_error(directory, failed.message());
  if (paths.size() > before) return {};
  return path_error(directory, options.suffixes.empty()
                                   ? "the directory holds no file with text"
                                   : fmt::format("the directory holds no file with text that ends "
                                                 "in {}",
                                                 fmt::join(options.suffixes, ", ")));
}

Result<std::vector<std::string>> list_files(const CorpusOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& path : options.paths) {
    std::error_code failed;
    if (fs::is_directory(path, failed)) {
      if (Status added = add_directory(path, options, paths); !added) return forward_error(added);
    } else {
      paths.push_back(path);
    }
  }
  if (paths.empty()) return input_error({}, "no training text: name a file or a directory");
  std::ranges::sort(paths);
  const auto repeated = std::ranges::unique(paths);
  paths.erase(repeated.begin(), repeated.end());
  return paths;
}

}  // namespace

/// One file's bytes, read only.
class TextCorpus::MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    if (!file.valid() || ::fstat(file.get(), &status) != 0) {
      return path_error(path, std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) return path_error(path, "expected a file or a directory");
    if (status.st_size == 0) return path_error(path, "the file is empty");
    const auto size = static_cast<std::size_t>(status.st_size);
    void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (bytes == MAP_FAILED) return path_error(path, std::strerror(errno));
    return std::make_shared<const MappedFile>(static_cast<const unsigned char*>(bytes), size);
  }

  MappedFile(const unsigned char* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { ::munmap(const_cast<unsigned char*>(bytes_), size_); }

  std::span<const unsigned char> bytes() const { return {bytes_, size_}; }

 private:
  const unsigned char* bytes_;
  std::size_t size_;
};

Result<TextCorpus> TextCorpus::open(const CorpusOptions& options) {
  Result<std::vector<std::string>> paths = list_files(options);
  if (!paths) return forward_error(paths);
  TextCorpus corpus;
  corpus.files_.reserve(paths->size());
  corpus.begins_.reserve(paths->size() + 1);
  for (const std::string& path : *paths) {
    if (Status added = corpus.add(path, options); !added) return forward_error(added);
  }
  return corpus;
}

Status TextCorpus::add(const std::string& path, const CorpusOptions& options) {
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file) return forward_error(file);
  const std::span<const unsigned char> bytes = (*file)->bytes();
  const auto zeros = std::ranges::count(bytes, 0);
  if (zeros > 0 && options.binary == CorpusOptions::Binary::kRefuse) {
    return path_error(
        path, fmt::format("{} of {} bytes are zero, the first is byte {}: the file is "
                          "not text",
                          zeros, bytes.size(), std::ranges::find(bytes, 0) - bytes.begin()));
  }
  zero_bytes_ += zeros;
  files_.push_back(std::move(*file));
  begins_.push_back(begins_.back() + static_cast<std::int64_t>(bytes.size()));
  return {};
}

TextCorpus TextCorpus::in_tokens(TokenArray tokens) const {
  TextCorpus other;
  other.begins_ = begins_;
  other.zero_bytes_ = zero_bytes_;
  other.tokens_ = std::move(tokens);
  return other;
}

std::span<const unsigned char> TextCorpus::file(std::size_t number) const {
  ORRERY_ASSERT(!tokens_ && number < files_.size(), "a file of bytes");
  return files_[number]->bytes();
}

void TextCorpus::read(std::int64_t begin, std::span<std::int32_t> out) const {
  ORRERY_ASSERT(begin >= 0 && begin + static_cast<std::int64_t>(out.size()) <= tokens(),
                "the tokens lie in the corpus");
  if (tokens_) return tokens_->read(begin, out);
  auto file =
      static_cast<std::size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin()) - 1;
  while (!out.empty()) {
    const auto rest =
        files_[file]->bytes().subspan(static_cast<std::size_t>(begin - begins_[file]));
    const std::size_t count = std::min(rest.size(), out.size());
    std::ranges::copy(rest.first(count), out.begin());
    out = out.subspan(count);
    begin += static_cast<std::int64_t>(count);
    ++file;
  }
}

}  // namespace orrery
