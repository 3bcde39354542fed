#include "node/launch/tree_removal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/system/file_descriptor.hpp"

namespace orrery {
namespace {

/// Levels open at a time; deeper directories are moved to the top first.
constexpr int kDepthMax = 32;

FileDescriptor open_directory(int above, const std::string& name) {
  return FileDescriptor(
      ::openat(above, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> some_names(int directory, std::size_t most) {
  std::vector<std::string> names;
  const int own = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own), ::closedir);
  if (stream == nullptr) {
    ::close(own);
    return names;
  }
  while (names.size() < most) {
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace

/// A directory that is being emptied.
struct TreeRemoval::Level {
  int directory = -1;
  int top = -1;  ///< of the whole tree
  int depth = 0;
};

bool TreeRemoval::remove(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const FileDescriptor above = open_directory(AT_FDCWD, path.substr(0, slash));
  if (!above.valid()) return true;
  const std::string name = path.substr(slash + 1);
  if (const FileDescriptor top = open_directory(above.get(), name); top.valid()) {
    int before = 0;
    do {
      before = moved_;
      if (!empty({top.get(), top.get(), 0})) return false;
    } while (moved_ > before);
    unlink(above.get(), name, AT_REMOVEDIR);
    return true;
  }
  unlink(above.get(), name, 0);
  return true;
}

bool TreeRemoval::empty(const Level& level) {
  if (left_ <= 0) return false;
  for (const std::string& name : some_names(level.directory, static_cast<std::size_t>(left_))) {
    if (!remove_entry(level, name) || left_ <= 0) return false;
  }
  return true;
}

bool TreeRemoval::remove_entry(const Level& level, const std::string& name) {
  const FileDescriptor directory = open_directory(level.directory, name);
  if (!directory.valid()) {
    unlink(level.directory, name, 0);
    return true;
  }
  if (level.depth == kDepthMax) {
    move_to_top(level, name);
    return true;
  }
  if (!empty({directory.get(), level.top, level.depth + 1})) return false;
  unlink(level.directory, name, AT_REMOVEDIR);
  return true;
}

/// Moves a directory to the top, under a name that is free there.
void TreeRemoval::move_to_top(const Level& level, const std::string& name) {
  constexpr int kNamesMax = 1'000;
  --left_;
  for (int number = 0; number < kNamesMax; ++number) {
    const std::string moved = fmt::format("removed-{}", number);
    if (::renameat(level.directory, name.c_str(), level.top, moved.c_str()) == 0) {
      ++moved_;
      ++removed_;
      return;
    }
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) return;
  }
}

void TreeRemoval::unlink(int directory, const std::string& name, int flags) {
  --left_;
  if (::unlinkat(directory, name.c_str(), flags) == 0) ++removed_;
}

}  // namespace orrery
