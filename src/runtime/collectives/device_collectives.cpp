#include "runtime/collectives/device_collectives.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

/// Number of polls of a device before the thread sleeps between two polls.
constexpr std::uint32_t kEagerPolls = 1000;
constexpr Duration kDoze = Duration::milliseconds(1);
/// How long the report of a lost peer may take after the library has failed.
constexpr Duration kWhoDied = Duration::seconds(1);

int type_of(SumType type) {
  switch (type) {
    case SumType::kFloat32:
      return DeviceLibrary::kFloat32;
    case SumType::kBfloat16:
      return DeviceLibrary::kBfloat16;
    case SumType::kInt32:
      return DeviceLibrary::kInt32;
  }
  return DeviceLibrary::kFloat32;
}

std::size_t bytes_of(SumType type) { return type == SumType::kBfloat16 ? 2 : 4; }

/// The message from rank 0 to the others.
struct Invitation {
  DeviceLibrary::UniqueId id{};
  DeviceLibrary::Code code = 0;
};

}  // namespace

Result<std::unique_ptr<DeviceCollectives>> DeviceCollectives::open(const DeviceLibraryNames& names,
                                                                   Communicator& ranks,
                                                                   int device) {
  const auto lost = [](const PeerLost& peer) {
    return environment_error(fmt::format("rank {} was lost", peer.rank));
  };
  Result<std::unique_ptr<DeviceLibrary>> library = DeviceLibrary::open(names);
  std::unique_ptr<DeviceCollectives> opened;
  Status own = library ? Status() : forward_error(library);
  if (library) {
    opened = std::make_unique<DeviceCollectives>(std::move(*library), ranks, device);
    own = opened->prepare();
  }
  // Ranks that cannot take part report it, or the others would wait in the library.
  const std::array<std::byte, 1> can{std::byte{own ? std::uint8_t{1} : std::uint8_t{0}}};
  std::vector<std::byte> all(ranks.size());
  if (const auto told = ranks.all_gather(can, all); !told) return lost(told.error());
  if (!own) return forward_error(own);
  const auto unable = std::ranges::find(all, std::byte{0});
  if (unable != all.end()) {
    return environment_error(fmt::format("rank {} cannot take part", unable - all.begin()));
  }
  Invitation invitation;
  if (ranks.rank() == 0) invitation.code = opened->library_->get_unique_id(&invitation.id);
  if (const auto told = ranks.broadcast(std::as_writable_bytes(std::span(&invitation, 1)), 0);
      !told) {
    return lost(told.error());
  }
  if (invitation.code != 0) {
    return environment_error(fmt::format("rank 0 got no unique id: error {}", invitation.code));
  }
  if (const auto started = opened->start(invitation.id); !started) {
    if (opened->failure().empty()) return lost(started.error());
    return environment_error(opened->failure());
  }
  return opened;
}

DeviceCollectives::~DeviceCollectives() {
  if (comm_ != nullptr && wait() && taken(library_->finalize(comm_))) {
    (void)library_->destroy(std::exchange(comm_, nullptr));
  }
  if (stream_ != nullptr) (void)library_->stream_destroy(stream_);
}

Status DeviceCollectives::prepare() {
  if (const Code code = library_->set_device(device_); code != 0) {
    return environment_error(fmt::format("device {}: error {}", device_, code));
  }
  if (const Code code = library_->stream_create(&stream_, DeviceLibrary::kNonBlocking); code != 0) {
    return environment_error(fmt::format("no stream on device {}: error {}", device_, code));
  }
  return {};
}

Shared<void> DeviceCollectives::start(const DeviceLibrary::UniqueId& id) {
  DeviceLibrary::Config config;
  const Code code = library_->init(&comm_, static_cast<int>(ranks_.size()), id,
                                   static_cast<int>(ranks_.rank()), &config);
  return taken(code);
}

Shared<void> DeviceCollectives::queue(const std::function<Code()>& call) {
  if (lost_) return tl::unexpected(*lost_);
  if (const Code code = library_->set_device(device_); code != 0) {
    return fail(fmt::format("device {}: error {}", device_, code));
  }
  return taken(call());
}

Shared<void> DeviceCollectives::taken(Code code) {
  if (code != 0 && code != DeviceLibrary::kInProgress) return fail(library_->words_of(code));
  return poll([this] { return ready(); });
}

Shared<void> DeviceCollectives::wait() {
  if (lost_) return tl::unexpected(*lost_);
  return poll([this]() -> Shared<bool> {
    const Shared<bool> healthy = ready();
    if (!healthy || !*healthy) return healthy;
    const Code code = library_->stream_query(stream_);
    if (code != 0 && code != DeviceLibrary::kNotReady) {
      return fail(fmt::format("device {}: error {}", device_, code));
    }
    return code == 0;
  });
}

Shared<void> DeviceCollectives::poll(const std::function<Shared<bool>()>& done) {
  for (std::uint32_t polls = 0;; polls += polls < kEagerPolls ? 1 : 0) {
    const auto lost = ranks_.watch(polls < kEagerPolls ? Duration() : kDoze);
    // A peer that is done may leave, so completion is checked before the loss counts.
    const Shared<bool> there = done();
    if (!there) return tl::unexpected(there.error());
    if (*there) return {};
    if (lost) return give_up(*lost);
  }
}

Shared<bool> DeviceCollectives::ready() {
  Code state = 0;
  Code code = library_->async_error(comm_, &state);
  if (code == 0) code = state;
  if (code == DeviceLibrary::kInProgress) return false;
  if (code != 0) return fail(library_->words_of(code));
  return true;
}

void DeviceCollectives::abort() {
  if (!lost_) (void)give_up({ranks_.plan().member(ranks_.rank())});
}

tl::unexpected<PeerLost> DeviceCollectives::fail(std::string why) {
  failure_ = std::move(why);
  const auto died = ranks_.watch(kWhoDied);
  return give_up(died ? *died : PeerLost{ranks_.plan().member(ranks_.rank())});
}

tl::unexpected<PeerLost> DeviceCollectives::give_up(const PeerLost& lost) {
  lost_ = lost;
  if (comm_ != nullptr) (void)library_->abort(std::exchange(comm_, nullptr));
  return tl::unexpected(lost);
}

Shared<void> DeviceCollectives::all_reduce(const DeviceElements& in_out) {
  return queue([&] {
    return library_->all_reduce(in_out.at, in_out.at, in_out.count, type_of(in_out.type),
                                DeviceLibrary::kSum, comm_, stream_);
  });
}

Shared<void> DeviceCollectives::reduce_scatter(const void* in, const DeviceElements& out) {
  return queue([&] {
    return library_->reduce_scatter(in, out.at, out.count, type_of(out.type), DeviceLibrary::kSum,
                                    comm_, stream_);
  });
}

Shared<void> DeviceCollectives::all_gather(const DeviceElements& in, void* out) {
  return queue(
      [&] { return library_->all_gather(in.at, out, in.count, type_of(in.type), comm_, stream_); });
}

Shared<void> DeviceCollectives::broadcast(const DeviceElements& in_out, std::uint32_t root) {
  return queue([&] {
    return library_->broadcast(in_out.at, in_out.at, in_out.count, type_of(in_out.type),
                               static_cast<int>(root), comm_, stream_);
  });
}

Shared<void> DeviceCollectives::all_to_all(const DeviceElements& in, void* out) {
  return queue([&] {
    const std::size_t each = in.count / ranks_.size();
    const std::size_t bytes = each * bytes_of(in.type);
    const int type = type_of(in.type);
    Code code = library_->group_start();
    for (std::size_t rank = 0; rank < ranks_.size() && code == 0; ++rank) {
      const int peer = static_cast<int>(rank);
      const auto* from = static_cast<const std::byte*>(in.at) + rank * bytes;
      auto* to = static_cast<std::byte*>(out) + rank * bytes;
      code = library_->send(from, each, type, peer, comm_, stream_);
      if (code == 0) code = library_->receive(to, each, type, peer, comm_, stream_);
    }
    const Code end = library_->group_end();
    return code == 0 ? end : code;
  });
}

Shared<void> DeviceCollectives::send(const DeviceElements& elements, std::uint32_t to) {
  return queue([&] {
    return library_->send(elements.at, elements.count, type_of(elements.type), static_cast<int>(to),
                          comm_, stream_);
  });
}

Shared<void> DeviceCollectives::receive(const DeviceElements& elements, std::uint32_t from) {
  return queue([&] {
    return library_->receive(elements.at, elements.count, type_of(elements.type),
                             static_cast<int>(from), comm_, stream_);
  });
}

}  // namespace orrery
