#include "runtime/ranks/peer_copies.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPassed = std::size_t{1} << 19;  ///< floats at a time

std::uint64_t checksum_of(std::span<const float> floats) {
  const std::span<const std::byte> bytes = std::as_bytes(floats);
  return block_checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// Sends `own` to one rank while receiving `other` from a second.
Shared<void> pass_on(Communicator& all, std::span<const std::byte> own,
                     std::span<std::byte> other) {
  const std::uint32_t away = all.size() / 2;
  const auto sent = all.begin_send(own, (all.rank() + away) % all.size());
  if (!sent) return tl::unexpected(sent.error());
  if (auto got = all.receive(other, (all.rank() + all.size() - away) % all.size()); !got) {
    return got;
  }
  return all.end_send(*sent);
}

}  // namespace

Shared<void> PeerCopies::keep(Communicator& all, const TrainingState& state) {
  if (all.size() == 1) return {};
  auto ranges = state.ranges(all);
  if (!ranges) return tl::unexpected(ranges.error());
  std::rotate(copies_.begin(), copies_.begin() + 2, copies_.end());
  Copy& own = copies_[0];
  Copy& other = copies_[1];
  own.name = other.name = {};
  own.vectors = *std::move(ranges);
  Name name{.step = state.steps(), .ranks = all.size(), .range = all.rank()};
  for (std::size_t i = 0; i < name.checksums.size(); ++i) {
    name.checksums.at(i) = checksum_of(own.vectors.at(i));
  }
  Name others;
  if (auto told = pass_on(all, std::as_bytes(std::span(&name, 1)),
                          std::as_writable_bytes(std::span(&others, 1)));
      !told) {
    return told;
  }
  const FloatRange range = even_range(state.whole_floats(), others.range, others.ranks);
  for (std::size_t i = 0; i < own.vectors.size(); ++i) {
    other.vectors.at(i).resize(range.size());
    if (auto passed = pass_on(all, std::as_bytes(std::span(own.vectors.at(i))),
                              std::as_writable_bytes(std::span(other.vectors.at(i))));
        !passed) {
      return passed;
    }
  }
  own.name = name;
  other.name = others;
  return {};
}

bool PeerCopies::good(const Copy& copy) {
  for (std::size_t i = 0; i < copy.vectors.size(); ++i) {
    if (checksum_of(copy.vectors.at(i)) != copy.name.checksums.at(i)) return false;
  }
  return copy.name.ranks > 0;
}

/// Returns the rank that provides each range of `of`; nothing: a range is missing. `names` are
/// those of all ranks.
std::optional<std::vector<PeerCopies::Source>> PeerCopies::sources_of(std::span<const Name> names,
                                                                      const Name& of) const {
  std::vector<Source> sources(of.ranks);
  std::vector<bool> there(of.ranks);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Name& name = names[i];
    if (name.step != of.step || name.ranks != of.ranks || there[name.range]) continue;
    there[name.range] = true;
    sources[name.range] = {static_cast<std::uint32_t>(i / kCopies), name.range};
  }
  if (std::ranges::find(there, false) != there.end()) return std::nullopt;
  return sources;
}

Shared<std::optional<std::uint64_t>> PeerCopies::newest(Communicator& all) {
  std::array<Name, kCopies> own;
  for (std::size_t i = 0; i < kCopies; ++i) {
    if (good(copies_.at(i))) own.at(i) = copies_.at(i).name;
  }
  std::vector<Name> names(kCopies * all.size());
  const auto told =
      all.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(names)));
  if (!told) return tl::unexpected(told.error());
  found_ = {};
  for (const Name& name : names) {
    const bool newer = found_.ranks == 0 || name.step > found_.step;
    if (name.ranks == 0 || !newer) continue;
    auto sources = sources_of(names, name);
    if (!sources) continue;
    found_ = name;
    sources_ = *std::move(sources);
  }
  if (found_.ranks == 0) return std::nullopt;
  return found_.step;
}

const PeerCopies::Copy& PeerCopies::copy_of(std::uint32_t range) const {
  const auto found = std::ranges::find_if(copies_, [&](const Copy& copy) {
    return copy.name.step == found_.step && copy.name.ranks == found_.ranks &&
           copy.name.range == range;
  });
  ORRERY_ASSERT(found != copies_.end(), "this rank has said that it has the range");
  return *found;
}

Shared<void> PeerCopies::restore(Communicator& all, TrainingState& state) const {
  ORRERY_ASSERT(found_.ranks > 0, "there is a copy");
  std::vector<float> passed;
  for (const Source& source : sources_) {
    const FloatRange range = even_range(state.whole_floats(), source.range, found_.ranks);
    for (std::size_t vector = 0; vector < TrainingState::kVectors; ++vector) {
      for (std::size_t at = range.begin; at < range.end; at += kPassed) {
        passed.resize(std::min(kPassed, range.end - at));
        if (all.rank() == source.rank) {
          const AlignedFloats& from = copy_of(source.range).vectors.at(vector);
          std::copy_n(from.data() + (at - range.begin), passed.size(), passed.data());
        }
        const auto bytes = std::as_writable_bytes(std::span(passed));
        if (auto got = all.broadcast(bytes, source.rank); !got) return got;
        state.take(vector, at, passed);
      }
    }
  }
  state.take_steps(found_.step);
  return {};
}

}  // namespace orrery
