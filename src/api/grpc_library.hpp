// api/grpc_library.hpp - the end of gRPC in a process.
//
// Made by main() of a program before anything of gRPC, used by its thread. A connection may outlive
// the channel it was made for: a thread of gRPC that is in the middle of a handshake goes on, and
// with it OpenSSL, whose memory the end of the process takes away. Cost: up to a handshake.
#pragma once

namespace orrery {

class GrpcLibrary {
 public:
  /// What gRPC prints to standard error by itself.
  enum class Lines { kShown, kHidden };
  explicit GrpcLibrary(Lines lines = Lines::kShown);
  GrpcLibrary(const GrpcLibrary&) = delete;
  GrpcLibrary& operator=(const GrpcLibrary&) = delete;
  /// Waits until no thread of gRPC is left, but not for ever. Precondition: no channel and no
  /// server is.
  ~GrpcLibrary();
};

}  // namespace orrery
