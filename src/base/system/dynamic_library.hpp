// base/system/dynamic_library.hpp - a shared library that the machine may or may not have, opened
// at run time: libraries of accelerators come with their drivers, and a program linked to them
// would start only on machines that have them.
//
// Owned by the driver or other object that is made of it; closed with it, so functions found in it
// become invalid with it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/error.hpp"

namespace orrery {

class DynamicLibrary {
 public:
  /// Opens the first of `names` (sonames or paths) that exists; nullptr: none does. Error: one
  /// exists and cannot be loaded.
  [[nodiscard]] static Result<std::unique_ptr<DynamicLibrary>> open(
      std::span<const std::string> names);
  DynamicLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Sets `function` to the one of that name; nullptr: there is none. The caller vouches for the
  /// type.
  template <class Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(name));
  }
  /// Sets `function` to the one of that name, which must exist. Error: an older library, or
  /// another.
  template <class Function>
  [[nodiscard]] Status require(const char* name, Function*& function) const {
    find(name, function);
    return function != nullptr ? Status() : lacks(name);
  }

 private:
  [[nodiscard]] void* address_of(const char* name) const;
  [[nodiscard]] Status lacks(const char* name) const;

  std::string name_;
  void* handle_;
};

}  // namespace orrery
