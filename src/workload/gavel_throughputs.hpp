// workload/gavel_throughputs.hpp - steps a second of Gavel's job types on its accelerators, without
// which its traces have no run times.
// Read from the simulation_throughputs.json of stanford-futuredata/gavel, plain or gzip; immutable.
// Only the throughput of a type alone ("null") is kept, not that of two types that share a device.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "workload/trace/trace.hpp"

namespace orrery {

class GavelThroughputs {
 public:
  /// Errors with file:line:column: of JSON; a key that is not "('TYPE', SCALE)"; a throughput that
  /// is no number, negative or not finite.
  [[nodiscard]] static Result<GavelThroughputs> read(std::string_view bytes,
                                                     const std::string& file);
  [[nodiscard]] static Result<GavelThroughputs> load(const std::string& path);

  /// A job type and the accelerators it uses together.
  struct Work {
    std::string_view type;
    std::uint32_t scale = 1;
  };

  /// Steps a second; none where the accelerator or the type at that scale was not measured. The
  /// accelerators are k80, p100 and v100; "_unconsolidated" behind the name is for workers on
  /// several servers. O(log types).
  [[nodiscard]] std::optional<double> steps_per_second(std::string_view accelerator,
                                                       const Work& work) const;

  /// The accelerators with throughputs, ascending.
  [[nodiscard]] std::vector<std::string> accelerators() const;

  /// Run time of all steps of a job of a gavel trace, alone on its accelerators. No value where the
  /// throughput is unknown, and where the type cannot run there (throughput 0).
  [[nodiscard]] std::optional<Duration> run_time(std::string_view accelerator,
                                                 const TraceJob& job) const;

 private:
  using Key = std::pair<std::string, std::uint32_t>;
  struct Less {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      const std::string_view one = a.first;
      const std::string_view other = b.first;
      return one != other ? one < other : a.second < b.second;
    }
  };
  using ByType = std::map<Key, double, Less>;
  std::map<std::string, ByType, std::less<>> by_accelerator_;
};

}  // namespace orrery
