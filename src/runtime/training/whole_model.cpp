#include "runtime/training/whole_model.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::size_t kExchanged = std::size_t{1} << 19;  ///< floats exchanged at once by all ranks
constexpr FloatRange kAnywhere{0, std::numeric_limits<std::size_t>::max()};

}  // namespace

FloatRange FloatRange::within(const FloatRange& other) const {
  const std::size_t from = std::max(begin, other.begin);
  return {from, std::max(from, std::min(end, other.end))};
}

FloatRange even_range(std::size_t size, std::uint32_t rank, std::uint32_t ranks) {
  return {size * rank / ranks, size * (rank + 1) / ranks};
}

WholeModel::WholeModel(const TransformerConfig& config, const ModelPart& part)
    : whole_(config), rank_(part.number()) {
  parts_.reserve(part.ranks());
  for (std::uint32_t rank = 0; rank < part.ranks(); ++rank) {
    parts_.emplace_back(config, part.at(rank));
  }
}

void WholeModel::visit_tensor(const Wanted& wanted, std::size_t tensor,
                              const RunVisitor& visit) const {
  const ParameterTensor& here = parts_[wanted.part].tensors()[tensor];
  if (here.size == 0) return;
  const std::size_t whole = whole_.tensors()[tensor].begin + here.cut.first;
  const FloatRange own = FloatRange{here.begin, here.begin + here.size}.within(wanted.here);
  const std::size_t before = wanted.whole.begin > whole ? wanted.whole.begin - whole : 0;
  const std::size_t first = here.begin + before / here.cut.period * here.cut.count;
  for (std::size_t at = std::max(own.begin, first); at < own.end;) {
    const std::size_t period = (at - here.begin) / here.cut.count;
    const std::size_t into = (at - here.begin) % here.cut.count;
    const std::size_t begin = whole + period * here.cut.period + into;
    const std::size_t size = std::min(here.cut.count - into, own.end - at);
    const FloatRange run = FloatRange{begin, begin + size}.within(wanted.whole);
    if (begin >= wanted.whole.end) return;
    if (run.size() > 0) visit({tensor, at + (run.begin - begin), run.begin, run.size()});
    at += size;
  }
}

void WholeModel::visit(const FloatRange& here, const RunVisitor& visit) const {
  this->visit(here, kAnywhere, visit);
}

void WholeModel::visit(const FloatRange& here, const FloatRange& whole,
                       const RunVisitor& visit) const {
  for (std::size_t i = 0; i < whole_.tensors().size(); ++i) {
    const ParameterTensor& tensor = whole_.tensors()[i];
    if (tensor.begin >= whole.end) return;
    if (tensor.begin + tensor.size <= whole.begin) continue;
    visit_tensor({rank_, here, whole}, i, visit);
  }
}

void WholeModel::visit_given(const Wanted& wanted, const RunVisitor& visit) const {
  for (std::size_t i = 0; i < whole_.tensors().size(); ++i) {
    const ParameterTensor& tensor = whole_.tensors()[i];
    if (tensor.begin >= wanted.whole.end) return;
    if (tensor.begin + tensor.size <= wanted.whole.begin) continue;
    if (parts_[wanted.part].tensors()[i].counts) visit_tensor(wanted, i, visit);
  }
}

Shared<void> WholeModel::assemble(Communicator& all, const HeldFloats& own,
                                  std::span<float> out) const {
  const std::uint32_t ranks = all.size();
  const std::size_t size = whole_.size();
  ORRERY_ASSERT(out.size() == even_range(size, all.rank(), ranks).size(),
                "room for just its range");
  std::fill(out.begin(), out.end(), 0.0f);
  std::vector<FloatRange> held(ranks);
  const auto shown = all.all_gather(std::as_bytes(std::span(&own.held, 1)),
                                    std::as_writable_bytes(std::span(held)));
  if (!shown) return shown;
  const std::size_t each = std::max<std::size_t>(1, kExchanged / ranks);
  const auto piece = [&](std::uint32_t rank, std::size_t from) {
    const FloatRange range = even_range(size, rank, ranks);
    return FloatRange{range.begin + from, range.begin + from + each}.within(range);
  };
  std::vector<float> given(each * ranks);
  std::vector<float> got(given.size());
  for (std::size_t from = 0; from < size / ranks + 1; from += each) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      float* to = given.data() + rank * each;
      visit_given({rank_, own.held, piece(rank, from)}, [&](const FloatRun& run) {
        to = std::copy_n(own.floats.data() + (run.here - own.held.begin), run.size, to);
      });
    }
    const auto exchanged =
        all.all_to_all(std::as_bytes(std::span(given)), std::as_writable_bytes(std::span(got)));
    if (!exchanged) return exchanged;
    const FloatRange mine = piece(all.rank(), from);
    const std::size_t begin = even_range(size, all.rank(), ranks).begin;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const float* next = got.data() + rank * each;
      visit_given({rank % parts_.size(), held[rank], mine}, [&](const FloatRun& run) {
        std::copy_n(next, run.size, out.data() + (run.whole - begin));
        next += run.size;
      });
    }
  }
  return {};
}

}  // namespace orrery
