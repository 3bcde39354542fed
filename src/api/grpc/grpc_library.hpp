// api/grpc/grpc_library.hpp - the end of gRPC in a process.
//
// Made by main() of a program before anything of gRPC, used by its thread. A connection may outlive
// the channel it was made for: a thread of gRPC that is in the middle of a handshake goes on, and
// with it OpenSSL, whose memory the end of the process takes away. Cost: up to a handshake.
#pragma once

namespace orrery {

class GrpcLibrary {
 public:
  /// Whether the lines that gRPC itself prints to standard error are shown.
  enum class Lines { kShown, kHidden };
  explicit GrpcLibrary(Lines lines = Lines::kShown);
  GrpcLibrary(const GrpcLibrary&) = delete;
  GrpcLibrary& operator=(const GrpcLibrary&) = delete;
  /// Waits for a bounded time until no thread of gRPC is left. Precondition: no channel and no
  /// server exists.
  ~GrpcLibrary();
};

}  // namespace orrery
