// base/system/free_address.hpp - a port of this machine that no program listens at.
//
// The port stays bound while the object lives, so that several objects have different ports; the
// program that is to listen there is started after the object's end. Ports are below those that the
// kernel gives to a program that asks for any. Movable, any thread.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/env.hpp"
#include "base/system/file_descriptor.hpp"

namespace orrery {

class FreeAddress {
 public:
  /// `host` is an address in numbers, an IPv6 one in brackets; "0.0.0.0": all addresses. Errors: it
  /// is none; no port was free in some hundred tries.
  [[nodiscard]] static Result<FreeAddress> on(const std::string& host, Entropy& entropy);
  [[nodiscard]] static Result<FreeAddress> on_loopback(Entropy& entropy) {
    return on("127.0.0.1", entropy);
  }

  /// "127.0.0.1:12345".
  [[nodiscard]] std::string text() const { return fmt::format("{}:{}", host_, port_); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  FreeAddress(std::string host, std::uint16_t port, FileDescriptor socket)
      : host_(std::move(host)), port_(port), socket_(std::move(socket)) {}

  std::string host_;
  std::uint16_t port_;
  FileDescriptor socket_;
};

}  // namespace orrery
