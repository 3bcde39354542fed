// twin/serving/request_book.hpp - what has become of each request of a modelled service.
//
// Owned by a service run; borrows the trace. Invariant: a request ends once.
// Cost: O(1) a call; 20 bytes a request, and 12 for each that is completed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "twin/serving/engine_model.hpp"
#include "twin/serving/service_figures.hpp"
#include "twin/serving/service_setup.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

enum class RequestFate : std::uint8_t { kOpen, kCompleted, kShed, kFailed };

inline std::array<EnumWord<RequestFate>, 4> enum_words(RequestFate) {
  return {{{"open", RequestFate::kOpen},
           {"completed", RequestFate::kCompleted},
           {"shed", RequestFate::kShed},
           {"failed", RequestFate::kFailed}}};
}

class RequestBook {
 public:
  RequestBook(const RequestTrace& trace, const RequestTargets& targets);

  /// The first token of the answer reaches the client.
  void begin(std::uint32_t request, Picoseconds now);
  /// The last one does. Precondition: it has begun.
  void complete(std::uint32_t request, Picoseconds now);
  /// It ends without an answer. Precondition: `fate` is kShed or kFailed.
  void refuse(std::uint32_t request, RequestFate fate);

  [[nodiscard]] bool has_begun(std::uint32_t request) const { return entries_[request].first >= 0; }
  [[nodiscard]] RequestFate fate_of(std::uint32_t request) const { return entries_[request].fate; }
  [[nodiscard]] std::uint64_t open() const { return open_; }
  /// Times from a request's arrival to its first token and, once completed, between tokens.
  [[nodiscard]] Picoseconds first_of(std::uint32_t request) const {
    return entries_[request].first;
  }
  [[nodiscard]] Picoseconds end_of(std::uint32_t request) const { return entries_[request].end; }
  [[nodiscard]] Picoseconds arrival_of(std::uint32_t request) const;

  /// Whether a completed answer meets the targets.
  [[nodiscard]] bool is_within(std::uint32_t request) const;
  /// Seconds to the first token of a completed answer.
  [[nodiscard]] double ttft_s(std::uint32_t request) const;
  /// Seconds between the tokens of a completed answer; 0: it has one.
  [[nodiscard]] double tpot_s(std::uint32_t request) const;

  /// Sets the figures of classes, tokens, span and the rate of an oracle.
  void report(ServiceFigures& figures) const;

 private:
  struct Entry {
    Picoseconds first = -1;
    Picoseconds end = -1;
    RequestFate fate = RequestFate::kOpen;
  };
  /// Counts the requests of a class; none: all.
  [[nodiscard]] ClassFigures figures_of(std::optional<RequestClass> request_class) const;
  [[nodiscard]] double oracle_rate() const;
  void end(std::uint32_t request, RequestFate fate);

  const RequestTrace& trace_;
  RequestTargets targets_;
  std::vector<Entry> entries_;
  std::uint64_t open_;
};

}  // namespace orrery
