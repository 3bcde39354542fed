// cmake/precompiled.hpp - what most sources include, read once in a build with ORRERY_PRECOMPILE.
// The development build is one, and the quickstart's from nothing: any other release build compiles
// every shipped file without it, so that a missing include is still an error. Nothing includes this
// file. A header belongs here if many sources of all modules read it; one of a higher module would
// lend its names to those below.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.hpp"
#include "base/document.hpp"
#include "base/error.hpp"
#include "base/field_reader.hpp"
#include "base/nearest_name.hpp"
#include "base/quantity.hpp"
#include "base/quantity_text.hpp"
#include "base/rng.hpp"
