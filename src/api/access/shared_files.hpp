// api/access/shared_files.hpp - the files that a controller writes and that belong to the cluster
// and not to a machine, kept the same on every controller that shares a log: tokens, joins, keys.
//
// A Storage that passes everything on, and that puts a file of the cluster into the log, sealed,
// before it writes it. Each controller writes the files of the log into its own STATE. The seal
// is AES-256-GCM under DIR/cluster.key, 64 hexadecimal digits that the operator gives to every
// controller; the name of the file is sealed with its content.
// Made by orreryd for a shared log; on the loop. Invariant: what write_file() has written is in the
// log. Cost of a write: that of a commit, which the loop waits for; these files change by hand.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "store/store.hpp"

namespace orrery {

/// Returns `bytes` sealed under a key of 32 bytes, as a text of the log.
[[nodiscard]] std::string seal(const std::string& key, const std::string& name,
                               std::string_view bytes, Entropy& entropy);
/// Errors (kEnvironment): the text is damaged, or was sealed under another key or for another name.
[[nodiscard]] Result<std::string> unseal(const std::string& key, const std::string& name,
                                         std::string_view sealed);

class SharedFiles final : public Storage {
 public:
  /// Puts texts into the log; they are durable on return.
  using Put = std::function<StorageStatus(const StoreTexts&)>;

  /// `state`: directory of the files. Errors: no DIR/cluster.key, with how to make or where to get
  /// one; one that is not a key, or that others than its owner can read.
  [[nodiscard]] static Result<std::unique_ptr<SharedFiles>> open(const Env& env,
                                                                 const std::string& directory,
                                                                 const std::string& state);
  SharedFiles(const Env& env, std::string state, std::string key)
      : env_(env), storage_(env.storage), state_(std::move(state)), key_(std::move(key)) {}

  /// Whether a text of a log is a sealed file, by its name.
  [[nodiscard]] static bool is_secret(std::string_view text);
  /// Whether the texts of the log have the cluster's authority, certificate and key.
  [[nodiscard]] static bool has_authority(const StoreTexts& texts);
  /// Writes the files of the log's texts into the directory, where they differ. If the log has
  /// another authority (tls/ca.key), the files that it replaces are kept as PATH.before,
  /// PATH.before.1 and so on, because certificates and tokens of the former authority are worth
  /// nothing without it. Returns the paths of the files kept. Errors: of the files; a text that the
  /// key does not open, and then nothing is written.
  [[nodiscard]] Result<std::vector<std::string>> take(const StoreTexts& texts);
  /// This controller leads: `put` is used from now on. Without it a file of the cluster cannot be
  /// written.
  void lead(Put put) { put_ = std::move(put); }
  /// Puts the files of the directory that `texts`, all of the log, lack: those of a log that was
  /// copied from a directory. Precondition: lead().
  [[nodiscard]] Status put_missing(const StoreTexts& texts);

  [[nodiscard]] StorageResult<std::unique_ptr<File>> open(const std::string& path,
                                                          OpenMode mode) override {
    return storage_.open(path, mode);
  }
  [[nodiscard]] StorageResult<std::string> read_file(const std::string& path,
                                                     std::size_t size_max) override {
    return storage_.read_file(path, size_max);
  }
  [[nodiscard]] StorageStatus write_file(const std::string& path, std::string_view bytes) override;
  [[nodiscard]] StorageResult<std::vector<std::string>> list(
      const std::string& directory) override {
    return storage_.list(directory);
  }
  [[nodiscard]] StorageStatus remove(const std::string& path) override {
    return storage_.remove(path);
  }
  [[nodiscard]] StorageStatus rename(const RenamePaths& paths) override {
    return storage_.rename(paths);
  }
  [[nodiscard]] StorageStatus make_directories(const std::string& path) override {
    return storage_.make_directories(path);
  }
  [[nodiscard]] StorageResult<std::uint64_t> free_bytes(const std::string& path) override {
    return storage_.free_bytes(path);
  }

 private:
  /// A file of the log that differs from the one in the directory.
  struct Replacement {
    std::string path;
    std::string bytes;
    std::optional<std::string> before;  ///< none: there is no file yet
  };
  [[nodiscard]] Result<std::vector<Replacement>> replacements(const StoreTexts& texts) const;
  /// Keeps what a file had under a name that is free, and returns that name.
  [[nodiscard]] StorageResult<std::string> keep(const Replacement& file);

  Env env_;
  Storage& storage_;  ///< that of the machine
  std::string state_;
  std::string key_;
  Put put_;  ///< none: another controller leads
};

}  // namespace orrery
