// store/backend_test.hpp - the backends, for tests that apply to each of them: creates a store and
// opens it again. One for each test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "store/memory/memory_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {

/// A directory that is removed after the test. In memory if possible: syncs to a disk would take
/// most of the time, and the tests do not depend on them.
class TestDirectory {
 public:
  TestDirectory() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string name =
        (memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
        "orrery-store-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class TestBackend {
 public:
  virtual ~TestBackend() = default;
  /// Opens the store with everything written so far. One at a time.
  virtual std::unique_ptr<Store> open() = 0;
};

class MemoryBackend final : public TestBackend {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<MemoryStore>(disk_); }

 private:
  MemoryDisk disk_;
};

class SqliteBackend final : public TestBackend {
 public:
  std::unique_ptr<Store> open() override {
    auto store = SqliteStore::open(directory());
    EXPECT_TRUE(store) << (store ? "" : store.error().text());
    return *std::move(store);
  }
  [[nodiscard]] std::string directory() const { return scratch_.path("store"); }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.path(name); }

 private:
  TestDirectory scratch_;
};

enum class BackendKind : std::uint8_t { kMemory, kSqlite };

inline std::unique_ptr<TestBackend> make_backend(BackendKind kind) {
  if (kind == BackendKind::kMemory) return std::make_unique<MemoryBackend>();
  return std::make_unique<SqliteBackend>();
}

}  // namespace orrery
