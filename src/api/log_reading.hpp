// api/log_reading.hpp - one client's reading of the logs of a job's ranks, to their end or as they
// grow.
//
// Begun by ReadLog; lives as long as its call is wanted and there is more to read. First each rank
// is asked whether it has a log (and where its last lines begin), then the ranks are read in turn,
// a part at a time. With `follow` and no attempt named the next attempt follows the one that is
// over. On the controller's loop.
// Invariants: one question is on its way at a time, and none while an earlier part waits for the
// client, so a reading holds two parts at most, however slow its client. A reading ends without an
// error only if every byte that is kept was sent, and bytes that are not kept were counted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/grpc/call.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

class LogReading : public std::enable_shared_from_this<LogReading> {
 public:
  /// Fails the call where `since` is not a time. Precondition: the job is known, and has had the
  /// attempt if one is named.
  static void begin(Controller& controller, const Env& env, const v1::ReadLogRequest& request,
                    std::shared_ptr<Call> call);

  LogReading(Controller& controller, const Env& env, v1::ReadLogRequest request,
             std::shared_ptr<Call> call);

 private:
  using Answer = RankLogs::Answer;
  using Source = RankLogs::Source;

  /// The progress of reading one rank.
  struct Cursor {
    RankLogs::Place place;
    std::string node;  ///< name: the fleet may change meanwhile
    std::uint64_t from = 0;
    std::uint64_t size = 0;         ///< when the reading of the attempt began
    std::uint64_t earliest = 0;     ///< end of what was written before `since`
    std::uint64_t scanned = 0;      ///< the last lines are looked for before this byte
    std::uint32_t lines_left = 0;   ///< how many of them are still missing
    int misses = 0;                 ///< consecutive questions that its node did not answer
    Source source = Source::kNode;  ///< of the last answer
    enum class Stage : std::uint8_t { kUnknown, kAbsent, kScanned, kRead, kDone };
    Stage stage = Stage::kUnknown;
    enum class Idle : std::uint8_t { kNo, kYes } idle = Idle::kNo;  ///< nothing new when last asked
  };

  void begin_attempt();
  void probe();
  void on_probe(const Answer& answer);
  void begin_at(Cursor& cursor, const Answer& answer);
  void scan(const Answer& answer);
  void choose();
  [[nodiscard]] bool choose_rank();
  void step();
  void on_part(const Answer& answer);
  void send_part(Cursor& cursor, const Answer& answer);
  void miss(Cursor& cursor, Source source);
  void give_up(Cursor& cursor);
  void end_of_round();
  void end_attempt();
  void next_attempt();

  void ask(std::uint64_t from, void (LogReading::*answered)(const Answer&));
  void soon(void (LogReading::*what)());
  void later(void (LogReading::*what)());
  /// Whether the attempt being read can write no more.
  [[nodiscard]] bool attempt_over() const;
  [[nodiscard]] bool resumed() const;
  [[nodiscard]] std::string why_missing(const Cursor& cursor) const;
  [[nodiscard]] std::string ranks_text() const;
  void note(const std::string& text);

  Controller& controller_;
  Env env_;
  v1::ReadLogRequest request_;
  std::shared_ptr<Call> call_;
  JobId job_;
  std::uint32_t attempt_ = 0;
  std::optional<Instant> since_;
  std::vector<Cursor> cursors_;
  std::size_t at_ = 0;  ///< index of the cursor that is asked
  bool over_ = false;   ///< attempt_over() when the pending question was sent
  std::uint32_t ranks_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace orrery
