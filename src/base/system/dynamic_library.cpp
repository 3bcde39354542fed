#include "base/system/dynamic_library.hpp"

#include <dlfcn.h>

#include <string_view>

namespace orrery {

Result<std::unique_ptr<DynamicLibrary>> DynamicLibrary::open(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return std::make_unique<DynamicLibrary>(name, handle);
    }
    const char* said = ::dlerror();
    const std::string_view why = said != nullptr ? said : "the cause is unknown";
    // It tells in words alone whether the file is absent, or one that it needs: that one is named.
    const bool absent = why.starts_with(name) && why.find("No such file") != why.npos;
    if (!absent) return environment_error(fmt::format("cannot load {}: {}", name, why));
  }
  return nullptr;
}

DynamicLibrary::~DynamicLibrary() { (void)::dlclose(handle_); }

void* DynamicLibrary::address_of(const char* name) const { return ::dlsym(handle_, name); }

Status DynamicLibrary::lacks(const char* name) const {
  return environment_error(
      fmt::format("{} has no function {}: it is too old, or another library", name_, name));
}

}  // namespace orrery
