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
#include "base/error.hpp"
#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "base/numbers/rng.hpp"
#include "base/quantity.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/quantity_text.hpp"
