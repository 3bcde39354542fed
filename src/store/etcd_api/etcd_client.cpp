#include "store/etcd_api/etcd_client.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/channel_arguments.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/system/real_storage.hpp"
#include "store/store.hpp"

namespace orrery {
namespace {

constexpr const char* kTxn = "/etcdserverpb.KV/Txn";
constexpr const char* kRange = "/etcdserverpb.KV/Range";
constexpr const char* kCompact = "/etcdserverpb.KV/Compact";

constexpr int kMessageBytesMax = 64 << 20;
constexpr int kReconnectMsMin = 50;
constexpr int kReconnectMsMax = 200;
/// Limit of one attempt to connect.
constexpr int kConnectMs = 300;
constexpr int kKeepaliveMs = 10'000;
/// Time after which the next member is asked; longer where there is none.
constexpr Duration kPatience = Duration::milliseconds(300);
constexpr Duration kPatienceOfOne = Duration::seconds(1);
/// Time that a member gets which was not reached before.
constexpr Duration kPatienceToConnect = Duration::milliseconds(50);
constexpr std::size_t kBytesPerMs = std::size_t{16} << 10;
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMin);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  // In spite of its name, this option limits an attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A repetition is the client's own, on the next member.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  return arguments;
}

StorageResult<std::shared_ptr<grpc::ChannelCredentials>> credentials_of(
    const EtcdLocation& location) {
  if (location.authority_file.empty()) return grpc::InsecureChannelCredentials();
  RealStorage storage;
  grpc::SslCredentialsOptions tls;
  for (const auto& [path, into] : {std::pair(&location.authority_file, &tls.pem_root_certs),
                                   std::pair(&location.certificate_file, &tls.pem_cert_chain),
                                   std::pair(&location.key_file, &tls.pem_private_key)}) {
    if (path->empty()) continue;
    StorageResult<std::string> bytes = storage.read_file(*path, kFileBytesMax);
    if (!bytes) return forward_failure(bytes);
    *into = *std::move(bytes);
  }
  return grpc::SslCredentials(tls);
}

/// The meaning of a failed call; none: another member may answer it.
std::optional<StorageFailure> meaning_of(const grpc::Status& status) {
  const auto says = [&](std::string_view words) {
    return status.error_message().find(words) != std::string::npos;
  };
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      return std::nullopt;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      if (says("too many requests")) return std::nullopt;
      return says("database space exceeded") ? StorageFailure::kFull : StorageFailure::kOther;
    case grpc::StatusCode::OUT_OF_RANGE:
      if (says("compacted")) return StorageFailure::kNotFound;
      return std::nullopt;  // a member that has not caught up
    default:
      return StorageFailure::kOther;
  }
}

/// Returns why an answer is older than those before it.
std::string older_text(std::int64_t revision, std::int64_t seen) {
  return fmt::format(
      "answers for revision {}, and revision {} was seen: etcd was restored from a backup. Stop "
      "all "
      "controllers, then see `orrery store adopt --help`",
      revision, seen);
}

/// A failover can leave open whether an earlier member has written.
enum class EarlierTry { kNone, kOpen };

StorageFailure failure_after(EarlierTry earlier, StorageFailure failure) {
  const bool open = earlier == EarlierTry::kOpen && failure == StorageFailure::kFull;
  return open ? StorageFailure::kUnavailable : failure;
}

gpr_timespec deadline_in(Duration wait) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count_ns(), GPR_TIMESPAN));
}

/// Whether a call may reach the member. gRPC connects again only while a thread waits for it, and a
/// call on a channel that has failed ends without waiting.
bool reachable(grpc::Channel& channel) {
  return channel.GetState(true) != GRPC_CHANNEL_TRANSIENT_FAILURE ||
         channel.WaitForStateChange(GRPC_CHANNEL_TRANSIENT_FAILURE,
                                    deadline_in(kPatienceToConnect));
}

template <class Request, class Response>
grpc::Status call_member(const std::shared_ptr<grpc::Channel>& channel, const char* method,
                         const Request& request, std::pair<Duration, Response*> answer) {
  if (!reachable(*channel)) return {grpc::StatusCode::UNAVAILABLE, "cannot be reached"};
  grpc::ClientContext context;
  context.set_deadline(deadline_in(answer.first));
  grpc::CompletionQueue queue;
  grpc::TemplatedGenericStub<Request, Response> stub(channel);
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(answer.second, &status, answer.second);
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok)) return {grpc::StatusCode::INTERNAL, "the call was lost"};
  return status;
}

}  // namespace

StorageResult<std::unique_ptr<EtcdClient>> EtcdClient::make(const EtcdLocation& location) {
  auto credentials = credentials_of(location);
  if (!credentials) return forward_failure(credentials);
  std::vector<std::shared_ptr<grpc::Channel>> members;
  members.reserve(location.members.size());
  for (const std::string& member : location.members) {
    members.push_back(grpc::CreateCustomChannel(member, *credentials, channel_arguments()));
  }
  return std::make_unique<EtcdClient>(location, std::move(members));
}

StorageStatus EtcdClient::check_cluster(const etcd::ResponseHeader& header) {
  std::uint64_t first = 0;
  if (cluster_.compare_exchange_strong(first, header.cluster_id()) ||
      first == header.cluster_id()) {
    return {};
  }
  return store_error(StorageFailure::kOther,
                     fmt::format("{}: a member answers for another etcd cluster: {:x}, expected "
                                 "{:x}; all members in the list must be of one etcd cluster",
                                 name_, header.cluster_id(), first));
}

void EtcdClient::note_revision(std::int64_t revision) {
  std::int64_t newest = revision_;
  while (newest < revision && !revision_.compare_exchange_weak(newest, revision)) continue;
}

template <class Request, class Response>
StorageResult<Response> EtcdClient::call(const char* method, const Request& request,
                                         std::size_t bytes) {
  const Duration patience = (members_.size() > 1 ? kPatience : kPatienceOfOne) +
                            Duration::milliseconds(static_cast<std::int64_t>(bytes / kBytesPerMs));
  EarlierTry earlier = EarlierTry::kNone;
  std::string why;
  std::size_t older = 0;  // members that answered for an older revision
  const std::int64_t seen = revision_;
  const std::size_t first = current_;
  for (std::size_t tried = 0; tried < members_.size(); ++tried) {
    const std::size_t member = (first + tried) % members_.size();
    Response response;
    grpc::Status status =
        call_member(members_[member], method, request, std::pair(patience, &response));
    if (status.ok()) {
      if (StorageStatus same = check_cluster(response.header()); !same) {
        return forward_failure(same);
      }
      if (response.header().revision() >= seen) {
        current_ = member;
        note_revision(response.header().revision());
        return response;
      }
      ++older;
      status = {grpc::StatusCode::UNAVAILABLE, older_text(response.header().revision(), seen)};
    }
    why = fmt::format("{}: {}: {}", name_, location_.members[member], status.error_message());
    if (const std::optional<StorageFailure> failure = meaning_of(status)) {
      return store_error(failure_after(earlier, *failure), why);
    }
    earlier = EarlierTry::kOpen;
    current_ = (member + 1) % members_.size();
  }
  // All calls are linearizable, so a majority that answers for an older revision has lost the newer
  // ones; a single member may have been started alone with old data.
  const bool restored = 2 * older > members_.size();
  return store_error(restored ? StorageFailure::kOther : StorageFailure::kUnavailable, why);
}

StorageResult<etcd::TxnResponse> EtcdClient::txn(const etcd::TxnRequest& request) {
  return call<etcd::TxnRequest, etcd::TxnResponse>(kTxn, request, request.ByteSizeLong());
}

StorageResult<etcd::RangeResponse> EtcdClient::range(const etcd::RangeRequest& request,
                                                     std::size_t answer_bytes) {
  return call<etcd::RangeRequest, etcd::RangeResponse>(kRange, request, answer_bytes);
}

StorageStatus EtcdClient::compact(std::int64_t revision) {
  etcd::CompactionRequest request;
  request.set_revision(revision);
  const auto done = call<etcd::CompactionRequest, etcd::CompactionResponse>(kCompact, request, 0);
  if (done || done.error().failure == StorageFailure::kNotFound) return {};
  return tl::unexpected(done.error());
}

}  // namespace orrery
