// executor/log/log_room.hpp - watches the size of a log that controllers share: a backend such as
// etcd holds some GiB at most. A log that is too large is named in the controller's log, and later
// on refuses new jobs; what jobs in it need goes on.
//
// Owned by the controller, on its loop; the store outlives it. A log whose size is not limited is
// never too large. Cost of a look: that of Store::held_bytes().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "base/log.hpp"
#include "store/store.hpp"

namespace orrery {

class LogRoom {
 public:
  struct Limits {
    std::uint64_t warn = std::uint64_t{512} << 20;     ///< bytes; more is named
    std::uint64_t refuse = std::uint64_t{1024} << 20;  ///< bytes; with more, no job is accepted
  };
  LogRoom(const Env& env, const Log& log, const Store& store)
      : LogRoom(env, log, store, Limits()) {}
  LogRoom(const Env& env, const Log& log, const Store& store, const Limits& limits);
  LogRoom(const LogRoom&) = delete;
  LogRoom& operator=(const LogRoom&) = delete;
  ~LogRoom();

  /// Looks now, and every few seconds from now on.
  void look();

  [[nodiscard]] std::uint64_t bytes() const { return store_.held_bytes(); }
  /// Returns how large the log is and what an operator can do; empty: it is not too large.
  [[nodiscard]] std::string warning() const;
  /// Error: new jobs are refused, with the same text.
  [[nodiscard]] Status admission() const;

 private:
  enum class Size : std::uint8_t { kFits, kLarge, kTooLarge };
  [[nodiscard]] Size size() const;

  Env env_;
  Log log_;
  const Store& store_;
  Limits limits_;
  Size logged_ = Size::kFits;
  std::optional<TimerId> timer_;
};

}  // namespace orrery
