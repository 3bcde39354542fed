// base/system/free_address.hpp - a port of this machine that no program listens at.
//
// The port stays bound while the object lives, so that several objects have different ports; the
// program that is to listen there is started after the object's end. Ports are below those that the
// kernel gives to a program that asks for any. Movable, any thread.
#pragma once

#include <string>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

class FreeAddress {
 public:
  /// Error: no port was free in some hundred tries.
  [[nodiscard]] static Result<FreeAddress> on_loopback(Entropy& entropy);

  /// "127.0.0.1:12345".
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  FreeAddress(std::string text, FileDescriptor socket)
      : text_(std::move(text)), socket_(std::move(socket)) {}

  std::string text_;
  FileDescriptor socket_;
};

}  // namespace orrery
