#include "node/keeper/exit_cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/text/quantity_text.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

struct Sign {
  std::string_view text;
  FaultLayer layer;
};

constexpr std::array<Sign, 13> kSigns{{
    {"uncorrectable ECC error", FaultLayer::kAccelerator},
    {"GPU has fallen off the bus", FaultLayer::kAccelerator},
    {"GPU is lost", FaultLayer::kAccelerator},
    {"No route to host", FaultLayer::kNetwork},
    {"Network is unreachable", FaultLayer::kNetwork},
    {"Network is down", FaultLayer::kNetwork},
    {"NET/IB : Got async event : port error", FaultLayer::kNetwork},
    {"Stale file handle", FaultLayer::kStorage},
    {"Input/output error", FaultLayer::kStorage},
    {"Remote I/O error", FaultLayer::kStorage},
    {"Read-only file system", FaultLayer::kStorage},
    {"No space left on device", FaultLayer::kStorage},
    {"Hardware error from APEI", FaultLayer::kHost},
}};

constexpr std::size_t kTailRead = 8192;
constexpr std::size_t kEvidenceMax = 200;

std::string_view line_around(std::string_view text, std::size_t at) {
  const std::size_t before = text.rfind('\n', at);
  const std::size_t begin = before == text.npos ? 0 : before + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

}  // namespace

Blame exit_cause(int status, std::string_view tail) {
  Blame blame{.layer = FaultLayer::kProgram};
  if (status == 0) return blame;
  tail.remove_prefix(tail.size() - std::min(tail.size(), kTailRead));
  std::size_t newest = 0;
  for (const Sign& sign : kSigns) {
    const std::size_t at = tail.rfind(sign.text);
    if (at == tail.npos || (!blame.evidence.empty() && at < newest)) continue;
    newest = at;
    blame.layer = sign.layer;
    blame.evidence = printable(line_around(tail, at), kEvidenceMax);
  }
  if (blame.evidence.empty() && status == 128 + SIGKILL) {
    blame.evidence = "not by its keeper: perhaps out of memory";
  }
  return blame;
}

Blame out_of_memory(std::uint64_t kills, std::uint64_t limit) {
  return {FaultLayer::kProgram,
          {},
          fmt::format("out of memory: the kernel killed {} of the job's processes here, which may "
                      "use {} together",
                      kills, print(Bytes(static_cast<double>(limit))))};
}

}  // namespace orrery
