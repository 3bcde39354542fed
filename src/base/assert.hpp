// base/assert.hpp - ORRERY_ASSERT: a check for bugs of this program, on in release too.
//
// A failed assertion ends the process: going on would spread a broken invariant. An error that a
// user can cause is never an assertion but a Result (base/error.hpp).
#pragma once

namespace orrery {

/// Prints "file:line: assertion failed: expression: why" to standard error and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* why, const char* file,
                                   int line);

}  // namespace orrery

/// Ends the process when `expression` is false; `why` says what the code relied on.
#define ORRERY_ASSERT(expression, why) \
  ((expression) ? static_cast<void>(0) \
                : ::orrery::assertion_failed(#expression, why, __FILE__, __LINE__))
