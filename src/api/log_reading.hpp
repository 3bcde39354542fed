// api/log_reading.hpp - one client that reads what a rank writes, to its end or as it grows.
//
// Begun by ReadLog; lives as long as its call is wanted and there is more. It asks the rank's node
// for the next part, sends it, and where nothing new is there asks again a little later. With
// `follow` and no attempt named it goes on with each next attempt. On the controller's loop.
// Invariant: one question at a time, so what is on its way to a client is bounded by a part.
#pragma once

#include <memory>

#include "api/call.hpp"
#include "base/env.hpp"
#include "executor/controller.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

class LogReading : public std::enable_shared_from_this<LogReading> {
 public:
  /// Precondition: the job is known, and has had the attempt if one is named.
  static void begin(Controller& controller, const Env& env, const v1::ReadLogRequest& request,
                    std::shared_ptr<Call> call);

  LogReading(Controller& controller, const Env& env, v1::ReadLogRequest request,
             std::shared_ptr<Call> call);

 private:
  void step();
  void on_part(const AttemptLogPart& part);
  void later();
  /// Whether the attempt being read cannot write any more.
  [[nodiscard]] bool attempt_over() const;
  void next_attempt();

  Controller& controller_;
  Env env_;
  v1::ReadLogRequest request_;
  std::shared_ptr<Call> call_;
  JobId job_;
  std::uint32_t attempt_ = 0;
  std::uint64_t from_ = 0;
  bool over_ = false;  ///< as of the question on its way
};

}  // namespace orrery
