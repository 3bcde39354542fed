// scheduler/moves/migration.hpp - moves running jobs whose network got worse.
//
// Belongs to one full pass, after the queue. A job moves when its gain over the rest of its run
// exceeds the work it loses: since its last checkpoint, the checkpoint itself, the restart.
#pragma once

#include <cstdint>

#include "scheduler/pass/start_search.hpp"

namespace orrery {

class Migration {
 public:
  Migration(PassContext& pass, StartSearch& search);

  void move_jobs();

 private:
  [[nodiscard]] bool move(std::uint32_t running);

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
};

}  // namespace orrery
